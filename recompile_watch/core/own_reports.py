"""What recompile-watch itself has printed: its reports quote torch's messages, and no line of them is one.

A job's log holds the report that the job printed, and a folder of logs the reports that were made of it. A file that is a report as a whole
is known by its beginning, a line of one by what only these reports have: their schema, their annotations' title, their columns.
"""

from recompile_watch.core.late import pattern

_BEGINS = pattern(
    rb"# torch\.compile: \w+\r?\n\r?\nrecompile-watch \d[\w.+-]*, \d{4}-|\{\s+\"schema\": ?\"recompile-watch/"
    rb"|<!DOCTYPE html>[^\0]{0,4000}?<meta name=\"generator\" content=\"recompile-watch "
)
_LINES = (
    rb"\"schema\\*\": ?\\*\"recompile-watch/|\"name\": ?\"recompile-watch\"[,}]",
    rb"::(?:error|warning|notice) (?:[^\n:]{0,4000},)?title=recompile-watch(?:%3A|::)",
    rb"<(?:p class=\"says\"|span class=\"(?:where|badge)|div class=\"paste\"|dl class=\"about\"|article class=\"card is-|th scope=\"row\")",
    rb"class=\"f-text\">",
)
# The same at the beginning of a line, or behind what carries it: evidence, a title, and what quotes the message in a line to paste.
_BEGINNINGS = (
    rb"line \d{1,9} of [^\n:]{1,300}: | {10}(?:line \d{1,9}|[^\s:]{1,200}:\d{1,9})  \S|[> ] {1,9}\d{1,9} \| ",
    rb"## \xf0\x9f(?:\x94\xb4 critical|\x9f\xa0 warning): ",
    rb"(?:CRITICAL {2}|WARNING {3})(?:torch\.compile (?:failed|gave up)|\S{1,200} was not compiled): ",
    rb"# (?:at [^\n]{1,300}:\d{1,9}|inside the compiled function): | {14}(?:[^\n]{0,300} )?inside the compiled function: \S",
    rb"torch\.compiler\.set_stance\(\"force_eager\"\)  # then",
)
_LINE = pattern(b"|".join(_LINES) + rb"|(?:^|[Z|>] ?)(?:" + b"|".join(_BEGINNINGS) + b")")


def is_report(head: bytes) -> bool:
    """True when a file begins as a report for a page does."""
    return _BEGINS.match(head) is not None


def is_of_report(line: bytes) -> bool:
    """True for a line of a report, whatever carries it."""
    return _LINE.search(line) is not None
