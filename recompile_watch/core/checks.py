"""What a program can promise about a number that comes from the data, so that the compiler need not know it: ``torch._check``."""

import re

from recompile_watch.core.late import pattern

_RELATION = pattern(
    r"data-dependent expression (?:(?P<left>u\d+) (?P<sign><=?|>=?) (?P<right>-?\d+)|(?P<name>Eq|Ne)\((?P<first>u\d+), (?P<second>-?\d+)\))"
)
_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
# Sizes and plain numbers: what else is compared may be a tensor, and torch._check takes none (measured).
_NUMBER = r"(?:\w[\w.]*\.size\(-?\d\)|\w[\w.]*\.shape\[-?\d\]|len\(\w[\w.]*\)|\w[\w.]*\.item\(\)|[A-Za-z_]\w*|\d+)"
# A line of code that branches on one comparison, without a word that makes two of it.
_BRANCH = pattern(rf"^(?:(?:el)?if|while|assert) (?P<left>{_NUMBER}) (?P<sign><=?|>=?|==|!=) (?P<right>{_NUMBER})(?::|,|$)")
# A tensor that is cut at a number: its name, the dimensions in front and the number.
_CUT = pattern(r"\b(?P<tensor>[A-Za-z_][\w.]*)\[(?P<before>(?:(?::|\.\.\.), ?){0,5}):(?P<number>[A-Za-z_]\w*)\]")


def check_line(message: str, code: str | None) -> str:
    """The relation that the compiler could not decide, stated; its opposite is the other promise that a program can make.

    code: the line that asks, where the log shows it. Its own words hold for every call, the message's number is mostly a size of this one.
    """
    match = _RELATION.search(message)
    if match is None:
        return "torch._check(n > 0)  # the condition of the message, with your own variable, in front of the code that branches on it"
    number = match["second"] if match["name"] else match["right"]
    is_written = re.search(rf"(?<![\w.]){re.escape(number)}(?![\w.])", code or "") is not None
    if code and not is_written and (said := _of_code(code)) is not None:
        return said
    if match["name"]:
        sign, left = "==" if match["name"] == "Eq" else "!=", match["first"]
    else:
        sign, left = match["sign"], match["left"]
    return (
        f"torch._check(n {_OPPOSITE[sign]} {number})  # or torch._check(n {sign} {number}), whichever always holds; n is your variable behind {left};"
        " in front of the code that branches on it"
    )


def _of_code(code: str) -> str | None:
    """The promise in the words of the code: of a branch what it compares, of a cut that it leaves something out."""
    branch = _BRANCH.search(code)
    if branch is not None:
        always, else_always = (f"torch._check({branch['left']} {sign} {branch['right']})" for sign in (_OPPOSITE[branch["sign"]], branch["sign"]))
        return f"{always}  # or {else_always}, whichever always holds; in front of the branch"
    cut = _CUT.search(code)
    if cut is None or "..." in cut["before"]:
        return None
    number, length = cut["number"], f"{cut['tensor']}.shape[{cut['before'].count(',')}]"
    return f"torch._check_is_size({number}); torch._check({number} < {length})  # in front of the cut, where {number} is never the whole length"
