"""What recompile-watch itself has printed: its reports quote torch's messages, and no line of them is one.

A job's log holds the report that the job printed, and a folder of logs the reports that were made of it. A line of one is known by what
only these reports have: their schema, their annotations' title, their columns; what Markdown shows to be pasted, by its title.
"""

from recompile_watch.core.late import pattern

_LINES = (
    rb"\"schema\\*\": ?\\*\"recompile-watch/|\"name\": ?\"recompile-watch\"[,}]",
    rb"::(?:error|warning|notice) (?:[^\n:]{0,4000},)?title=recompile-watch(?:%3A|::)",
    rb"<(?:p class=\"says\"|span class=\"(?:where|badge)|div class=\"paste\"|dl class=\"about\"|article class=\"card is-|th scope=\"row\")",
    rb"class=\"f-text\">",
)
_TITLE_BYTES = 1000
# The same at the beginning of a line, or behind what carries it: evidence, a title, and what quotes the message in a line to paste.
_BEGINNINGS = (
    rb"line \d{1,9} of [^\n:]{1,300}: | {10}(?:line \d{1,9}|[^\s:]{1,200}:\d{1,9})  \S|[> ] {1,9}\d{1,9} \| ",
    rb"## \xf0\x9f(?:\x94\xb4 critical|\x9f\xa0 warning): ",
    rb"(?:CRITICAL {2}|WARNING {3})(?:torch\.compile (?:failed|gave up)|A compiled wrapper stands [\w ]{1,40}|\S{1,200} was not compiled)[:,] ",
    rb"(?:CRITICAL {2}|WARNING {3})[\w.]{1,200} \(resumed [\w ]{1,40}\) was not compiled[:,] ",
    rb"WARNING {3}[\w.]{1,100}=\S{1,100} has no effect: no torch reads it",
    rb"# (?:at [^\n]{1,300}:\d{1,9}|inside the compiled function): | {14}(?:[^\n]{0,300} )?inside the compiled function: \S",
    rb"torch\.compiler\.set_stance\(\"force_eager\"\)  # then",
)
_LINE = pattern(b"|".join(_LINES) + rb"|(?:^|[Z|>] ?)(?:" + b"|".join(_BEGINNINGS) + b")")
# A title of the text report, and its second line.
_TITLE = pattern(rb"(?:^|\n)(?:CRITICAL {2}|WARNING {3})\S[^\n]{1,200}\Z")
_GOES_ON = pattern(rb" {10}\S")
_TO_PASTE = pattern(rb"\*\*(?:Do this|Or): [^\n]{1,300}\*\*(?: \(then restart\))?\r?\n[^\n]{0,200}\n[^\n]{0,200}```\r?\Z")


def is_of_report(line: bytes, before: bytes = b"") -> bool:
    """True for a line of a report, whatever carries it. before: the lines in front of it."""
    if _LINE.search(line) is not None:
        return True
    if before.endswith((b"```", b"```\r")):
        return _TO_PASTE.search(before[-_TITLE_BYTES:]) is not None
    return _GOES_ON.match(line) is not None and _TITLE.search(before[-_TITLE_BYTES:]) is not None
