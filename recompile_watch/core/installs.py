"""How what the compiler needs is installed, on the system that the log shows."""

from recompile_watch.core.late import pattern

_OF_WINDOWS = pattern(
    r"^[A-Za-z]:[\\/]|\\(?:site-packages|venv|Lib)\\|\[WinError \d+\]|\berror C\d{4}: |\bCompiler: (?:cl|clang-cl|icx-cl)(?:\.exe)? is not found"
    r"|\bcl(?:\.exe)? /[A-Z]\b|(?:^|[\s'\"(])[A-Za-z]:(?:\\{1,2}|/)\w"
)
_MSVC = (
    "# start the process in the x64 Native Tools Command Prompt, or behind vcvars64.bat: they put cl and its headers where torch looks; without that"
    ' prompt: winget install Microsoft.VisualStudio.2022.BuildTools --override "--wait --passive --add Microsoft.VisualStudio.Workload.VCTools'
    ' --includeRecommended"'
)
_PACKAGES = "apt-get install -y build-essential python3-dev  # or set CC and CXX to the compilers that are there"
_OPENMP = "brew install libomp  # on a Mac, or: conda install llvm-openmp; with clang on Linux: apt-get install -y libomp-dev; the compiler is there"
_LACKS_OPENMP = pattern(r"'omp\.h' file not found|\bomp\.h: No such file|unsupported option '-fopenmp'|(?:library not found for|cannot find) -lomp\b")
_CUDA_HEADERS = (
    "conda install -c conda-forge cuda-cudart-dev  # which has cuda.h; without conda: NVIDIA's package of that name, Debian's nvidia-cuda-dev, or"
    " export CPATH=$CUDA_HOME/include; the compiler is there"
)
_LACKS_CUDA = pattern(r"\bcuda(?:_runtime)?\.h\b")
_HEADERS = (
    "apt-get install -y python3-dev  # Python's headers, for the version that runs ({} where it is not the system's own); the compiler is there"
)
_PYTHON = pattern(r"\bpython(3\.\d{1,2})\b")
# What a compiler says that is older than the C++17 of torch's code, and torch's own headers under it.
_TOO_OLD = pattern(
    r"unrecognized command[- ]line option.{0,3}-(?:std=|march=)|unknown argument: '-std=|invalid value 'c\+\+|You need C\+\+1\d to compile"
    r"|C\+\+1\d or later compatible compiler"
)
_NEWER = (
    "apt-get install -y g++-12 && export CXX=g++-12  # GCC 9 or newer knows the C++17 of torch's code, the compiler that is there does not;"
    " in conda: conda install -c conda-forge gxx"
)
_FLOAT8 = (
    "torch.float8_e5m2  # in place of float8_e4m3fn, triton's fp8e4nv, which needs compute capability 8.9: weights in fp8_e5m2, bf16 or fp16, in a"
    " serving engine another quantization (int8, int4); a library's own Triton kernels raise it in eager mode as well"
)
_FLOAT16 = "model.to(torch.float16)  # where bfloat16 is refused: GPUs before compute capability 8.0"
_UPGRADE = "pip install --upgrade torch"
_UNKNOWN_PYTHON = pattern(r"Python 3\.\d+\+ not yet supported|not supported on Python 3\.\d+\+")
# As the sources of torch 2.0 to 2.15 have it: each release refuses the Python that the next ones know.
_PYTHONS = "  # it compiles under Python 3.11 from torch 2.1 on, 3.12 from 2.4, 3.13 from 2.6, 3.14 from 2.10; or run an older Python"
# The triton that each torch requires, by the metadata of its wheels for Linux; those for Windows require none, and take the same.
_TRITON_OF = {
    "2.0": "2.0", "2.1": "2.1", "2.2": "2.2", "2.3": "2.3", "2.4": "3.0", "2.5": "3.1", "2.6": "3.2", "2.7": "3.3", "2.8": "3.4", "2.9": "3.5",
    "2.10": "3.6", "2.11": "3.6", "2.12": "3.7", "2.14": "3.8", "2.15": "3.9",
}  # fmt: skip
_TRITONS = ", ".join(f"{triton} for torch {torch}" for torch, triton in _TRITON_OF.items() if triton[0] == "3")
_EXPORTED = pattern(r"(?P<name>[A-Z][A-Z0-9_]*)=(?P<value>\"[^\"\n]*\"|'[^'\n]*'|\S+)")
_CACHES = "export TORCHINDUCTOR_CACHE_DIR=$HOME/.cache/torchinductor TRITON_CACHE_DIR=$HOME/.cache/triton"
_CACHES_OF_WINDOWS = (
    r'Remove-Item -Recurse -Force "$env:TEMP\torchinductor_$env:USERNAME", "$HOME\.triton\cache"; $env:TORCHINDUCTOR_CACHE_DIR = "C:\ti";'
    r' $env:TRITON_CACHE_DIR = "C:\tt"  # in PowerShell, while no process uses them; short paths, for Windows refuses those over 260 characters'
)


def is_windows(*texts: str | None) -> bool:
    """Whether one of these paths or messages is of Windows."""
    return any(text is not None and _OF_WINDOWS.search(text) is not None for text in texts)


def compiler_line(message: str, *, windows: bool) -> str:
    """What installs a C compiler, or what the one that is there did not find."""
    if windows:
        return _MSVC
    if _TOO_OLD.search(message) is not None:
        return _NEWER
    if _LACKS_CUDA.search(message) is not None:
        return _CUDA_HEADERS
    if "Python.h" in message:
        python = _PYTHON.search(message)
        return _HEADERS.format(f"python{python[1] if python else '3.X'}-dev")
    return _OPENMP if _LACKS_OPENMP.search(message) is not None else _PACKAGES


def set_line(line: str, *, windows: bool) -> str:
    """A line that sets variables, ``export A=1 B=2  # why``, as the shell of the system takes it."""
    if not windows or not line.startswith("export "):
        return line
    settings, hash_, why = line.removeprefix("export ").partition("  # ")
    made = "; ".join(f'$env:{one["name"]} = "{one["value"].strip(chr(34))}"' for one in _EXPORTED.finditer(settings))
    return f"{made}  # in PowerShell{'; ' * bool(hash_)}{why}" if made else line


def cache_line(*, windows: bool) -> str:
    """What gives a process cache folders of its own."""
    if windows:
        return _CACHES_OF_WINDOWS
    return (
        f"{_CACHES}  # empty them once, vLLM's ~/.cache/vllm/torch_compile_cache as well; look at df, at the owner, and that the disk is not mounted"
        " with noexec"
    )


def dtype_line(message: str) -> str:
    """A dtype that a GPU computes in which refuses the one of the message."""
    return _FLOAT8 if "fp8" in message or "float8" in message else _FLOAT16


def upgrade_line(message: str) -> str:
    """What installs a newer torch; of one that does not know this Python with the versions that do."""
    return _UPGRADE + _PYTHONS * (_UNKNOWN_PYTHON.search(message) is not None)


def triton_line(torch: str | None, *, windows: bool) -> str:
    """What installs the triton that belongs to torch. torch: its version, ``2.9``, where the log shows it."""
    package = "triton-windows" if windows else "triton"
    release = next((triton for of, triton in _TRITON_OF.items() if of == torch and (triton in _TRITONS or not windows)), None)
    told = f"what torch {torch} requires" if release else f"X.Y is what your torch requires: {_TRITONS}, and before 2.4 torch's own number"
    return f'pip uninstall -y triton pytorch-triton triton-windows && pip install "{package}=={release or "X.Y"}.*"  # {told}'
