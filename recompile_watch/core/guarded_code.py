"""The line of code that needed a guard, as torch names it behind the guard: ``n == 3  # for _ in range(n):  # model.py:5 in f``.

Says what that line does with the value, where this decides what helps: a loop counts to it, a dict is looked up by it.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from recompile_watch.core.late import pattern
from recompile_watch.core.sightings import decode

# Behind the code and its place, where the value was dynamic until the code fixed it: torch's own place (torch/_guards.py: SLoc).
_FIXED = pattern(rb"\((?P<code>[^()\s]{1,200}\.py:\d+ in \w+)\)\s*$")
_PLACE = pattern(rb"(?P<place>[^\s()]{1,200}\.py:\d+) in (?P<function>[\w<>]{0,100})")
_VALUE = pattern(rb"(?:^|[-:] {1,9})(?P<source>[A-Za-z_][^\s=()]{0,300}) == (?:(?P<text>['\"])|-?\d+\s*$)")
_LENGTH = pattern(rb"(?:^|[-:] {1,9})(?:not |len\()(?P<source>[A-Za-z_][^\s=()]{0,300})(?:\) [!=]= \d+)?\s*$")
# A dict that has, or lacks, a number as its key: the size of an input, as a rule.
_NUMBER_AS_KEY = pattern(rb"(?:^|[-:] {1,9})(?:not )?___dict_contains\(\d{1,12}, (?P<source>[A-Za-z_][^\s=()]{0,300})\)\s*$")
_LAST_NAME = pattern(rb"(?<!\w)(?!cell_contents$)(\w+)(?:'\])?$")
_NAME_IN_HINT = pattern(rb'\(HINT: guard on "(\w{1,100})"\)')
_NUMBER = pattern(rb" == -?\d[\d.e+-]*\s*$")
_MATH = pattern(rb"\bmath\.[a-z]\w*\(")
_OF_A_TENSOR = b".item() == "
_FLOAT = pattern(rb" == -?\d+(?:\.\d|e-)")
# Operations that make a float constant and take no tensor for it (measured on torch 2.13: each value compiles again, a tensor breaks the graph).
_TAKES_NO_TENSOR = pattern(
    rb"\b(?:interpolate|upsample\w*|\w*dropout\w*|cross_entropy|huber_loss|smooth_l1_loss|layer_norm|scaled_dot_product_attention|batch_norm|bernoulli"
    rb"|triplet_margin_loss|margin_ranking_loss)\((?P<arguments>[^\n]*)"
)
_OWN = (b"self.", b"L['self']", b"G[")
_LOOPS = rb"^for [\w, ()]{1,100} in (?:\w{1,20}\()?(?:[\w.]{1,200}\.)?%s\b"
_FILLS = rb"(?<!\w)%s(?:\.(?:append|appendleft|extend|insert|add|update|pop|popleft|popitem|remove)\(|\[[^\n=]{1,100}\] [-+*]?= )"
_COUNTS = pattern(rb"\brange\(|\bwhile\b")
# A text in another text: an f-string, or what is logged.
_FORMATS = rb"\bf[\"'][^\n]*\{(?:[\w.]{0,200}\.)?%s[!:}]|\.(?:format|debug|info|warning)\([^\n]*\b%s\b"
# A key of a dict; what is called at once is a function or a module, of which a program has few.
_LOOKS_UP = pattern(
    rb"(?:\.(?:get|setdefault|pop)\(|\[) {0,9}(?:[\w.]{0,200}\.)?(?P<key>\w+) {0,9}(?:[,)]|\])(?! {0,9}\()"
    rb"|(?<![\w.])(?:[\w.]{0,200}\.)?(?P<member>\w+) (?:not )?in (?!range\b)[A-Za-z_]"
)
_MEMBER = pattern(rb", type=<class '(?:[\w.<>]{1,200}\.)?(?P<type>\w{1,100})'>")
_CONTAINER = b"nn/modules/container.py:"  # a ModuleDict has its modules from the beginning
_CUTS_MODULES = b"self.__class__("  # a slice of a ModuleList or Sequential is a new one
_OF_PARAMETERS = b"getattr(self, attr)"  # how a ParameterDict looks a tensor up, which can be passed; a ModuleDict has self._modules[key]
_MAX = 300
_REMEMBERED_BYTES = 512  # of a line; a longer one is read again


def guarded_code(reason: bytes) -> Mapping[str, object]:
    """What the line behind a guard on a number or text tells, as fields of the event; nothing for any other guard.

    reason: ``guard  # code  # place``, as torch prints it.
    """
    return _remembered(reason) if len(reason) <= _REMEMBERED_BYTES else _read(reason)


def _read(reason: bytes) -> Mapping[str, object]:
    known, hint, name = reason.partition(b"(HINT: ")
    guard, _, comment = known.partition(b"# ")
    if b"___check_obj_id(" in guard:
        return _member(guard, comment)
    if b"= " not in guard and b"not " not in guard and b"___dict_contains(" not in guard:
        return {}
    fixed = _FIXED.search(comment[-_MAX:]) if b" == " in guard else None
    fields: dict[str, object] = {} if fixed is None else {"fixed_by": decode(fixed["code"])}
    value, length = _VALUE.search(guard[:_MAX]), _LENGTH.search(guard[:_MAX]) or _NUMBER_AS_KEY.search(guard[:_MAX])
    code, _, place = comment[: 2 * _MAX].rpartition(b"# ")
    at = _PLACE.match(place)
    is_on_number = _NUMBER.search(guard[:_MAX]) is not None
    if at is None or (value is None and length is None and not is_on_number):
        return fields
    code = code.strip()
    does = _needs(guard, code) if is_on_number else None
    if does is None and value is not None:
        does = _does(code, _name(value["source"], hint + name), at["place"], is_text=value["text"] is not None)
    elif does is None and length is not None:
        does = _looked_up(code, _name(length["source"], b""), is_own=length["source"].startswith(_OWN))
    fields |= {"statement": does} if does is not None else {}
    if _CONTAINER in at["place"]:
        return fields  # that is torch's line, none of the program
    return fields | {"fixed_at": decode(at["place"]), "fixed_code": decode(code), "fixed_in": decode(at["function"])} if fields else {}


def _does(code: bytes, name: bytes | None, place: bytes, *, is_text: bool) -> str | None:
    """What a line of code does with the value of this name; None for the name where the log does not show it."""
    if _CONTAINER in place:
        return "looks_up" if is_text and _OF_PARAMETERS in code else "cuts_modules" if not is_text and _CUTS_MODULES in code else None
    if not is_text:
        counts = _COUNTS.search(code)
        until = code[counts.start() :].partition(b":")[0] if counts is not None else b""
        is_it = bool(until) and (name is None or re.search(rb"\b%s\b" % re.escape(name), until) is not None)
        is_counter = name is not None and re.search(rb"(?<!\w)%s {0,9}\+= {0,9}\d" % re.escape(name), code) is not None
        return "counts_steps" if is_it else "counts_up" if is_counter else None
    if name is not None and re.search(_FORMATS % ((re.escape(name),) * 2), code) is not None:
        return "formats_text"
    keys = (match["key"] or match["member"] for match in _LOOKS_UP.finditer(code) if not code[: match.start()].endswith(b"for "))
    return "looks_up" if name in keys else None


def _needs(guard: bytes, code: bytes) -> str | None:
    """What the line does with a number, whatever it is called, that only Python's own numbers can be used for."""
    operation = _TAKES_NO_TENSOR.search(code) if _FLOAT.search(guard[:_MAX]) is not None else None
    named = _LAST_NAME.search(guard.partition(b" == ")[0]) if operation is not None else None
    if operation is not None and named is not None and re.search(rb"\b%s\b" % re.escape(named[1]), operation["arguments"]) is not None:
        return "takes_no_tensor"
    return "does_math" if _MATH.search(code) is not None else "indexes_by_tensor" if _OF_A_TENSOR in guard and b"[" in code else None


def _looked_up(code: bytes, name: bytes | None, *, is_own: bool) -> str | None:
    """What the line does with the container of this name: looks an entry up that may be missing, puts one in, or goes through all.

    is_own: nobody passes it.
    """
    if name is None:
        return None
    kept = re.escape(name)
    container = rb"(?<!\w)%s\.(?:get|setdefault)\(| in (?:[\w.]{1,200}\.)?%s(?!\w)" % (kept, kept)
    found = re.search(container, code)
    if found is not None and b"for " not in code[: found.start()]:
        return "looks_up"
    if re.search(_FILLS % kept, code) is not None:
        return "fills"
    return "loops_over" if is_own and re.search(_LOOPS % kept, code) is not None else None


def _member(guard: bytes, comment: bytes) -> dict[str, object]:
    """Whether the line names a member of the object's own class: an enum has no others."""
    member = _MEMBER.search(guard[-_MAX:])
    is_named = member is not None and re.search(rb"\b%s\.[A-Za-z_]" % member["type"], comment[:_MAX]) is not None
    return {"statement": "names_member"} if is_named else {}


def _name(source: bytes, hint: bytes) -> bytes | None:
    """What the line calls the value: the last name of the guard's source; of a closure's cell torch tells it in a hint."""
    named = _NAME_IN_HINT.match(hint) or _LAST_NAME.search(source)
    return named[1] if named is not None else None


_remembered = lru_cache(maxsize=4096)(_read)  # a storm repeats few guards very often
