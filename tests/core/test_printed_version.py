"""Tests of `recompile_watch.core.printed_version`: which torch a log says it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from recompile_watch.core.printed_version import printed_version
from tests.cli.test_commands import run

BANNERS = {
    "PyTorch version: 2.9.1+cu128": "2.9.1+cu128",
    "2025-01-01 10:00:00 | INFO | PyTorch version: 2.5.1+cu121": "2.5.1+cu121",
    "- PyTorch version (GPU?): 2.6.0+cu124 (True)": "2.6.0+cu124",
    "INFO 06-01 10:00:00 [config.py:54] PyTorch version 2.7.0 available.": "2.7.0",
    "O^O/ \\_/ \\    Torch: 2.6.0+cu124. CUDA: 8.0. CUDA Toolkit: 12.4. Triton: 3.2.0": "2.6.0+cu124",
    "[NeMo I] torch version 2.6.0a0+ecf3bae40a.nv25.01": "2.6.0a0+ecf3bae40a.nv25.01",
    "[pip3] torch==2.8.0+cu128": "2.8.0+cu128",
    "torch 2.5.1+cu124": "2.5.1+cu124",
    '{"torch_version": "2.6.0"}': "2.6.0",
    "INFO:root:torch.__version__ = 2.4.1": "2.4.1",
    "I20261118 22:40:31 83 dino.py:212] arch=vit_small batch=64 torch=2.13.0+cu130": "2.13.0+cu130",
    "2026-11-20 09:14:02,311 INFO  txt2img: torch 2.8.0+cu128, device cuda:0 (NVIDIA L4)": "2.8.0+cu128",
    "[2026-11-23 18:02:11] PPO  device=cuda  torch=2.8.0 seed=1": "2.8.0",
}
OTHERS = (
    "Collecting torch==2.3.0", "Requirement already satisfied: torch>=2.4 in /usr/lib/python3", "torchvision==0.23.0+cu128", "triton==3.4.0",
    "vllm 0.9.1 requires torch==2.7.0, but you have torch 2.6.0 which is incompatible.", "Successfully installed torch-2.8.0",
    "torch version 2.4 or newer", "This needs torch version 2.4", "PyTorch version: 2.1 is required", "triton version 2.1.0",
    "torchvision version: 2.1.0", "torch 2.6.0 works", "pip install torch==2.8.0+cu128 --index-url x", "built for torch 2.8.0+cu128",
)  # fmt: skip


@pytest.mark.parametrize(("line", "version"), BANNERS.items())
def test_what_programs_print(line: str, version: str) -> None:
    """Each in a log of its own, and between other lines."""
    assert printed_version(line.encode()) == printed_version(f"starting\n{line}\r\nready\n".encode()) == version


@pytest.mark.parametrize("line", OTHERS)
def test_what_is_no_version_of_the_running_torch(line: str) -> None:
    """A wish, an installer's plan, another package."""
    assert printed_version(line.encode()) is None


def test_two_versions_are_none() -> None:
    """A log of several programs does not say which of them compiled."""
    assert printed_version(b"PyTorch version: 2.9.1\nPyTorch version: 2.5.1\n") is None
    assert printed_version(b"PyTorch version: 2.9.1\nPyTorch version: 2.9.1\n") == "2.9.1"


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_advice_is_for_the_version_that_the_log_names(tmp_path: Path, jobs: str) -> None:
    """`recompile_limit=` is an argument of torch.compile in newer versions only."""
    hit = ("torch._dynamo hit config.recompile_limit (8)", "   function: 'f' (/srv/m.py:3)", "   last reason: 0/7: mode == 'fast'")
    prefix = "W1122 11:15:31.432000 15922 torch/_dynamo/convert_frame.py:1358] [0/8] "
    log = tmp_path / "app.log"
    log.write_text("PyTorch version: 2.9.1+cu128\n" + "".join(f"{prefix}{line}\n" for line in hit) + "an ordinary line\n" * 300_000)
    told = run("analyze", "--jobs", jobs, str(log)).stdout
    assert "torch 2.9.1+cu128" in told and "torch._dynamo.config.recompile_limit = 16" in told and "recompile_limit=16)" not in told
