"""The control socket on its own."""

import selectors
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from recompile_watch.daemon.control import ControlSocket, ask


@pytest.mark.parametrize("depth", [0, 4], ids=["short", "deeper than a socket's address is long"])
def test_a_question_is_answered(tmp_path: Path, depth: int) -> None:
    """However long the path of the state directory is."""
    folder = tmp_path.joinpath(*(["d" * 60] * depth))
    folder.mkdir(parents=True, exist_ok=True)
    with selectors.DefaultSelector() as selector, ThreadPoolExecutor(1) as other:
        control = ControlSocket(folder, selector, lambda question: {"heard": question["say"]})
        answer = other.submit(ask, folder, {"say": "hello"})
        while not answer.done():
            for key, _ in selector.select(0.01):
                key.data()
        control.close()
    assert answer.result() == {"heard": "hello"} and not list(folder.iterdir())
