"""Tests of kept notices: they come back as they were, and those of another version are told as such."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from recompile_watch.core.errors import StoreError
from recompile_watch.core.notice_json import notice_from_json, notice_to_json
from recompile_watch.core.notices import Notice, NoticeSort
from tests.notices import ALERT, QUOTES, notice


def kept(made: Notice) -> Mapping[str, object]:
    """The notice as it comes out of a file."""
    value = json.loads(json.dumps(notice_to_json(made)))
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize(
    "made",
    [
        notice(),
        notice(NoticeSort.DIGEST, ALERT, QUOTES),
        replace(notice(NoticeSort.TEST), alerts=()),
        replace(notice(), possible_duplicate=True, note="x"),
        notice(NoticeSort.OPENED, replace(ALERT, what="lone \ud800 \x00 🔥", since=1)),
    ],
)
def test_a_notice_comes_back_as_it_was(made: Notice) -> None:
    """Everything of a notice survives JSON: enums, tuples, advice, excerpts, what is None."""
    assert notice_from_json(kept(made)) == made


def test_a_field_of_a_later_version_is_passed_over_and_a_missing_one_gets_its_default() -> None:
    """A notice kept by a slightly older or newer version is still told."""
    value = dict(kept(notice()))
    del value["note"]
    assert notice_from_json({**value, "mood": "fine"}) == notice()


@pytest.mark.parametrize(
    "change", [{"alerts": "abc"}, {"alerts": [3]}, {"sort": "sung"}, {"made_at": "noon"}, {"left_out": True}, {"id": None}, {"host": 3}]
)
def test_what_does_not_fit_is_an_error_of_the_store(change: Mapping[str, object]) -> None:
    """A value of a wrong kind is told in one line."""
    with pytest.raises(StoreError, match="another version"):
        notice_from_json({**kept(notice()), **change})


@pytest.mark.parametrize("value", [None, 3, [], {}, "x"])
def test_what_is_no_notice_is_an_error_of_the_store(value: object) -> None:
    """So is anything else."""
    with pytest.raises(StoreError):
        notice_from_json(value)
