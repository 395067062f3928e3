"""The version of torch that wrote a record, by the lines of torch's source that its prefix or its traceback names.

``V1122 11:15:31.432000 15922 torch/_dynamo/guards.py:5396] [0/1] [__recompiles]`` is torch 2.13's: its call for a recompile stands on
that line, and in no other version. Up to torch 2.2 a prefix names no line, and is a date in brackets.

Each traceback through a compiled function passes the lines of eval_frame.py that call it, or raise anew what it raised; one that is cut
there may show the loop over the instructions (symbolic_convert.py), the call of the backend (output_graph.py), of an operator in inductor
(graph.py), or the line that raises (exc.py).

Source: these files of 27 releases, torch 2.0.0 to 2.15.0; the calls for a recompile (guards.py), a limit (convert_frame.py), a graph break
(symbolic_convert.py) and a skipped CUDA graph (cudagraph_utils.py). A build between two releases may have any other line: then nothing is known.

What is pasted often shows no such line; then the words tell: 2.7 gave graph breaks and failures a new form (``Developer debug context:``), and
later versions a page for each.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from recompile_watch.core.late import pattern

_CALL = pattern(rb"torch/(?P<file>_(?:dynamo|inductor)/\w+)\.py:(?P<line>\d{1,5})\]")
_DATED = pattern(rb"(?:\[rank\d+\]:)?\[\d{4}-\d\d-\d\d [\d:,.]+\][^\n]{0,80}\btorch\._(?:dynamo|inductor)[\w.]*: \[[A-Z]+\]")
BEFORE_LINES = "<2.3"  # no line is named
_RECOMPILES_OF_21 = b"torch._dynamo.convert_frame.__recompiles: "  # there is no such log before, and it is guards' from 2.2 on
_BREAKS_OF_20 = b"torch._dynamo.symbolic_convert: [WARNING]"  # a log of their own from 2.1 on
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
_IN_STACK = {  # by _FUNCTIONS; but for two lines that two versions share
    "2.0": ((195, 200, 209), (), (71,), (), (576,), (540,), (675,), (), (405, 407)),
    "2.1": ((314, 319, 328), (), (172,), (), (719, 724), (683, 688), (1014, 1024), (), (708, 715, 720, 722)),
    "2.2": ((461, 466, 470, 475, 489), (), (193,), (), (818,), (781,), (1145, 1159), (), (814, 822, 825)),
    "2.3": ((432, 437, 441, 446, 451), (), (190,), (), (810,), (773,), (1227, 1237, 1241, 1251), (), (946, 954, 957)),
    "2.4": ((403, 408, 412, 417, 433, 600), (), (220, 221), (), (893,), (805,), (1395, 1409), (), (1196, 1198, 1207, 1209, 1210, 1212)),
    "2.5": ((435, 440, 444, 449, 465, 632), (), (296, 297), (), (983,), (895,), (1416,), (1451, 1465), (1301, 1316, 1319)),
    "2.6": ((544, 549, 552, 574, 745), (), (316, 317), (), (1052,), (962,), (1432,), (1469, 1483), (1477, 1493, 1496)),
    "2.7": ((625, 630, 633, 655, 658, 659, 663, 838), (), (438, 439), (516, 517), (1337,), (1246,), (1487,), (1526, 1544), (1508, 1524, 1527)),
    "2.8": ((929,), (706, 711, 714, 736, 739, 745, 749), (443, 444), (527, 528), (1363,), (1267,), (1811,), (1853, 1871), (1580, 1596, 1599)),
    "2.9": ((1044,), (797, 802, 805, 832, 835, 841, 845), (461, 462), (595, 596), (1487, 1500), (1348,), (2136,), (2178, 2196), (1605, 1621, 1624)),
    "2.10": ((1180, 1181), (914, 918, 923, 926, 953, 956, 963, 967), (587, 588), (), (1654,), (1334,), (2377,), (2419, 2437), (1713, 1729, 1732)),
    "2.11": (
        (1262, 1263),
        (971, 982, 989, 994, 997, 1024, 1027, 1034, 1038),
        (630, 631, 634),
        (),
        (1794,),
        (1459,),
        (2613,),
        (2671, 2689),
        (1790, 1806, 1809),
    ),
    "2.12": (
        (1297, 1298),
        (993, 1004, 1011, 1016, 1019, 1047, 1051, 1058, 1062),
        (651, 653, 657),
        (),
        (1813,),
        (1480,),
        (2895,),
        (2960, 2978),
        (1883, 1899, 1902),
    ),
    "2.13": (
        (1445, 1446),
        (1102, 1113, 1120, 1125, 1128, 1166, 1170, 1177, 1183),
        (721, 723, 727),
        (),
        (1950,),
        (1603,),
        (3057,),
        (3129, 3147),
        (1932, 1940),
    ),
    "2.14": (
        (1547, 1548),
        (1172, 1191, 1209, 1214, 1217, 1261, 1272, 1278, 1297),
        (769, 771, 775),
        (),
        (2094,),
        (1747,),
        (3170,),
        (3242, 3260),
        (2054, 2062),
    ),
    "2.15": (
        (1551, 1552),
        (1176, 1195, 1206, 1213, 1218, 1221, 1269, 1276, 1282, 1301),
        (815, 817, 819),
        (),
        (2218,),
        (1871,),
        (3230,),
        (3302, 3324),
        (2096, 2104),
    ),
}
_FRAME = pattern(rb"[\\/]torch[\\/]_(?:dynamo|inductor)[\\/](?P<file>\w{1,40})\.py\", line (?P<line>\d{1,5}), in (?P<function>\w{1,40})")
_FILES = (b"_dynamo/convert_frame", b"_dynamo/guards", b"_dynamo/symbolic_convert", b"_inductor/cudagraph_utils")
_FUNCTIONS = (
    (b"eval_frame", b"_fn"),
    (b"eval_frame", b"compile_wrapper"),
    (b"exc", b"unimplemented"),
    (b"exc", b"unimplemented_v2"),
    (b"symbolic_convert", b"run"),
    (b"symbolic_convert", b"step"),
    (b"output_graph", b"call_user_compiler"),
    (b"output_graph", b"_call_user_compiler"),
    (b"graph", b"run_node"),
)


_BEFORE_27, _SINCE_27, _SINCE_28, _SINCE_212 = "<2.7", ">=2.7", ">=2.8", ">=2.12"
_WORDS = {  # in the same releases' sources
    b"docs/master/dynamo/troubleshooting.html": "2.0",  # compile/ in 2.1
    b"You can suppress this exception and fall back to eager by setting": _BEFORE_27,
    b'Set TORCH_LOGS="+dynamo" and TORCHDYNAMO_VERBOSE=1 for more information': _BEFORE_27,
    b"inline in skipfiles: ": _BEFORE_27,
    b"Dynamic control flow is not supported": _BEFORE_27,
    b"data dependent operator: ": _BEFORE_27,
    b"dynamic shape operator: ": _BEFORE_27,
    b": 'skip function ": _BEFORE_27,
    b"Developer debug context: ": _SINCE_27,
    b"Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace": _SINCE_27,
    b"For more details about this graph break, please visit: ": _SINCE_28,
    b"Unsupported Tensor.item() call": _SINCE_28,
    b"with fullgraph=True found no compiled frames": _SINCE_212,
}
_WORDED = pattern(b"|".join(map(re.escape, _WORDS)))
_Name = TypeVar("_Name")


def _calls(table: Mapping[str, Sequence[tuple[int, ...]]], names: Sequence[_Name]) -> Iterator[tuple[tuple[_Name, bytes], str]]:
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
    if _DATED.match(prefix) is None:
        return None
    return "2.1" if _RECOMPILES_OF_21 in prefix else "2.0" if _BREAKS_OF_20 in prefix else BEFORE_LINES


def torch_of_message(message: bytes) -> dict[str, object]:
    """The version whose frames stand in a traceback, or those that word a message so (``<2.7``), as a field of the event.

    Nothing where none tells, or they tell several.
    """
    known = (_VERSIONS_IN_STACK.get(((frame["file"], frame["function"]), frame["line"])) for frame in _FRAME.finditer(message))
    versions = {version for version in known if version is not None} or {_WORDS[words] for words in _WORDED.findall(message)}
    since = [version for version in (_SINCE_27, _SINCE_28, _SINCE_212) if version in versions]
    versions.difference_update(since[:-1])  # the latest says most
    return {"torch": versions.pop()} if len(versions) == 1 else {}
