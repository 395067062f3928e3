"""The control socket on its own."""

import selectors
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from recompile_watch.core.errors import StoreError
from recompile_watch.daemon.control import MAX_QUESTION_BYTES, ControlSocket, ask


def test_a_long_question_is_answered(tmp_path: Path) -> None:
    """As long as a diagnosis may be; what is longer still is dropped, and the asker is told in a line."""
    with selectors.DefaultSelector() as selector, ThreadPoolExecutor(1) as other:
        control = ControlSocket(tmp_path, selector, lambda question: {"heard": len(str(question["say"]))})
        answers = [other.submit(ask, tmp_path, {"say": "x" * size}) for size in (MAX_QUESTION_BYTES // 2, 2 * MAX_QUESTION_BYTES)]
        while not all(answer.done() for answer in answers):
            for key, _ in selector.select(0.01):
                key.data()
        control.close()
    assert answers[0].result() == {"heard": MAX_QUESTION_BYTES // 2}
    with pytest.raises(StoreError, match="does not answer"):
        answers[1].result()


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
