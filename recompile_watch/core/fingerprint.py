"""Names of problems that stay the same between runs, machines and torch versions.

Two events show the same problem when kind, function, file and guard agree once everything is taken out that a
second run would print differently: numbers, addresses, object ids, values, folders above the last one.
"""

import hashlib
import re
from functools import lru_cache

ID_DIGITS = 16
_SHORT_CHARS = 300
_TEXT_CHARS = 2000  # the head of a message names the problem; hostile ones have megabytes
_LOCAL = re.compile(r"\bL\['(\w+)'\]")  # torch up to 2.5 writes L['x'], later ones x
_VALUE = re.compile(r"(?<=[=!]= )(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\[[^\[\]]*\])")
_KIND_OF_VALUE = re.compile(r", type=<class '[^'\n]*'>|(?<=dtype mismatch\. expected )\w+, actual \w+")  # torch up to 2.9 prints no type
_MISSING_KEY = re.compile(r"(?<=^KeyError on )(.{1,200})\[[^\[\]]+\]$")
_BACKENDS = re.compile(r"(?<=BACKEND_MATCH failure: torch\.compile detected different backend callables\.).*", re.DOTALL)  # as they print themselves
# One branch on a tensor in the words of several versions; torch 2.4 to 2.6 have one for a function that is called and another for the frame itself.
_BRANCH = re.compile(
    r"(?:Unsupported: )?(?:Dynamic control flow is not supported at the moment|generic_jump\b|Data-dependent (?:jump|branching)\b)", re.IGNORECASE
)
_QUOTED_ID = re.compile(r"(['\"])(?=[^'\"\s]*\d)[\w.:+/=-]{20,}\1")
_HEX = re.compile(r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{8,}\b")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])")
_PATH = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][^\\/\s'\",:()]+){3,}")
_SPACE = re.compile(r"\s+")
_RANDOM_NAME = re.compile(r"tmp[\w-]{4,}|(?:pytest|ipykernel|pid)[-_]\d+|[0-9a-f]{8,}|\d+")


def fingerprint(kind: str, function: str | None, file: str | None, subject: str) -> str:
    """16 hexadecimal digits that name a problem.

    subject: what the problem is about besides the place: a guard, a reason, a symbol, already ``normalised``.
    """
    parts = (kind, function or "", place_of(file), subject)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:ID_DIGITS]


def normalised(text: str) -> str:
    """``tensor 'x' size mismatch at index 0. expected 8, actual 9`` with N for each number, and so on."""
    head = text[:_TEXT_CHARS]
    return (_short if len(head) <= _SHORT_CHARS else _long)(head)


def _normalised(text: str) -> str:
    if _BRANCH.match(text) is not None:
        return "data-dependent branch"
    text = _LOCAL.sub(r"\1", text)
    text = _KIND_OF_VALUE.sub("", _VALUE.sub("S", text))
    text = _BACKENDS.sub("", _MISSING_KEY.sub(r"\1[S]", text))
    text = _PATH.sub(lambda match: place_of(match[0]), text)
    text = _QUOTED_ID.sub("S", text)
    text = _NUMBER.sub("N", _HEX.sub("H", text))
    return _SPACE.sub(" ", text).strip()


# A storm repeats few guards very often, and each event of the watch is looked at several times; a long text costs a millisecond.
_short, _long = lru_cache(maxsize=4096)(_normalised), lru_cache(maxsize=1024)(_normalised)


def place_of(file: str | None) -> str:
    """``attention.py`` and its folder, ``model/attention.py``; names that change from run to run become T."""
    if not file:
        return ""
    if file.startswith("<"):
        return _NUMBER.sub("N", _HEX.sub("H", file.replace("-", " ")))
    names = [name for name in file.replace("\\", "/").split("/") if name][-2:]
    return "/".join(map(_steady_name, names))


def _steady_name(name: str) -> str:
    stem, dot, ending = name.rpartition(".")
    if not dot:
        stem, ending = name, ""
    return f"T{dot}{ending}" if _RANDOM_NAME.fullmatch(stem) else name
