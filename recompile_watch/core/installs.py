"""How what the compiler needs is installed, on the system that the log shows."""

from recompile_watch.core.late import pattern

_OF_WINDOWS = pattern(r"^[A-Za-z]:[\\/]|\bCompiler: (?:cl|clang-cl|icx-cl)(?:\.exe)? is not found|(?:^|[\s'\"(])[A-Za-z]:\\\w")
_MSVC = (
    'winget install Microsoft.VisualStudio.2022.BuildTools --override "--wait --passive --add Microsoft.VisualStudio.Workload.VCTools'
    ' --includeRecommended"  # then start the process in the x64 Native Tools Command Prompt, which has cl on its PATH'
)
_PACKAGES = "apt-get install -y build-essential python3-dev  # or set CC and CXX to the compilers that are there"
_OPENMP = "brew install libomp  # on a Mac, or: conda install llvm-openmp; with clang on Linux: apt-get install -y libomp-dev; the compiler is there"
_LACKS_OPENMP = pattern(r"'omp\.h' file not found|\bomp\.h: No such file|unsupported option '-fopenmp'|(?:library not found for|cannot find) -lomp\b")
_HEADERS = "apt-get install -y python3-dev  # Python's headers, for the version that runs (python3.12-dev); the compiler is there"
# Which triton torch's own metadata require for Linux; the wheels for Windows have triton's numbers.
_TRITON_FOR_WINDOWS = (
    'pip install -U "triton-windows==X.Y.*"  # X.Y: the triton that belongs to your torch: 3.0 or 3.1 for torch 2.4, 3.1 for 2.5, 3.2 for 2.6,'
    " 3.4 for 2.8, 3.6 for 2.11"
)
_TRITON = "pip uninstall -y triton pytorch-triton && pip install --force-reinstall --no-cache-dir torch  # torch's wheel requires its own triton"


def is_windows(*texts: str | None) -> bool:
    """Whether one of these paths or messages is of Windows."""
    return any(text is not None and _OF_WINDOWS.search(text) is not None for text in texts)


def compiler_line(message: str, *, windows: bool) -> str:
    """What installs a C compiler, or what the one that is there did not find."""
    if windows:
        return _MSVC
    return _OPENMP if _LACKS_OPENMP.search(message) is not None else _HEADERS if "Python.h" in message else _PACKAGES


def triton_line(*, windows: bool) -> str:
    """What installs the triton that belongs to torch; for Windows torch's wheel requires none."""
    return _TRITON_FOR_WINDOWS if windows else _TRITON
