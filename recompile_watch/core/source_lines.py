"""The version of torch that wrote a record, by the line of torch's source that its prefix names.

``V1122 11:15:31.432000 15922 torch/_dynamo/guards.py:5396] [0/1] [__recompiles]`` is torch 2.13's: its call for a recompile stands on
that line, and in no other version. Up to torch 2.2 a prefix names no line, and is a date in brackets.

Source: these files of torch 2.3.0 to 2.15.0, all releases; the calls for a recompile (guards.py), a limit (convert_frame.py), a graph break
(symbolic_convert.py) and a skipped CUDA graph (cudagraph_utils.py). A build between two releases may have any other line: then nothing is known.
"""

from collections.abc import Iterator

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
_FILES = (b"_dynamo/convert_frame", b"_dynamo/guards", b"_dynamo/symbolic_convert", b"_inductor/cudagraph_utils")


def _calls() -> Iterator[tuple[tuple[bytes, bytes], str]]:
    for version, of_files in _LINES.items():
        for file, lines in zip(_FILES, of_files, strict=True):
            yield from (((file, b"%d" % line), version) for line in lines)


_VERSIONS = dict(_calls())


def torch_of(prefix: bytes) -> str | None:
    """The version (``2.13``) that writes such a prefix, ``<2.3`` for those that name no line; None where it cannot be told."""
    call = _CALL.search(prefix)
    if call is not None:
        return _VERSIONS.get((call["file"], call["line"]))
    return BEFORE_LINES if _DATED.match(prefix) is not None else None
