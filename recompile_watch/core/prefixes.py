"""What stands in front of a message: physical lines become pieces, each a message with its prefixes split off.

Three layers are taken off, from the outside in:

* *transport*: what carried the line (Docker json-file, CRI, journald, syslog, kubectl, compose, Ray, Slurm, CI,
  a JSON log, a Markdown quote, a notebook). Its stable part is the piece's ``channel``: two lines belong to
  one stream only when their channels are equal.
* *application*: a timestamp, level and logger name put there by the application's own logging.
* *torch*: the glog prefix of torch 2.2 and later, or the bracket prefix of 2.1 and the torchdynamo of 2022.

Source of torch's formats: torch/_logging/_internal.py (TorchLogsFormatter.format), torch 2.1 to 2.15.
A record of torch repeats its glog prefix on every line, and each line of one record carries the very same bytes.
"""

import re
from itertools import pairwise

from recompile_watch.core.carriers import Carried, json_string, read_cri, read_json, read_jsons, read_logfmt
from recompile_watch.core.layers import Peeling, peel_layer
from recompile_watch.core.prefix_grammar import (
    ANSI,
    ANSI_WRECK,
    BASIC_INSIDE,
    BOLD,
    BRACKET_INSIDE,
    BREAK,
    COLOURS_END,
    CRI_INSIDE,
    CSV_BODY,
    DIALECT_INSIDE,
    ENTITY,
    GLOG_INSIDE,
    HARMLESS,
    LINK,
    MAX_LAYERS,
    MAY_PEEL,
    NUMBERED,
    QUOTED_LINE,
    REPEATED,
    SHOWN_COLOURS,
    SOURCE,
    STRING_BODY,
    STRING_ELEMENT,
    STRING_ENTRY,
    STRING_REST,
    SYSLOG_NEWLINES,
    TAG,
    TOLD,
    TORCH_STARTS,
    Piece,
    front_form,
)


def peel(raw: bytes) -> list[Piece]:
    """The pieces of one physical line (without its newline); several when messages were glued together.

    A carriage return starts a new piece (progress bars), so does a torch prefix in the middle of the line
    (torn writes, lost newlines) and every line inside a JSON log's message field.
    """
    if b"\x1b" in raw:
        raw = ANSI.sub(b"", raw)
    if COLOURS_END in raw or b"#033[" in raw or b"m(" in raw:
        raw = (SHOWN_COLOURS if COLOURS_END in raw else ANSI_WRECK).sub(b"", raw)
    if b"\x00" in raw:
        raw = raw.replace(b"\x00", b"")
    if b"&" in raw and ENTITY.search(raw):
        import html  # its table of names takes milliseconds to load

        raw = html.unescape(raw.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    if b"\xc2\xa0" in raw:  # blanks of a web page
        raw = raw.replace(b"\xc2\xa0", b" ")
    if b"<br" in raw or b"</" in raw:  # a web page's end of a line
        raw = BREAK.sub(b"", raw)
    if b"](" in raw:
        raw = LINK.sub(rb"\1", raw)
    if b"**" in raw and raw.lstrip(b" >").startswith(b"**"):
        raw = BOLD.sub(rb"\1\2", raw)
    # The container runtime's lines hold carriage returns of what they carry, and one of their own in a file from Windows.
    if b" std" in raw:
        carried = _peel_runtime(raw.removesuffix(b"\r"))
        if carried is not None:
            return carried
    first, *others = _parts(raw)
    if not others:
        return _peel_segment(first)
    is_entry = b"\r" not in raw
    return _peel_segment(first) + [piece._replace(same_entry=is_entry) for piece in _peel_others(Peeling(), first, others)]


def first_line(first: bytes) -> bytes:
    """The first line of a log; where that was cut inside of a JSON entry, a notebook's or bold text, only what is left of the message."""
    if first.endswith(b"**") and first.count(b"**") == 1:
        return first[:-2]
    rest = STRING_REST.fullmatch(first) if b'"' in first else None
    text = None if rest is None else json_string(rest["body"])
    return first if text is None or b"\n" in text else text


_TOLD_BYTES = 40  # of a message that find it in its line: it may go on in others
_BEGINS_QUOTATION = (b" ", b"\t", b'"', b"|")


def is_quotation(raw: bytes, text: bytes, before: bytes) -> bool:
    """True for a string, a comment or an import in a program's source, a program's help, and a row of a Markdown table: they quote messages.

    text: its message. before: the line in front. The output in a notebook is a list of strings: something in front goes on to each.
    """
    line = raw.strip()
    if SOURCE.match(line) is not None or SOURCE.match(text.strip()) is not None or QUOTED_LINE.search(raw) is not None:
        return True
    if raw[:1] not in _BEGINS_QUOTATION:
        return False
    if line[:1] == b"#":
        return raw[:4] == b"    "
    if line[:2] == b"| ":
        return line[-1:] == b"|" and b" | " in line[2:]
    if line[-1:] == b'"':
        goes_on = before.rstrip().endswith((b"[", b",")) or (not before and line.endswith(b'\\n"'))
        goes_on = goes_on or (raw[:1] == b'"' and before.rstrip().endswith(b":"))  # somebody's sentence; a docstring is indented
        return not goes_on and STRING_ELEMENT.fullmatch(line) is not None
    if line[-2:] == b'",':
        return before.rstrip().endswith((b"(", b"=")) and STRING_ELEMENT.fullmatch(line) is not None
    return False


def is_told(raw: bytes, message: bytes) -> bool:
    """True for a message in the quotes of a line that a program logged as no trouble of its own: what somebody wrote to it, or a document says."""
    told = TOLD.search(raw)
    if told is None:
        return False
    at = raw.find(message[:_TOLD_BYTES], told.end())
    return at >= 0 and told["quote"] not in raw[told.end() : at].replace(b"\\" + told["quote"], b"")


def are_plain(lines: bytes) -> bool:
    """True for indented lines that ``peel`` would give back as they stand: bare, nothing taken off."""
    doubtful = lines.translate(None, HARMLESS)
    if not doubtful:
        return True
    # Most tables hold no more than "Buy & Hold" and "edges: move=15.573".
    if not doubtful.strip(b"&:") and lines.count(b"& ") + lines.count(b": ") == len(doubtful):
        return b":" not in doubtful or NUMBERED.search(b"\n" + lines) is None
    return MAY_PEEL.search(lines) is None


def _parts(line: bytes) -> list[bytes]:
    """The parts of a line that syslog joined or that carriage returns overwrote, one at least."""
    if b"#012" in line and SYSLOG_NEWLINES.search(line) is not None:
        return line.split(b"#012")
    return _overwritten(line) if b"\r" in line else [line]


def _overwritten(line: bytes) -> list[bytes]:
    """The parts of a line that carriage returns overwrote, one at least."""
    return [part for part in line.split(b"\r") if part] or [b""]


def _peel_others(state: Peeling, first: bytes, others: list[bytes]) -> list[Piece]:
    """The pieces of the parts behind the first: what carried the line carried all of them."""
    if not others:
        return []
    carrier = state.fork()
    _peel_layers(carrier, first, transport_only=True)
    return [piece for part in others for piece in _split(carrier.fork(), part)]


def _peel_runtime(raw: bytes) -> list[Piece] | None:
    """The pieces of a line of the container runtime, or of several whose newlines were lost; None when it is none."""
    begins = [match.start() for match in CRI_INSIDE.finditer(raw)]
    if len(begins) < 2:
        return _peel_nested(Peeling(), raw)
    front = raw[: begins[0]]
    lines = [_peel_nested(Peeling(), front + _without_next(raw[begin:end], front)) for begin, end in pairwise([*begins, len(raw) + 1])]
    return None if lines[0] is None else [piece for pieces in lines for piece in pieces or ()]


_RUNTIME_BYTES = 48  # what the container runtime puts in front of a line ends before them
_NO_HEADER_INSIDE = (-1, 19, 23)  # where the first bar of the bot's headers stands when nothing stands in front of them
_HEADER_BARS = {-1: 0, 19: 5, 23: 2}  # no more has a line of the bot's, but for its compact form and loguru's own
_OBJECT = (b"{", b'[{"', b'[ {"', b',{"')  # an array has one on each line as well, the comma in front or behind


def _peel_segment(raw: bytes) -> list[Piece]:
    start = raw[:1]
    if (start in b"{[," and raw.startswith(_OBJECT)) or (start == b" " and raw.lstrip()[:1] == b"{"):
        entries = read_jsons(raw)
        if entries:
            return [piece for entry in entries for piece in _peel_carried(entry)]
    elif start in (b'"', b" ", b"\t") and raw.rstrip().endswith((b'"', b'",')):
        element = STRING_ELEMENT.fullmatch(raw) or STRING_ENTRY.fullmatch(raw)
        text = json_string(element["body"]) if element else None
        if text is not None:
            text = ANSI.sub(b"", text)
            return [piece for line in text.split(b"\n") if line for piece in _peel_line(line)] or _split(Peeling(), b"")
    return _split(Peeling(), raw)


def _peel_line(line: bytes) -> list[Piece]:
    nested = _peel_runtime(line) if b" std" in line else None
    return _split(Peeling(), line) if nested is None else nested


def _split(state: Peeling, raw: bytes) -> list[Piece]:
    """Peels one text, after cutting it where a torch prefix stands inside it."""
    if raw[-1:] == b"}" and b'{"' in raw:
        nested = _peel_nested(state, raw)
        if nested is not None:
            return nested
    if (b'msg="' in raw or b'event="' in raw or b"event='" in raw) and raw[:1].isalpha():
        logged = read_logfmt(raw)
        if logged is not None:
            return _peel_carried(logged, state)
    cuts = [m.start() for m in GLOG_INSIDE.finditer(raw)] if b"] " in raw or raw.endswith(b"]") else []
    if b": [" in raw:
        cuts = sorted({*cuts, *(m.start() for m in BRACKET_INSIDE.finditer(raw))})
    if b":torch" in raw:
        cuts = sorted({*cuts, *(m.start() for m in BASIC_INSIDE.finditer(raw))})
    torn: set[int] = set()
    bar = raw.find(b" | ")
    if bar not in _NO_HEADER_INSIDE or raw.count(b" | ") > _HEADER_BARS[bar]:
        headers = [m.start() for m in DIALECT_INSIDE.finditer(raw)]
        cuts, torn = sorted({*cuts, *headers}), {at for at in headers if raw[at - 1 : at].isalnum() or raw[at - 1 : at] == b"."}
    base = state.fork()
    at = _peel_layers(base, raw, transport_only=True) if cuts else 0
    inner = [cut for cut in cuts if cut > at]
    if not inner:
        return [_peel_text(state, raw)]
    front, first = raw[:at], raw[: inner[0]]
    if TAG.fullmatch(first, at) is not None or (len(inner) > 1 and _begins_each(first, raw[: inner[1]])):
        front = first
    begins = {**dict.fromkeys(inner, base), **dict.fromkeys(_fronts(raw, front, inner), state.fork())}
    lead = _peel_text(state, first if front is first else _without_next(first, front))
    pieces = [lead._replace(torn=inner[0] in torn)] if lead.text.strip(b" \t>*`") or lead.torch else []
    for begin, end in pairwise([*sorted(begins), len(raw)]):
        quoted = _quoted_at(raw, begin)
        if quoted is not None:
            return pieces + [piece for line in quoted for piece in _split(base.fork(), line)]
        part = _unmarked(raw[begin:end], raw[:begin])
        piece = _peel_text(begins[begin].fork(), part.removesuffix(b"\\n") if end == len(raw) else _without_next(part, front).rstrip())
        pieces.append(piece._replace(torn=end in torn))
    return pieces


def _fronts(raw: bytes, front: bytes, torch: list[int]) -> list[int]:
    """Where in a line of several of torch's prefixes others begin that were joined with it: with the same front, and none of torch's behind it."""
    if len(torch) < 2 or len(front.strip()) < _MIN_FRONT:
        return []
    form = re.compile(rb"(?<=\s)" + front_form(front.strip()) + rb"\s*(?=\S)")
    return [match.start() for match in form.finditer(raw, torch[0]) if match.end() not in torch]


MAX_FRONT = 160  # bytes of what stands in front of torch's prefix
_MIN_FRONT = 8  # a shorter one, such as a line's number, can stand in any message


def _without_next(part: bytes, front: bytes) -> bytes:
    """A line that was joined with the next one, without how that begins: like its own front; a newline may be spelled out."""
    part = part.removesuffix(b"\\n")  # a newline that was printed as two characters
    return part[: _next_at(part, front)]


def _begins_each(first: bytes, part: bytes) -> bool:
    """True when what stands in front of torch's first prefix stands in front of its second one, too."""
    return len(first) <= MAX_FRONT and TORCH_STARTS.match(first) is None and _next_at(part, first) < len(part)


def _next_at(part: bytes, front: bytes) -> int:
    """Where at the end of a line the next one begins, like this front; the line's length when it does not."""
    form = re.compile(front_form(front.rstrip()) + rb"\s*$") if front.strip() else None
    begin = None if form is None else form.search(part, max(len(part) - 2 * len(front) - 20, 0))
    return len(part) if begin is None else begin.start()


def _quoted_at(raw: bytes, begin: int) -> list[bytes] | None:
    """The lines of a string that begins here, as JSON inside JSON, logfmt and tables write one; None when none does."""
    body = STRING_BODY.match(raw, begin) if raw[begin - 1 : begin] == b'"' else None
    if body is None:
        return None
    cell = CSV_BODY.match(raw, begin)
    if cell is not None:
        return [cell["body"].replace(b'""', b'"')]
    return (json_string(body["body"]) or body["body"]).removesuffix(b"\n").split(b"\n")


def _peel_nested(state: Peeling, raw: bytes) -> list[Piece] | None:
    """The pieces of a line of the container runtime, or of a JSON log, that another carrier holds; None when there is none.

    An application that prints JSON behind a level and a logger of its own quotes it.
    """
    outer = state.fork()
    at = len(raw) - len(raw.lstrip(b" "))
    for _ in range(MAX_LAYERS):
        tag = TAG.match(raw, at)
        if tag is not None and raw[tag.end() : tag.end() + 1] == b"{":
            outer.channel.append(b"" if tag[0][:-1].isdigit() else tag[0].rstrip())  # of numbers each line has its own
            at = tag.end()
        carried = _carried_at(raw, at)
        if carried is not None:
            return _peel_carried(carried, outer)
        after = peel_layer(outer, raw, at)
        if after is None or outer.torch or outer.is_logged:
            return None
        at = after
    return None


def _carried_at(raw: bytes, at: int) -> Carried | None:
    if raw[at : at + 1] == b"{":
        return read_json(raw[at:])
    return read_cri(raw[at:]) if raw[at : at + 2] == b"20" else None


def _peel_text(state: Peeling, raw: bytes) -> Piece:
    position = _peel_layers(state, raw)
    text = raw[position:]
    if text.endswith((b"]", b" for more options.)")):  # the first of them tells of Ray's settings
        text = REPEATED.sub(b"", text)
    elif text.endswith((b"`", b" |")):
        text = _unmarked(text, raw[:position].partition(state.torch)[0] if state.torch else raw[:position])
    return state.piece(text)


_MARKS = ((b"b'", b"'"), (b"`", b"`"), (b"| ", b" |"))  # of Python's bytes, of code in Markdown and of a table's row
_MARKED = 20  # bytes between a mark and a prefix: a rank


def _unmarked(text: bytes, front: bytes) -> bytes:
    """The text without a mark at its end that closes the one in front of it."""
    if b"<br" in text:
        text = BREAK.sub(b"", text)
    closing = next((closing for opening, closing in _MARKS if opening in front[-_MARKED:] and text.rstrip().endswith(closing)), b"")
    return text.rstrip().removesuffix(closing) if closing else text


def _peel_layers(state: Peeling, raw: bytes, *, transport_only: bool = False) -> int:
    """Takes off every layer in front; the position where the message begins."""
    position = 0
    for _ in range(MAX_LAYERS):
        if transport_only and TORCH_STARTS.match(raw, position):
            break
        after = peel_layer(state, raw, position)
        if after is None:
            break
        position = after
        if state.torch:
            break
    return position


def _peel_carried(carried: Carried, outer: Peeling | None = None) -> list[Piece]:
    """The pieces of what a carrier holds; a line that it cut stays unpeeled until its rest has come.

    outer: what carried the carrier's line.
    """
    state = Peeling() if outer is None else outer
    state.channel = state.channel + carried.channel
    state.rank = state.rank if carried.rank is None else carried.rank
    state.pid = state.pid if carried.pid is None else carried.pid
    if carried.stamp is not None:
        state.see_stamp(carried.stamp)
        state.headed = True
    carrier = b"\x00".join(state.channel)
    pieces: list[Piece] = []
    for number, line in enumerate(carried.lines):
        if number == len(carried.lines) - 1 and not carried.is_whole:
            found = [state.piece(line)._replace(continues=True)]
        else:
            first, *others = _overwritten(line)
            # An agent that takes the container runtime's lines for text carries them as they stand.
            nested = _peel_nested(state.fork(), first) if b" std" in first[:_RUNTIME_BYTES] else None
            found = (nested or _split(state.fork(), first)) + _peel_others(state, first, others)
        if found[0].carrier is None:
            found[0] = found[0]._replace(carried=line, carrier=carrier)
        pieces += [piece._replace(same_entry=piece.same_entry or number > 0) for piece in found]
    return pieces
