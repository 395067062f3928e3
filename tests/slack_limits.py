"""Slack's limits, as its documentation has them: what a webhook answers with `invalid_blocks` otherwise.

Source: https://docs.slack.dev/reference/block-kit/blocks, read in November 2026.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

_ENTITY = re.compile(r"&(?:amp|lt|gt);")


def check_payload(payload: str | bytes) -> Mapping[str, object]:
    """The payload; raises AssertionError where Slack would refuse it, or where text of a log could have an effect in it."""
    body = json.loads(payload)
    assert isinstance(body, dict)
    assert isinstance(body["text"], str) and body["text"] and len(body["text"]) <= 4000
    assert not re.search(r"[<>]", body["text"]) and "&" not in _ENTITY.sub("", body["text"]), "the fallback text is mrkdwn"
    assert body["unfurl_links"] is False and body["unfurl_media"] is False and body["mrkdwn"] is False
    blocks = body["blocks"]
    assert 1 <= len(blocks) <= 50
    for block in blocks:
        _CHECKS[block["type"]](block)
    return body


def _header(block: Mapping[str, object]) -> None:
    _text(block["text"], 150)


def _section(block: Mapping[str, object]) -> None:
    _text(block["text"], 3000)
    assert set(block) == {"type", "text"}


def _context(block: Mapping[str, object]) -> None:
    elements = block["elements"]
    assert isinstance(elements, Sequence) and 1 <= len(elements) <= 10
    for element in elements:
        _text(element, 3000)


def _divider(block: Mapping[str, object]) -> None:
    assert set(block) == {"type"}


def _rich_text(block: Mapping[str, object]) -> None:
    elements = block["elements"]
    assert isinstance(elements, Sequence) and elements
    for element in elements:
        assert element["type"] in ("rich_text_section", "rich_text_preformatted")
        for leaf in element["elements"]:
            assert leaf["type"] == "text" and set(leaf) <= {"type", "text", "style"}, "no link, user, broadcast or emoji"
            assert 1 <= len(leaf["text"]) <= 3001


def _text(value: object, limit: int) -> None:
    """Only plain text: no mrkdwn, in which log text could be markup."""
    assert isinstance(value, Mapping)
    assert value["type"] == "plain_text" and value["emoji"] is False
    assert isinstance(value["text"], str) and 1 <= len(value["text"]) <= limit


_CHECKS = {"header": _header, "section": _section, "context": _context, "divider": _divider, "rich_text": _rich_text}
