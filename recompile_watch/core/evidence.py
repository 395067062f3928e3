"""What the log says of one event, in one line, for people: the evidence of findings and of incidents."""

from recompile_watch.core.events import Event
from recompile_watch.core.late import pattern
from recompile_watch.core.patterns import RESUMED

MAX_LINES = 4  # numbers of lines of code that one sentence names
_SUFFIX = 90
_LONG_PATH = pattern(r"(?<![\w.…/~])/(?:[^/\s'\":,;]+/)+?(?=[^/\s'\":,;]+/[^/\s'\":,;]+(?![^\s'\":,;]))")
_GENERATED = pattern(r"\b(c[a-z2-7]{7})[a-z2-7]{41,48}(?=\.)")  # the name of a file that inductor wrote


def evidence_text(event: Event) -> str:
    """What the log says, in one line, such as ``Recompiling function f in m.py:9; 6/7: x == 0``."""
    place = f" in {event.file}:{event.line_no}" if event.file and event.line_no else f" in {event.file}" if event.file else ""
    reason = ""
    if event.reasons:
        first = event.reasons[0]
        reason = f"{first.entry}: {first.text}" if first.entry else first.text
    extra = event.extra
    name = event.function or "?"
    match event.kind:
        case "recompile" if extra.get("derived"):
            return f"torchdynamo start compiling {name}{place}, for the frame's compile id {event.compile_id}"
        case "recompile":
            return f"Recompiling function {name}{place}; {reason or 'no reason printed'}"
        case "recompile_limit_hit":
            limit = f"hit config.{extra.get('limit_name') or 'recompile_limit'} ({shown(extra.get('limit'))})"
            return f"torch._dynamo {limit}" + (f"; last reason: {reason}" if reason else "") + f"; function '{name}'{place}"
        case "recompile_limit_error" if extra.get("exception") and event.function:
            at = f"{extra['exception']} at {extra.get('limit_name') or 'recompile_limit'} ({shown(extra.get('limit'))})"
            return at + (f"; last reason: {reason}" if reason else "") + f"; function '{name}'{place}"
        case "graph_break":
            return f"Graph break{place}: {broken_on(reason, event)}" + (f"; not resumed: {why}" if (why := extra.get("not_resumed")) else "")
        case "cudagraph_skip":
            instances = f" ({extra['instances']} instances)" if extra.get("instances") else ""
            return f"skipping cudagraphs due to {reason}{instances}" + (f"; found from {name}{place}" if event.file else "")
        case "compile_error" if extra.get("exception"):
            where = f"; in {name}{place}" if event.function else place and f"; called{place}"
            return failure(extra["exception"], extra.get("message")) + where
        case "synthetic_quote":
            return f"{extra.get('symbol') or '?'}: synthetic bid/ask, {str(extra.get('cause') or 'cause unknown').replace('_', ' ')}"
        case "ineffective_setting":
            return f"{extra.get('setting')}={value}" if (value := extra.get("value")) is not None else str(extra.get("setting"))
        case "limit_not_in_force" | "mode_drift":
            return str(extra.get("message"))
    message = extra.get("message")
    said = message if isinstance(message, str) and message else reason
    fields = ", ".join(f"{key}={shown(value)}" for key, value in extra.items() if key != "message" and isinstance(value, str | int | float))
    where = f"{event.function}{place}" if event.function else place.removeprefix(" in ")
    return "; ".join(part for part in (event.kind.replace("_", " "), fields, said, where) if part)


def broken_on(reason: str, event: Event) -> str:
    """Why torch broke the graph, with what it met there, which torch from 2.7 on says apart."""
    operation = event.extra.get("operation")
    return f"{reason}: {operation}" if operation else reason


def shown(value: object) -> str:
    """A field's value; "?" where the log does not show it."""
    return "?" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def failure(exception: object, message: object) -> str:
    """What was raised, as Python prints it."""
    return ": ".join(str(part) for part in (exception, message) if part)


def shown_function(name: str) -> str:
    """``append (resumed at line 25)`` for the function that Dynamo makes of the code behind a graph break."""
    resumed = RESUMED.search(name)
    if resumed is None:
        return name
    at = f"resumed at line {resumed['line']}" if resumed["line"] else "resumed behind a graph break"
    return f"{name[: resumed.start()]}{resumed['name']} ({at})"


def shorter_paths(text: str) -> str:
    """A text whose long paths have lost their first folders; addresses of pages keep theirs."""
    return _LONG_PATH.sub("…/", text)


def short(text: str) -> str:
    """A text that fits behind a title: long ones lose the first folders of their paths, then their end."""
    text = " ".join(text[: _SUFFIX * 10].split())
    if len(text) > _SUFFIX:
        text = _GENERATED.sub(r"\1…", shorter_paths(text))
    return text if len(text) <= _SUFFIX else text[: _SUFFIX - 1].rstrip() + "…"
