"""Definitions: parts of patterns that have a name, so that a rules file says each of them once.

The file's table ``[define]`` gives them, each as a pattern or as a list of alternatives; ``%{name}`` refers to one, as in
grok. A rule's text that is nothing but a reference stands for all of the alternatives.
"""

import re
from collections.abc import Iterable, Mapping

_SINGLE = ("pattern", "prefix", "leads", "ends", "orphan", "second")  # one pattern, or a list of its alternatives
PATTERN_KEYS = (*_SINGLE, "unless", "continues", "finds")
_REFERENCE = re.compile(r"%\{(\w+)\}")
Definitions = Mapping[str, tuple[str, ...]]  # the alternatives of each; none of them refers to another


def definitions_of(table: Mapping[str, object]) -> tuple[Definitions, list[str]]:
    """The definitions of a file, and the mistakes in them. Each may refer to those above it."""
    known: dict[str, tuple[str, ...]] = {}
    mistakes: list[str] = []
    for name, value in table.items():
        texts = _texts(value)
        if not texts or not name.isidentifier():
            mistakes.append(f"key 'define.{name}': write a name, and a pattern or a list of alternatives")
        mistakes += [f"key 'define.{name}': {missing}" for missing in _missing(texts or [], known)]
        known[name] = tuple(_written_out(texts or [], known))
    return known, mistakes


def without_references(entry: Mapping[str, object], known: Definitions) -> tuple[dict[str, object], list[str]]:
    """A rule's entry in which every reference and every list of alternatives is written out, and the mistakes in them."""
    whole = dict(entry)
    mistakes: list[str] = []
    for key in ("literal", *PATTERN_KEYS):
        texts = _texts(entry.get(key))
        if texts is None:
            continue
        mistakes += [f"key '{key}': {missing}" for missing in _missing(texts, known)]
        texts = _written_out(texts, known)
        whole[key] = "|".join(texts) if key in _SINGLE else texts
    return whole, mistakes


def _written_out(texts: Iterable[str], known: Definitions) -> list[str]:
    found: list[str] = []
    for text in texts:
        alone = _REFERENCE.fullmatch(text)
        found += known.get(alone[1], ()) if alone else [_REFERENCE.sub(lambda name: f"(?:{'|'.join(known.get(name[1], ()))})", text)]
    return found


def _missing(texts: Iterable[str], known: Definitions) -> list[str]:
    names = dict.fromkeys(name for text in texts for name in _REFERENCE.findall(text))
    return [f"'{name}' is not defined above in [define]" for name in names if name not in known]


def _texts(value: object) -> list[str] | None:
    """A text or a list of texts as a list; None for anything else."""
    texts = [value] if isinstance(value, str) else value
    return texts if isinstance(texts, list) and all(isinstance(text, str) for text in texts) else None
