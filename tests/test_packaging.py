"""What users install works away from the checkout: the wheel holds the rules, and its commands run from any folder."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from recompile_watch.config import load_rules, shipped_rules
from tests.conftest import ROOT, SAMPLES


def run(*command: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command; its standard error stands in the failure."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=cwd, env=env, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a checkout with what is installed already."""
    folder = tmp_path_factory.mktemp("wheel")
    done = run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`recompile-watch` in a fresh environment: the wheel is installed there, its dependencies are those of this environment."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    run_pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python))
    done = run(*run_pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=folder)
    assert done.returncode == 0, done.stderr
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    # Dependencies come last on the path and without their .pth files, so that no editable checkout is found through them.
    (site / "dependencies.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n{sysconfig.get_paths()['platlib']}\n")
    return folder / "venv" / "bin" / "recompile-watch"


def clean_environment() -> dict[str, str]:
    """The environment without what could lead back to the checkout."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}


def test_the_wheel_holds_the_rules(wheel: Path) -> None:
    """Every rule file and every unit is inside the wheel, and neither tests nor samples are."""
    names = zipfile.ZipFile(wheel).namelist()
    inside = {name.partition("/_rules/")[2] for name in names if name.startswith("recompile_watch/_rules/")}
    assert inside == {str(path.relative_to(ROOT / "rules")) for path in (ROOT / "rules").rglob("*.toml")}
    workloads = {name.partition("/_workloads/")[2] for name in names if name.startswith("recompile_watch/_workloads/")}
    assert workloads == {path.name for path in (ROOT / "workloads").glob("*.py")} and "recompile_watch/respond/diagnose_worker.py" in names
    units = {name.rpartition("/share/recompile-watch/systemd/")[2] for name in names if "/share/recompile-watch/systemd/" in name}
    assert units == {path.name for path in (ROOT / "systemd").iterdir()}
    assert not [name for name in names if name.startswith(("tests/", "sample_logs/", "benchmarks/"))]
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_installed_package_is_the_wheel(program: Path, tmp_path: Path) -> None:
    """The fresh environment runs its own copy, not the checkout."""
    code = "import recompile_watch; print(recompile_watch.__file__)"
    done = run(program.with_name("python"), "-c", code, cwd=tmp_path, env=clean_environment())
    assert done.stdout.startswith(str(program.parents[1])), done.stdout + done.stderr


def test_installed_commands(program: Path, tmp_path: Path) -> None:
    """`analyze`, also as HTML, `events`, `rules list` and `rules check` work from another folder."""
    environment = clean_environment()
    log = SAMPLES / "bot-2025-10-30.log"
    analyzed = run(program, "analyze", log, cwd=tmp_path, env=environment)
    assert analyzed.returncode == 2
    assert "positional_embedding" in analyzed.stdout
    page = run(program, "analyze", "--format", "html", log, cwd=tmp_path, env=environment)
    assert page.returncode == 2 and "positional_embedding" in page.stdout and "<svg" in page.stdout
    assert run(program, "events", log, cwd=tmp_path, env=environment).stdout.count("\n") > 50
    assert "torch.recompile" in run(program, "rules", "list", cwd=tmp_path, env=environment).stdout
    assert run(program, "rules", "check", cwd=tmp_path, env=environment).returncode == 0
    assert run(program, "--version", cwd=tmp_path, env=environment).returncode == 0
    assert run(program, "--no-such-option", cwd=tmp_path, env=environment).returncode == 64


def test_the_checkout_finds_its_rules() -> None:
    """An editable checkout reads the `rules/` folder at its top."""
    assert str(shipped_rules()) == str(ROOT / "rules")
    assert load_rules().rules
