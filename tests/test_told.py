"""What torch and triton say of what they need is known alone, behind an exception's name, and in every form a program or a person gives it.

What only looks like it, and what quotes or explains it, gives nothing.
"""

from __future__ import annotations

import pytest

from recompile_watch.config import load_catalog
from recompile_watch.core.analysis import Analysis, Facts, SourceFacts
from tests.conftest import DATA, engine_events, rules

# (exception, what it says) -> a remedy that must be advised.
MESSAGES = {
    (
        "RuntimeError",
        "Found Tesla P40 which is too old to be supported by the triton GPU compiler, which is used as the backend.",
    ): "disable_compile_process",
    ("RuntimeError", "Cannot find a working triton installation. Either the package is not installed or it is too old."): "matching_triton",
    ("RuntimeError", "Failed to find C compiler. Please specify via CC environment variable."): "install_compiler",
    ("RuntimeError", "Dynamo is not supported on Python 3.12+"): "upgrade_torch",
    ("RuntimeError", "Windows not yet supported for torch.compile"): "upgrade_torch",
    ("RuntimeError", "Compiler: cl is not found."): "install_compiler",
    ("AssertionError", "libcuda.so cannot found!"): "link_libcuda",
    ("ValueError", "type fp8e4nv not supported in this architecture. The supported fp8 dtypes are ('fp8e4b15', 'fp8e5')"): "dtype_of_this_gpu",
    ("ImportError", "cannot import name 'triton_key' from 'triton.compiler.compiler' (/venv/triton/compiler/compiler.py)"): "matching_triton",
    ("RuntimeError", "Internal Triton PTX codegen error"): "system_ptxas",
    ("triton.runtime.errors.OutOfResources", "out of resource: shared memory, Required: 131072, Hardware limit: 101376."): "smaller_kernel_blocks",
    ("ImportError", "DLL load failed while importing cuda_utils: The specified module could not be found."): "own_cache_folder",
    ("RuntimeError", "PassManager::run failed"): "upgrade_torch",
    ("RuntimeError", "Either mode or options can be specified, but both can't be specified at the same time."): "known_option",
    ("RuntimeError", "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'"): "system_ptxas",
}
FORMS = {
    "alone": "{said}",
    "as Python prints it": "{name}: {said}",
    "a title": "[Bug]: {name}: {said}",
    "a title without the exception": "[Bug] {said}",
    "in backticks": "`{name}: {said}`",
    "in a sentence": 'I get "{name}: {said}" when I run it',
    "behind an error": "Getting error: {said}",
    "a program's log": "2026-06-18 19:45:55,713 - app - ERROR - Failed to load the model: {name}: {said}",
    "a program's log without the exception": "2026-06-18 19:45:55,713 - app - ERROR - Failed to load the model: {said}",
    "behind exclamation marks": "!!! Exception during processing !!! {said}",
    "JSON": '{{"level": "error", "message": "{name}: {said}"}}',
    "as Python shows it": 'ERROR:app:{name}("{said}")',
    "a server's worker": "(EngineCore_0 pid=92) ERROR 09-06 23:28:45 [core.py:714] {name}: {said}",
    "a rank": "[rank0]: {name}: {said}",
    "a record of early 2023": "[2023-06-18 19:45:55,713] torch._dynamo.convert_frame: [WARNING] {name}: {said}",
    "behind torch's own": "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\n{name}: {said}",
    "behind Chinese words": "运行时报错：{name}: {said}",
    "a key of a program's own": '{{"name": "load", "exc_message": "{said}"}}',
    "a test's summary": "FAILED tests/test_model.py::test_decode[3] - {name}: {said}",
    "without a colon": "eager from now on, compilation gave {name} {said}",
    "a quotation below a sentence": 'It fails with the following error:\n"{name}: {said}"',
}


def advised(text: str) -> set[str]:
    """What is advised for a log."""
    analysis = Analysis(rules())
    for event in engine_events([text.encode()], "told.log"):
        analysis.add(event)
    findings = analysis.report(Facts((SourceFacts("told.log"),)), load_catalog()).findings
    return {one.name for finding in findings for one in finding.advice}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_what_torch_needs_is_known_in_every_form(form: str) -> None:
    """A missing tool, a GPU or a Python that does not fit: the remedy does not depend on who tells it."""
    found = {said: (remedy, advised(form.format(name=name, said=said) + "\n")) for (name, said), remedy in MESSAGES.items()}
    later = {"smaller_kernel_blocks"} if "[2023-" in form else set()  # kernel_options came with torch 2.5; such prefixes went with 2.3
    assert [said for said, (remedy, told) in found.items() if not told or (remedy not in told and remedy not in later)] == []


def test_what_only_looks_like_it_gives_nothing() -> None:
    """Other programs' words, source code, advice of a manual."""
    lines = (DATA / "lookalikes.txt").read_text().splitlines()
    assert [line for line in lines if engine_events([f"{line}\n".encode()], "app.log")] == []
