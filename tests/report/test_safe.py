"""Tests of `recompile_watch.report.safe`: log text steers nothing and gives nothing away."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recompile_watch.report.safe import _SECRETS, masked, safe


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("title\x1b]0;owned\x07 end", "title end"),
        ("link \x1b]8;;http://x\x1b\\here\x1b]8;;\x1b\\", "link here"),
        ("one\ntwo\r\nthree\tfour", "one two three four"),
        ("\u202egnp.exe\u2066", "gnp.exe"),
        ("a\x00b\x9b31mc\x7f", "abc"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("lone \ud800 surrogate", "lone  surrogate"),
        ("[bold red]markup[/] stays text", "[bold red]markup[/] stays text"),
        ("x" * 50, "x" * 19 + "…"),
    ],
)
def test_nothing_steers_the_terminal(text: str, shown: str) -> None:
    """Escape sequences, control and bidirectional characters and line breaks are gone; the length is bounded."""
    assert safe(text, 20 if text.startswith("x") else 400) == shown


@pytest.mark.parametrize(
    "text",
    [
        "posting to https://hooks.slack.com/services/T000/B000/SECRETSECRET",
        "https://discord.com/api/webhooks/123456/SECRETSECRET",
        "proxy http://user:SECRETSECRET@proxy:3128 failed",
        "OPENAI_API_KEY=SECRETSECRET",
        "{'api_key': 'SECRETSECRET', 'x': 1}",
        '"secret_key": "SECRETSECRET"',
        "APCA-API-SECRET-KEY: SECRETSECRET",
        "Authorization: Bearer SECRETSECRET",
        "sent Bearer SECRETSECRET.abc",
        "sk-SECRETSECRETSECRET1",
        "xoxb-1234567890-SECRETSECRET",
        "ghp_SECRETSECRETSECRET12",
        "hf_SECRETSECRETSECRET12",
        "AKIASECRETSECRET1234",
        "https://x.example/?token=SECRETSECRET&a=1",
        "password: SECRETSECRET",
    ],
)
@pytest.mark.parametrize("cut", ["", "\x9b ", "\x1b[", "\x1b[3"], ids=["plain", "C1", "CSI", "CSI with a number"])
def test_secrets_are_masked(text: str, cut: str) -> None:
    """Webhooks, tokens, keys and passwords do not reach any output, nor does an escape sequence that swallows their first letter help."""
    assert "SECRETSECRET" not in safe(cut + text)
    assert "***" in safe(cut + text)


@pytest.mark.parametrize("number", range(len(_SECRETS)))
def test_hints_hide_no_secret(number: int) -> None:
    """Whatever a pattern for secrets can match holds one of the texts that make it worth a search."""

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
    @given(st.from_regex(re.compile(_SECRETS[number][1].pattern, _SECRETS[number][1].flags)))
    def check(text: str) -> None:
        searched = text
        for _, pattern, replacement in _SECRETS:
            searched = pattern.sub(replacement, searched)
        assert masked(text) == searched

    check()


def test_account_numbers_are_masked() -> None:
    """Broker messages carry account numbers."""
    assert "123456789" not in safe("{'account_number': '123456789'}")
    assert "PA3ABCDEF123" not in safe("account PA3ABCDEF123 has no funds")


@pytest.mark.parametrize(
    "text",
    [
        "kv_cache._current_idx[7] == 0",
        "tensor 'key' size mismatch at index 0. expected 8, actual 9",
        "key == 'q_projection'",
        "token == 50256",
        "key = key.to(torch.float16)  # the dtype that the first call had",
        "token = torch.tensor(token)  # 0-dimensional",
        "num_samples=3072, samples_per_batch=384",
        "L['past_key_values'][0] == 1234567",
        "account available; returning empty list",
        "Recompiling function f in /srv/bot/toto/model/attention.py:105; 6/7: x == 0",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    """Guards that talk of keys and tokens are no secrets."""
    assert safe(text) == text


@given(st.text(alphabet=st.characters(codec=None), max_size=300))
def test_any_text_is_one_printable_line(text: str) -> None:
    """Whatever a log holds: one line, no control character, encodable."""
    shown = safe(text)
    assert "\n" not in shown and "\x1b" not in shown and "\x9b" not in shown and "\u202e" not in shown
    shown.encode()
