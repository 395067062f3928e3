"""The version of torch that a log prints of itself, as programs and their reports of the environment do.

Seen in: ComfyUI, transformers, vLLM, NeMo, Unsloth, ``python -m torch.utils.collect_env``, ``pip freeze``.
"""

from recompile_watch.core.late import pattern

_SAID = pattern(
    rb"(?:[Pp]y)?[Tt]orch(?P<named>[ _.]{0,2}(?:__version__|version)(?: \(GPU\?\))?[\"']?[ \t]{0,3}[:=]?[ \t]{0,3}[\"']?|==?| |: )"
    rb"(?P<version>2\.\d{1,2}(?:\.\d{1,2})?[a-z0-9]{0,12}(?:\+\w{1,20}(?:\.\w{1,20}){0,3})?)"
)
# What stands in front of a version that is only wished for, or of another name that ends in torch; and behind one.
_WISHED = pattern(
    rb"(?i)\w$|requir|need|minim|least|expect|support|than|compil|built|older|newer|since|install|collect|upgrad|only|if |for |from |to "
)
_AT_LEAST = pattern(rb"(?i)^\S* ?(?:or|and) (?:newer|later|higher|above|up)|^[<>*-]|^ ?(?:is required|required|not )")
_BEFORE_ALONE = pattern(rb"(?:^|[^\w ] ?|\s{2,})$")
_SIGNS = (b"version", b"orch=", b"orch: 2", b"orch 2")  # every match holds one; most logs none
_MOST = 200  # bytes of a line that are looked at on either side


def printed_version(head: bytes) -> str | None:
    """The version that the first bytes of a log name; None where they name none, or several."""
    if not any(sign in head for sign in _SIGNS):
        return None
    found = set()
    for match in _SAID.finditer(head):
        before = head[max(head.rfind(b"\n", 0, match.start()) + 1, match.start() - _MOST) : match.start()]
        after = head[match.end() : match.end() + _MOST].partition(b"\n")[0]
        # ``torch==2.8.0``, ``Torch: 2.6.0``: a line, or a cell, of its own; with the name of its build it is one that runs
        is_alone = b"version" not in match["named"] and not (b"+" in match["version"] or match["named"] == b"=")
        if is_alone and (not _BEFORE_ALONE.search(before) or (match["named"] == b" " and after.strip())):
            continue
        if not _WISHED.search(before) and not _AT_LEAST.search(after):
            found.add(match["version"].decode())
    return found.pop() if len(found) == 1 else None
