"""The version of torch that wrote a record, by the lines of torch's source that its prefix or its traceback names.

``V1122 11:15:31.432000 15922 torch/_dynamo/guards.py:5396] [0/1] [__recompiles]`` is torch 2.13's: its call for a recompile stands on
that line, and in no other version. Up to torch 2.2 a prefix names no line, and is a date in brackets.

Each traceback through a compiled function passes the lines of eval_frame.py that call it, or raise anew what it raised.

Source: these files of 27 releases, torch 2.0.0 to 2.15.0; the calls for a recompile (guards.py), a limit (convert_frame.py), a graph break
(symbolic_convert.py) and a skipped CUDA graph (cudagraph_utils.py). A build between two releases may have any other line: then nothing is known.
"""

from collections.abc import Iterator, Mapping, Sequence

from recompile_watch.core.late import pattern

_CALL = pattern(rb"torch/(?P<file>_(?:dynamo|inductor)/\w+)\.py:(?P<line>\d{1,5})\]")
_DATED = pattern(rb"(?:\[rank\d+\]:)?\[\d{4}-\d\d-\d\d [\d:,.]+\][^\n]{0,80}\btorch\._(?:dynamo|inductor)[\w.]*: \[[A-Z]+\]")
BEFORE_LINES = "<2.3"  # no line is named
_LINES = {  # limit, recompile (two calls), graph break, skipped CUDA graph
    "2.3": ((357,), (1423, 1425), (516,), ()),
    "2.4": ((762,), (2609, 2611), (534,), (133,)),
    "2.5": ((844,), (2811, 2813), (617,), ()),
    "2.6": ((906,), (2789, 2791), (435, 442), ()),
    "2.7": ((964,), (2995, 2997, 3004, 3006), (556, 563), (194, 326)),
    "2.8": ((1016,), (3506, 3508), (560, 567), (201, 333)),
    "2.9": ((1358,), (4179, 4181), (611, 618), (205, 341)),
    "2.10": ((1676,), (4512, 4514), (4275, 4282), (206, 342)),
    "2.11": ((1743,), (4758, 4760), (5127, 5134), (207, 343)),
    "2.12": ((1853,), (5186, 5188), (4699, 4706), (298, 434)),
    "2.13": ((1994,), (5394, 5396), (5124, 5131), (380, 516)),
    "2.14": ((2008,), (5619, 5621), (5368, 5375), (401, 542)),
    "2.15": ((2061,), (6372, 6374), (5577, 5584), (405, 546)),
}
_IN_STACK = {  # _fn, compile_wrapper; but for two lines that two versions share
    "2.0": ((195, 200, 209), ()),
    "2.1": ((314, 319, 328), ()),
    "2.2": ((461, 466, 470, 475, 489), ()),
    "2.3": ((432, 437, 441, 446, 451), ()),
    "2.4": ((403, 408, 412, 417, 433, 600), ()),
    "2.5": ((435, 440, 444, 449, 465, 632), ()),
    "2.6": ((544, 549, 552, 574, 745), ()),
    "2.7": ((625, 630, 633, 655, 658, 659, 663, 838), ()),
    "2.8": ((929,), (706, 711, 714, 736, 739, 745, 749)),
    "2.9": ((1044,), (797, 802, 805, 832, 835, 841, 845)),
    "2.10": ((1180, 1181), (914, 918, 923, 926, 953, 956, 963, 967)),
    "2.11": ((1262, 1263), (971, 982, 989, 994, 997, 1024, 1027, 1034, 1038)),
    "2.12": ((1297, 1298), (993, 1004, 1011, 1016, 1019, 1047, 1051, 1058, 1062)),
    "2.13": ((1445, 1446), (1102, 1113, 1120, 1125, 1128, 1166, 1170, 1177, 1183)),
    "2.14": ((1547, 1548), (1172, 1191, 1209, 1214, 1217, 1261, 1272, 1278, 1297)),
    "2.15": ((1551, 1552), (1176, 1195, 1206, 1213, 1218, 1221, 1269, 1276, 1282, 1301)),
}
_FRAME = pattern(rb"[\\/]torch[\\/]_dynamo[\\/]eval_frame\.py\", line (?P<line>\d{1,5}), in (?P<function>_fn|compile_wrapper)\b")
_FILES = (b"_dynamo/convert_frame", b"_dynamo/guards", b"_dynamo/symbolic_convert", b"_inductor/cudagraph_utils")
_FUNCTIONS = (b"_fn", b"compile_wrapper")


def _calls(table: Mapping[str, Sequence[tuple[int, ...]]], names: Sequence[bytes]) -> Iterator[tuple[tuple[bytes, bytes], str]]:
    for version, of_names in table.items():
        for name, lines in zip(names, of_names, strict=True):
            yield from (((name, b"%d" % line), version) for line in lines)


_VERSIONS = dict(_calls(_LINES, _FILES))
_VERSIONS_IN_STACK = dict(_calls(_IN_STACK, _FUNCTIONS))


def torch_of(prefix: bytes) -> str | None:
    """The version (``2.13``) that writes such a prefix, ``<2.3`` for those that name no line; None where it cannot be told."""
    call = _CALL.search(prefix)
    if call is not None:
        return _VERSIONS.get((call["file"], call["line"]))
    return BEFORE_LINES if _DATED.match(prefix) is not None else None


def torch_of_stack(message: bytes) -> dict[str, object]:
    """The version whose frames stand in a traceback, as a field of the event; nothing where none tells, or they tell several."""
    known = (_VERSIONS_IN_STACK.get((frame["function"], frame["line"])) for frame in _FRAME.finditer(message))
    versions = {version for version in known if version is not None}
    return {"torch": versions.pop()} if len(versions) == 1 else {}
