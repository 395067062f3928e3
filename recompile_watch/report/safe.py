"""Text from a log is data: nothing in it may steer a terminal, forge a line, or give a secret away."""

import re
from functools import lru_cache

from recompile_watch.core.late import pattern

MAX_CHARS = 400
_PREFIX = 8  # a text is cut roughly before it is searched for secrets, and exactly afterwards
_ESCAPES = pattern(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c|$)"  # OSC, DCS and their like, up to their end
    r"|\x1b[ -/]*[0-~]?|\x9b[0-?]*[ -/]*[@-~]",
    re.DOTALL,
)
_CSI_START = pattern(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*")  # a blank behind it belongs to it
_BREAKS = pattern(r"[\t\n\v\f\r\x85\u2028\u2029]+")
# C0, DEL, C1, bidirectional controls, zero-width characters, tags, lone surrogates.
_CONTROLS = pattern(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)
_SECRET_NAME = (
    r"(?:[\w-]*(?:api[_-]?key|secret(?:[_-]?key)?|access[_-]?key|private[_-]?key|passw(?:or)?d|passwd|credential)s?"
    r"|(?:[\w-]*[_-])?(?:auth|access|refresh|bearer|api|bot)?[_-]?token|key|sig|signature|apca-api-key-id|apca-api-secret-key)"
)
# Where a secret may stand, and before it lower-case texts of which one must be there: a search for those costs far less.
_SECRETS = (
    # Webhooks: the path is the secret.
    (("://",),
     pattern(r"(https?://(?:hooks\.slack\.com|(?:\w+\.)?discord(?:app)?\.com/api/webhooks|[\w.-]*webhook\.office\.com|api\.telegram\.org|"
                r"[\w.-]+\.logic\.azure\.com|chat\.googleapis\.com)/)[^\s'\"<>]+", re.IGNORECASE), r"\1***"),
    (("://",),
     pattern(r"(\b[a-z][a-z0-9+.-]{1,20}://)[^\s/@'\"]{1,400}@", re.IGNORECASE), r"\1***@"),
    (("key", "secret", "passw", "credential", "token", "sig"),
     pattern(rf"(?<![\w-])({_SECRET_NAME})(['\"]?\s*(?::|=(?!=))\s*['\"]?)(?!None\b|null\b|(?:\1|torch)\.\w+\()[^\s'\",;&}}\])]{{6,}}",
                re.IGNORECASE), r"\1\2***"),
    (("authorization",),
     pattern(r"\b((?:proxy-)?authorization['\"]?\s*[:=]\s*['\"]?)(?:\w+\s+)?[^\s'\",;]{6,}", re.IGNORECASE), r"\1***"),
    (("bearer",),
     pattern(r"\b(Bearer\s+)[\w.~+/=-]{8,}", re.IGNORECASE), r"\1***"),
    (("sk-", "sk_", "rk-", "rk_", "pk", "xox", "gh", "github_pat_", "glpat-", "hf_", "ak", "asia", "aiza", "ck", "eyj"),
     pattern(r"\b(?:sk|rk|pk)[-_](?:[a-z]+[-_])*[A-Za-z0-9_-]{16,}|\bxox[abeoprs]-[\w-]{8,}|\bgh[opsur]_\w{16,}|\bgithub_pat_\w{16,}"
                r"|\bglpat-[\w-]{16,}|\bhf_[A-Za-z0-9]{16,}|\b(?:AKIA|ASIA)[0-9A-Z]{12,}|\bAIza[\w-]{30,}|\b(?:PK|AK|CK)[A-Z0-9]{16,24}\b"
                r"|\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"), "***"),
    (("account",),
     pattern(r"\b(account(?:[ _-]?(?:number|id|no))?['\"]?\s*[:=#]?\s*['\"]?)(?=[A-Z0-9-]*\d{3})[A-Z]{0,3}[0-9A-F][0-9A-F-]{5,}",
                re.IGNORECASE), r"\1***"),
    (("pa",),
     pattern(r"\bPA(?=[A-Z0-9]*\d)[A-Z0-9]{9,12}\b"), "***"),
)  # fmt: skip


@lru_cache(maxsize=4096)
def safe(text: str, limit: int = MAX_CHARS) -> str:
    """One line of at most ``limit`` characters that a terminal shows as it stands, secrets masked as ``***``."""
    text = inert(text[: limit * _PREFIX])
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def inert(text: str) -> str:
    """The text without secrets and whatever steers a terminal, of any length."""
    seen = plain(text)
    if seen == text:
        return masked(text)
    # A sequence within a secret hides it, so it is sought without them; one that is cut takes its first letter, so it is sought before.
    return masked(plain(masked(_CSI_START.sub(r"\g<0> ", text))))


def plain(text: str) -> str:
    """The text without escape sequences, control characters and line breaks (which become blanks)."""
    if text.isascii() and text.isprintable():
        return text
    text = _BREAKS.sub(" ", _ESCAPES.sub("", text))
    return _CONTROLS.sub("", text)


def masked(text: str) -> str:
    """The text without webhook paths, tokens, keys, passwords and account numbers."""
    lower = text.lower() if text.isascii() else ""  # other letters may be equal to these in more ways
    for hints, secret, replacement in _SECRETS:
        if not lower or any(hint in lower for hint in hints):
            text = secret.sub(replacement, text)
    return text
