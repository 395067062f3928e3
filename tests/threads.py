"""Logs out of public threads: what was seen in them, what was advised, and whether the thread's own remedy is among it.

python -m tests.threads --report docs/threads.md

The cases come in parts (``Case.part``), because a case that rules and remedies were changed for proves little:
what the program said of each part when it read it for the first time stands in ``INTRODUCTION``.
"""

from __future__ import annotations

import argparse
import functools
import sys
import tomllib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from recompile_watch.config import load_catalog
from recompile_watch.core.advice import Advice
from recompile_watch.core.analysis import Analysis, Facts, SourceFacts
from recompile_watch.core.events import event_to_json
from recompile_watch.core.findings import Finding
from tests.conftest import DATA, engine_events, rules

THREADS = DATA / "threads"
RECOMPILES = frozenset({"recompile", "recompile_limit_hit", "recompile_limit_error", "recompile_forbidden"})
LATER = (
    "fresh", "last", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "thirteen", "twenty", "twenty-one", "twenty-two", "twenty-three", "twenty-four", "twenty-five", "twenty-seven", "twenty-six", "twenty-eight",
    "thirty", "thirty-one", "thirty-two", "thirty-three", "thirty-four", "thirty-five", "thirty-six",
    "thirty-seven", "thirty-eight", "thirty-nine", "forty", "forty-one", "forty-two", "forty-three", "forty-four", "forty-five", "forty-six",
    "forty-seven",
)  # fmt: skip
CONFIRMED = ("maintainer", "reporter", "merged")
# Never right, whatever the thread says: a compile mode cures no recompile.
NO_CURE_FOR_RECOMPILES = frozenset({"change_compile_mode", "mode_without_cudagraphs"})
NEVER_IN_TEXT = "skip_guard_on_globals_unsafe"
PARTS = ("open", "kept back", *LATER)
# What was measured when a part was read for the first time cannot be measured again: the figures are those of then.
INTRODUCTION = """# Logs out of public threads

Log lines as people pasted them into issues and pull requests: quoted, cut, broken, behind progress bars, of torch 2.0 to 2.13 and the torchdynamo
of 2022. The remedies that are right were written down before the program read the log: from what a maintainer said, a reporter tried, or a merged
change did; where a thread has no answer (766 of the 1,282), from torch's own documentation, and there several are right. A case is good when an
expected remedy is among the advice and none that the case forbids: a higher limit for sizes, numbers and steps, a compile mode against
recompiles, `mark_step_begin` alone for overwritten outputs, and what else its file lists. The files are in `tests/data/threads`, with a source
for each; `python -m tests.threads --report docs/threads.md` makes this page, and a test holds it.

## The first reading of each part

What counts is a log that nobody changed the program for. The cases were therefore read in parts, and after each part the program was mended:

| part | cases | good at the first reading | read first |
|---|---|---|---|
| open | 47 | 37 (79 %) | before any change |
| kept back (one in three, by checksum) | 24 | 20 (83 %; 19 before any change) | after the change for the open ones |
| fresh | 11 | 7 (64 %) | after the change for those kept back |
| last | 16 | 12 (75 %) | after the change for the fresh ones, the last six after one more |
| five | 38 | 25 (66 %) | after the rules had been written anew after torch's own lists of failures, breaks and skips; before that it were 16 |
| six | 22 | 13 (59 %) | after the change for the fifth |
| seven | 12 | 7 (58 %) | after the change for the sixth |
| eight | 9 | 5 (56 %) | after the change for the seventh |
| nine | 40 | 28 (70 %) | after the rules had learned the tracebacks of the compiler |
| ten | 30 | 17 (57 %) | after the change for the ninth; many of its logs are one line, or cut in front of the error |
| eleven | 29 | 24 (83 %) | after the change for the tenth; most of its logs are a part of a stack |
| twelve | 12 | 11 (92 %) | after the change for the eleventh; half of its logs are a part of a stack |
| fourteen | 33 | 26 (79 %) | after the rules had learned the compiler's own words; before that it were 21. Half of its logs are one line |
| fifteen | 28 | 12 (43 %) | after the change for the fourteenth; 21 of its logs are one line, mostly a title |
| sixteen | 13 | 8 (62 %) | after the change for the fifteenth; all logs that a handful of searches showed |
| seventeen | 13 | 9 (69 %) | after the change for the sixteenth; as that one, out of other searches |
| eighteen | 16 | 11 (69 %) | after the change for the seventeenth; as that one, out of other searches |
| thirteen | 42 | 26 (62 %) | after the change for the twelfth; a spread over all kinds of events, as their threads come |
| twenty | 23 | 15 (65 %) | after the change for the thirteenth, as that one was collected |
| twenty-one | 40 | 26 (65 %) | after the change for the twentieth; as that one, about recompiles, limits, graph breaks and dynamic shapes only |
| twenty-three | 14 | 7 (50 %) | after the change for the twenty-first, as that one was collected |
| twenty-two | 42 | 27 (64 %) | after the change for the twentieth; failed compilations, CUDA graphs, kernels and caches, as their threads come |
| twenty-four | 17 | 10 (59 %) | after the change for the twenty-second, as that one was collected |
| twenty-five | 27 | 24 (89 %) | after the change for the twenty-fourth; messages that torch itself prints, as whole as their threads hold them |
| twenty-seven | 23 | 20 (87 %) | after the change for the twenty-fifth; as that one, out of other searches |
| twenty-six | 36 | 27 (75 %) | after the rules had learned evidence in place of messages, before it 24; half of its logs are a part of a stack |
| twenty-eight | 24 | 18 (75 %) | after the change for the twenty-sixth, as that one was collected; with the rules of before as many |
| thirty | 18 | 13 (72 %) | after the change for the twenty-eighth, as that one was collected; with the rules of before 11 |
| thirty-one | 78 | 53 (68 %) | after the change for the thirtieth; out of searches by project, four of ten are titles and sentences |
| thirty-two | 28 | 25 (89 %) | after the change for the thirty-first; two of three are a part of a stack; with the rules of before as many |
| thirty-three | 4 | 4 | after the change for the thirty-second; what two more searches brought that did not stand here |
| thirty-four | 68 | 60 (88 %) | after the change for the thirty-third; out of searches by remedy, and of files that programs' repositories hold |
| thirty-five | 31 | 27 (87 %) | after the change for the thirty-fourth, as that one was collected |
| thirty-six | 33 | 23 (70 %) | after the change for the thirty-fifth; whole lines, by other projects; five of its misses were mended after it |
| thirty-seven | 41 | 36 (88 %) | after the change for the thirty-sixth; recompiles, limits, CUDA graphs and breaks, nearly all out of files |
| thirty-eight | 15 | 10 (67 %) | after the change for the thirty-seventh, as that one was collected; four of its misses were mended later |
| thirty-nine | 24 | 13 (54 %) | after that; only what the author himself used is right, and each of them was tried |
| forty | 50 | 19 (38 %) | after a review of the advice; as that one; two of three quote the line in a comment, a list or a sentence |
| forty-one | 27 | 15 (56 %) | after the change for the fortieth; threads alone, each with printed lines and with a cure that somebody confirmed |
| forty-two | 39 | 21 (54 %) | after that; seven threads, 32 files; 17 quote the line in a sentence; with printed lines 16 of 22 |
| forty-three | 32 | 24 (75 %) | after that; two threads, 30 files; all but one show printed lines |
| forty-four | 32 | 18 (56 %) | after that, and after 38 programs; one thread, 31 files; a dozen quote a part of a line in a sentence or a comment |
| forty-five | 52 | 33 (63 %) | after sweeps through what torch's sources raise; threads alone, judged by four who had not seen it |
| forty-six | 13 | 8 (62 %) | after the change for the forty-fifth; threads alone, the first that many questions brought, judged by another |
| forty-seven | 12 | 8 (67 %) | after that; all new threads that two judges found whose cure has a key of the contract; none got what is forbidden |

So of the 51 cases of the first parts that were new to a changed program 39 were good (76 %): 25 of 28 recompiles and limits, and 14 of 23 CUDA
graphs, graph breaks and failed compilations (61 %). The fifth part and those after it were collected where the program was weak. Of the 81 cases of
the parts five to eight 50 were good (62 %): all 10 of CUDA graphs, 5 of 6 graph breaks, 2 of 3 recompiles, and 33 of 62 failed compilations (53 %);
20 of the 31 others were no event at all.

Then the rules learned what a failed compilation looks like whatever its exception is called: tracebacks with frames of the compiler, in every form
they are printed in, torch's last words behind an exception, and torch's own messages. Of the 111 cases read after that, nearly
all failed compilations, 80 were good (72 %):

| form of the log | nine | ten | eleven | twelve | together |
|---|---|---|---|---|---|
| several lines, with the error | 21 of 31 | 11 of 16 | 5 of 6 | 3 of 3 | 40 of 56 (71 %) |
| a part of a stack, without the error | 0 of 1 | 2 of 3 | 19 of 20 | 6 of 6 | 27 of 30 (90 %) |
| one line, mostly a title | 7 of 8 | 4 of 11 | 0 of 3 | 2 of 3 | 13 of 25 (52 %) |

26 of the 31 others were no event. What a thread confirmed was advised in 15 of 27. Two readings advised something forbidden: output to be moved
behind the graph, out of an example in torch's message, and a compiler to be installed for C++ that inductor wrote wrongly. Many cases are odd on
purpose, and the parts are small. What is right for a part of a stack is torch's own first advice: those show that a failure is seen, and little more.

Then the rules learned what only the compiler speaks of, out of the 5,500 texts that torch's sources raise, and the sentences in which programs and
people tell of a failure. Of the 103 failed compilations read after that 66 were good (64 %; with the rules of before 54), and no reading advised
something forbidden:

| form of the log | fourteen | fifteen | sixteen | seventeen | eighteen | together |
|---|---|---|---|---|---|---|
| several lines, with the error | 14 of 16 | 3 of 5 | 2 of 4 | 4 of 4 | 5 of 6 | 28 of 35 (80 %) |
| a part of a stack, without the error | - | 0 of 2 | 4 of 4 | 3 of 3 | 4 of 4 | 11 of 13 (85 %) |
| one line, mostly a title | 12 of 17 | 9 of 21 | 2 of 5 | 2 of 6 | 2 of 6 | 27 of 55 (49 %) |

35 of the 37 others were no event. What a thread confirmed was advised in 12 of 15. A title is a person's sentence: few of its words are torch's, and
each new part brought forms that no rule had. A line that says no more than `KeyError: 'type'` stays unseen, on purpose.

The thirteenth part and the twentieth are a spread instead. Questions over all kinds of events, causes, versions and projects were written down, and
of each the first threads were taken that show log lines and were not here yet, whether the program was good at them or not:

| kind | thirteen | twenty |
|---|---|---|
| recompiles and limits | 12 of 20 | 5 of 7 |
| CUDA graphs | 4 of 4 | 2 of 2 |
| graph breaks | 5 of 10 | 4 of 6 |
| failed compilations | 4 of 5 | 4 of 8 |
| autotuning and slow compilations | 1 of 3 | - |
| lines as torch, or a server around it, printed them | 25 of 34 (74 %) | 12 of 13 (92 %) |
| words out of them: a title, a sentence, a message or a guard alone | 1 of 8 | 3 of 10 |

The last two rows count the same cases once more. Where they were not good, 19 of 24 were no event, the others got advice that was none of the
expected; none got what is forbidden. What a thread confirmed was advised in 8 of 12. So whole lines come near to the aim of nine in ten, while words
that somebody copied out of them are still a matter of luck. No new thread was found about the accumulated limit, pending backward passes, re-recorded
graphs, stances and compiled autograd's own messages.

The twenty-first part is such a spread over recompiles, limits, graph breaks and dynamic shapes, out of fifty questions; most threads that they
brought stood here already. The twenty-third is what eight more questions brought, and the rest of those:

| kind | twenty-one | twenty-three |
|---|---|---|
| recompiles and limits | 9 of 13 | 3 of 3 |
| graph breaks | 12 of 20 | 2 of 6 |
| dynamic shapes, and guards that cannot be made or run | 5 of 7 | 2 of 5 |
| lines as torch printed them | 22 of 32 (69 %) | 7 of 10 (70 %) |
| words out of them | 4 of 8 | 0 of 4 |

Of the 14 others of the twenty-first ten were no event: breaks in forms that no rule knew (`explain` as Python prints it, torch's count of its
breaks, a record without its first line), compiled autograd, and guards that cannot be made or run. Three were events of another kind (a limit in a
quoted sentence, the end of a record of a refused graph, and a traceback at level DEBUG, which is a break), and one got advice that did not see that
it was the drawing of a picture that was compiled. Of the seven others of the twenty-third four were titles, two the middle of a break's record, and
one got advice that was sure of more than the log shows. None got what is forbidden. What a thread confirmed was advised in 2 of 3. Logs of
recompiles and limits are known by now: with all lines 12 of the 14 of both parts were good.

The twenty-second part and the twenty-fourth are such a spread over failed compilations, CUDA graphs, kernels, caches, compile times and stances:

| kind | twenty-two | twenty-four |
|---|---|---|
| failed compilations, with kernels, caches and stances | 24 of 33 | 10 of 17 |
| CUDA graphs | 3 of 8 | - |
| slow compilations | 0 of 1 | - |
| lines as a program printed them, whole or a part of them | 20 of 28 (71 %) | 5 of 7 |
| words out of them: a title, a sentence | 7 of 14 (50 %) | 5 of 10 |

What a thread confirmed was advised in 10 of 17, and one reading advised something forbidden: a C compiler, where the assembler of a GPU had refused.
18 of the 22 that were not good were no event. Nine of those get no advice now either, on purpose: their words are not torch's, or they tell of
no trouble. Of failed compilations alone 22 of 28 logs of lines were good (79 %) and 12 of 22 of words (55 %). The same searches showed
eight logs that need no remedy (candidates that autotuning leaves out, graphs that are not cached, notes about small GPUs): three of them were
read as failures where the program's logging had changed torch's prefix, and are no longer.

Message by message that rate did not rise, so the rules then learned evidence: a line that names the compiler and a failure, in either order; a file
or a variable that only inductor names so; an error that the compiler logged itself, whatever it says. One rule of this kind took the place of six.
With all rules for single messages switched off, 392 of the 461 logs of failed compilations here are seen (85 %); before it were 349 (76 %). In 123 MB
of sources that speak of the compiler (torch 2.9, transformers, diffusers, accelerate and lightning, with their comments) 13 lines are read as
failures, before it were 7. Of the 78 cases read after that 58 were good (74 %; with the rules of before 53), and none got what is forbidden:

| form of the log | twenty-six | twenty-eight | thirty | together | before |
|---|---|---|---|---|---|
| lines with the error | 8 of 11 | 4 of 6 | 7 of 10 | 19 of 27 (70 %) | 18 |
| a part of a stack, without the error | 16 of 18 | 10 of 10 | 2 of 2 | 28 of 30 (93 %) | 26 |
| words out of them: a title, a sentence | 3 of 7 | 4 of 8 | 4 of 6 | 11 of 21 (52 %) | 9 |

19 of the 20 others were no event. What a thread confirmed was advised in 8 of 10. Lines with an error stay the weak ones: most of what was missed are
the words of another program in front of torch's (Metal's compiler, an assembler of another name, JSON, an application that wraps the message).
Two of these cases get nothing now either, on purpose; of two that were good the event lacked the place in the program's code.

The twenty-fifth part and the twenty-seventh hold what torch itself prints of recompiles, limits, graph breaks, dynamic shapes and CUDA graphs, from
the torchdynamo of 2022 on. Most threads that the searches brought stood here already; of the others all were taken:

| kind | twenty-five | twenty-seven |
|---|---|---|
| recompiles and limits | 7 of 9 | 2 of 4 |
| graph breaks | 8 of 8 | 13 of 13 |
| dynamic shapes | 8 of 8 | 3 of 4 |
| CUDA graphs | 1 of 1 | 1 of 1 |
| failed compilations | 0 of 1 | 1 of 1 |
| lines as torch printed them, whole or a part of them | 19 of 22 (86 %) | 14 of 16 (88 %) |
| words out of them: a title, a sentence | 5 of 5 | 6 of 7 |

So 44 of 50 were good (88 %). The events were exact in 45, none of the advice is forbidden, and what a thread confirmed was advised in 5 of 5, which
is few. Of the six others three were no event (a prefix whose time was made unreadable, the last line of torch's advice in a launcher's table, and
the last line of a limit's record alone), one was an exception's name in a title, which is now left unseen on purpose, one got advice for a guard that
torch compares before it compares what matters, and one was the first recompiles alone, which need none: that expectation was too narrow.

The thirty-first part came out of searches by project, from servers to tutorials, as their threads come; the thirty-second out of eleven others:

| | thirty-one | thirty-two |
|---|---|---|
| lines as a program printed them | 30 of 35 (86 %) | 7 of 7 |
| a part of a stack or a record, without the error | 8 of 12 | 16 of 18 |
| words out of them: a title, a sentence, a message alone | 15 of 31 (48 %) | 2 of 3 |
| recompiles, limits, graph breaks, dynamic shapes, CUDA graphs | 8 of 12 | 2 of 2 |
| failed compilations | 45 of 66 (68 %) | 23 of 26 (88 %) |
| confirmed in the thread | 20 of 28 (71 %) | 2 of 3 |

None of it got what is forbidden. Of the 25 others of the thirty-first 21 were no event: most were words of torch and triton about what they need (a
GPU that is too old, a triton or a compiler that is missing, a Python that this torch does not compile), which were known inside torch's own
exception only. 36 such messages were then written in the 19 forms in which programs and people give them, and all of them are known now in nearly
each form; the form of the log is no longer what decides. Eight of the 25 get nothing now either, on purpose: nothing tells the compiler from the
program there, or the linker and the person tell of no failure. In the thirty-second one of three is left out so. That part is no harder for the
rules of before: the change shows in titles and programs' own lines, of which it has few.

For the thirty-fourth part and the thirty-fifth threads were searched by the words of an answer ("solved by", "works with"), so that more of them have
one; and files of public repositories (protocols, notes, notebooks, pages) by torch's own lines, which no part had before:

| | thirty-four | thirty-five | together |
|---|---|---|---|
| lines as a program printed them | 46 of 51 | 22 of 23 | 68 of 74 (92 %) |
| a part of a stack, without the error | 2 of 3 | 1 of 1 | 3 of 4 |
| words out of them: a title, a sentence | 12 of 14 | 4 of 7 | 16 of 21 (76 %) |
| recompiles and limits | 10 of 11 | 7 of 7 | 17 of 18 |
| graph breaks | 4 of 5 | 1 of 1 | 5 of 6 |
| CUDA graphs | 5 of 5 | 3 of 3 | 8 of 8 |
| failed compilations | 41 of 47 | 16 of 20 | 57 of 67 (85 %) |
| threads | 33 of 37 | 8 of 11 | 41 of 48 (85 %) |
| files of repositories | 27 of 31 | 19 of 20 | 46 of 51 (90 %) |
| confirmed in the thread or the file | 24 of 29 | 9 of 11 | 33 of 40 (83 %) |

So whole lines reach nine in ten. One reading of the 99 advised something forbidden: a C compiler, where the program failed by which triton looks for
the driver's library. Ten of the eleven others were no event: a stack that ends in torch.compile itself, a reason and its header on one line, a
warning and an exception that are broken at a line's end, a record shortened in a report, words without a colon, and four titles and sentences, of
which three get nothing now either, on purpose. The last one took its remedy from a word beside the error. After the change nothing more is
read as an event in 154 MB of Python sources of torch, what it needs, and its tools.

The thirty-sixth part is a measurement alone: threads of other projects (proteins, forces, medicine, loaders, servers, kernels), no title and no
sentence:

| | thirty-six |
|---|---|
| lines as a program printed them | 20 of 29 (69 %) |
| a part of a stack, without the error | 3 of 4 |
| recompiles and limits | 1 of 1 |
| graph breaks | 4 of 5 |
| failed compilations | 18 of 27 (67 %) |
| confirmed in the thread | 7 of 11 |

None of it got what is forbidden. So whole lines do not reach nine in ten outside of the threads that torch's own words bring up. Eight of the ten
others were no event: four compilers that triton starts for its module (a linker of Windows, a small compiler without Python's headers, two of
ROCm), a broken assembler, what `explain` prints in a notebook, a candidate that autotuning left out, and the end of an operator's arguments. Two
got advice for an assembler that is too old, where its lines behind the error name a number format that the GPU lacks. Five of them (these two, and
three of triton's compilers) were mended afterwards; nothing was read after that.

The thirty-seventh part holds recompiles, limits, CUDA graphs and breaks first; the thirty-eighth was kept back out of the same searches. By now the
threads that they bring up stand here already (four were new), so they are files of public repositories in which somebody kept torch's lines:

| | thirty-seven | thirty-eight | together |
|---|---|---|---|
| lines as a program or a person kept them | 36 of 40 | 9 of 13 | 45 of 53 (85 %) |
| words out of them | 0 of 1 | 1 of 2 | 1 of 3 |
| recompiles and limits | 10 of 13 | 0 of 2 | 10 of 15 (67 %) |
| CUDA graphs | 9 of 10 | 3 of 5 | 12 of 15 (80 %) |
| graph breaks and dynamic shapes | 9 of 10 | 2 of 3 | 11 of 13 |
| failed compilations | 8 of 8 | 5 of 5 | 13 of 13 |
| confirmed in the thread or the file | 12 of 17 | 1 of 2 | 13 of 19 (68 %) |

None of it got what is forbidden. Of the first five others one was no event (an input of a CUDA graph that moved), one a limit in somebody's words,
taken for a failed compilation, and three got advice that was not the confirmed one: for a stride that grows with each step, for a first size of one,
and for a number whose code the author moved away. All but the last were mended, the second so that nothing is said. Of the second five four were no
event (two prefixes that were cut, a list, a table), and one got advice for a dictionary where a module lacks a part. All but the table, which quotes
the message in a report, were mended before the thirty-ninth was read.

The thirty-ninth part asks more: lines of torch only, each with a remedy that the author tried (measured before and after, verified by a run, or
part of the code since), and nothing else that torch would advise counts:

| | thirty-nine |
|---|---|
| recompiles and limits | 5 of 13 |
| CUDA graphs | 3 of 5 |
| graph breaks | 5 of 6 |
| confirmed by the author | 13 of 24 (54 %) |
| an event of the right kind | 22 of 24 |
| advice that is forbidden | none |

Of the eleven others eight were mended, as classes: a limit of a value that has two states only, a function of torch's own that all compiled modules
share, hooks of what describes a model, a few lengths to run before, a place without a line's number, an exception without a place, a frame behind a
break without a reason, and a method that Dynamo cannot trace. Three keep torch's own advice on purpose, for nothing in the log shows what the
author knew: that lengths are few, that a tensor was kept, that a cache grows. What a person picked is the first advice in ten of the 24: where
several remedies are possible, the log does not tell which.

The fortieth part asks for what somebody confirmed, wherever that stands: in the code, the tests, the changelogs and the notes of public projects, on
torch's own pages, in threads. Most of these do not keep a log but quote a line of it beside the cure:

| | forty |
|---|---|
| lines as torch printed them | 14 of 19 (74 %) |
| quoted in the comments and descriptions of a program | 3 of 12 |
| quoted in a list or a sentence, in pieces or as a guard alone | 2 of 19 |
| recompiles and limits | 6 of 23 |
| CUDA graphs | 2 of 8 |
| graph breaks and failed compilations | 11 of 19 (58 %) |
| confirmed | 17 of 46 (37 %) |
| an event of the right kind | 30 of 50 |
| advice that is forbidden | none |

So this reading is the worst of all, and its form is why: 20 of the 31 others were no event. Eleven were mended, as classes: a number in the place of
a tensor (a learning rate, for one), pending backward passes and moved inputs that had one way out only, a trace in another thread, an argument of
torch.compile that came with a later version, a message that somebody broke behind a name, the rest of one that a page's width broke, a failure whose
cause no call shows, and a break that had no last resort. Twenty keep what they had, on purpose: twelve are quotes in a program's source or in a
sentence, three are a guard alone, which torch prints just so where nothing failed, one is a single recompile, as expected, and in four nothing
tells what the author knew: that shapes are few, that it was a measurement, which library the linker missed.

The forty-first part is what the aim speaks of: threads that show whole lines as they were printed, and in which a maintainer, the reporter or a
merged change says what helped. Some 280 searches brought 40 that did not stand here; about 390 did, and 245 confirmed nothing. In 27 the cure has a
remedy: 15 were good. In 13 it had none, such as another package, an older Python or a newer version of the program itself; with them it is 15 of 40.
The events were exact in 35 of the 40, and nothing forbidden was advised. Nearly all are failed compilations of machines and containers, four are
recompile limits, none is of CUDA graphs: what torch itself advises for recompiles, breaks and graphs stands here already.

Mended, as classes: users without a name, modules that are missing, submodules that nobody imported, a cache that Windows cannot rename, dtypes that
a GPU cannot convert, headers that Microsoft's compiler misses, functions to exclude where the log names none, and torch 2.0, for which most remedies
said nothing. Four keep what they had: in three the log does not show that another thread had another setting, so that a higher limit there would be
a guess, and a backend for Apple's GPUs is torch's own.

The forty-third part shows lines as they were printed, each with a cure that somebody confirmed. What the search for threads brought stood here
already, but for two; the others are reports that projects keep of what they ran, and torch's own pages:

| | forty-three |
|---|---|
| recompiles and limits | 5 of 9 |
| CUDA graphs | 8 of 9 |
| graph breaks | 4 of 6 |
| failed compilations | 7 of 8 |
| advice that is forbidden | none |

Six of the eight others were mended, as classes: a list that the compiled code fills, told by the last guard alone; a call that does not take its
arguments; a logger, which torch moves nowhere; a number that is read out where no line of code shows why; a message that was copied by hand, and one
in a page's quotes. Four older cases expected a logger to be moved behind the graph: torch's source and a run on 2.13.0 say that it has no effect.
Two stay: of a limit they show the first line alone, without a function and a guard, as a quote does.

The forty-fourth part was to be threads with confirmed cures again; some 150 searches brought one. The others are files of public repositories, and
a dozen of them hold no printed log: a sentence, a docstring or a comment quotes a part of a line.

| | forty-four |
|---|---|
| recompiles and limits | 1 of 7 |
| CUDA graphs | 4 of 7 |
| graph breaks | 3 of 4 |
| failed compilations | 10 of 14 |
| advice that is forbidden | none |

Mended: a log in comments with an empty one in between, what fixes a marked size is left out second, and a limit that became an exception can be
switched off where no guard is shown. Nine that only quote stay unseen, on purpose; of an export the log does not show that a Dim was given, and of a
call inside a capture the sentence was broken by hand.

The forty-fifth part is threads alone: four people who had not seen the program collected 65 of them, wrote down what is right, and judged what it
said. Twelve stood in older parts already, and one, a comparison of two tensors, names no compiler. Of the 52 others the first remedy was right in 33
(63 %), a right one was listed in 36 (69 %), and something that they forbid in 6:

| | forty-five |
|---|---|
| recompiles and limits | 0 of 1 |
| CUDA graphs | 2 of 2 |
| graph breaks | 1 of 1 |
| failed compilations | 30 of 48 |
| advice that is forbidden | 6, of it 3 beside a right remedy |

Mended, as classes: paths that are too long for Windows, and its commands in place of a Unix shell's; ONNX's exporter, whose message names the
exception by its class; exports, whose traceback holds the program's own line; what a packaged program misses; operators of one's own (a number that
came as a tensor, a schema that aliases, a fake kernel that branches); transforms around compiled functions; tools that triton starts. Four stay: what
eager mode raises as well, a warning that costs nothing, and one guard on a number.

The forty-sixth part is such a spread once more, on the mended tree: the first remedy was right in 7 of 13, a right one listed in 9, and one forbidden
thing. What was missing is in front of the first event: a program compiled ahead of time that cannot be created, a compiler's line behind a progress
bar, MSVC without its headers, sizes as keys. Two stay: a warning that costs nothing, and a program's own table of keys.

## Now

"""


@dataclass(frozen=True, slots=True)
class Case:
    """One paste. events: the fields to compare, in order. basis: who vouches for ``expected``.

    silent: why the program says nothing of it on purpose, although a remedy was expected; empty for all others.
    """

    source: str
    basis: str
    because: str
    log: bytes
    events: tuple[Mapping[str, object], ...]
    expected: frozenset[str]
    forbidden: frozenset[str]
    torch: str | None = None
    file: str = ""
    silent: str = ""

    @property
    def part(self) -> str:
        """``open``, ``kept back`` (a third, read only after the first change), ``fresh`` or ``last`` (collected later)."""
        if self.file in LATER:
            return self.file
        return "kept back" if zlib.crc32(self.source.encode()) % 3 == 0 else "open"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one case. mistakes: where the events differ. advised: keys of all findings, the first finding's first.

    first: the remedy to do first of each finding. wrong: what was advised and must not be.
    """

    case: Case
    mistakes: tuple[str, ...]
    causes: tuple[str, ...]
    first: tuple[str, ...]
    advised: tuple[str, ...]
    wrong: tuple[str, ...]

    @property
    def is_first(self) -> bool:
        """True when a remedy to do first is an expected one."""
        return not self.case.expected.isdisjoint(self.first)

    @property
    def is_good(self) -> bool:
        """True when an expected remedy is among the advice, and none that is forbidden."""
        return not self.case.expected.isdisjoint(self.advised) and not self.wrong


@functools.cache
def cases() -> tuple[Case, ...]:
    """All cases, in the order of the files."""
    return tuple(_case(entry, file.stem) for file in sorted(THREADS.glob("*.toml")) for entry in tomllib.loads(file.read_text())["case"])


def _case(entry: dict[str, object], file: str) -> Case:
    text = cast(dict[str, str], entry)
    lists = cast(dict[str, list[str]], entry)
    events = tuple(cast(list[Mapping[str, object]], entry["events"]))
    log = text["log"].encode()
    return Case(
        text["source"], text["basis"], text["because"], log, events, frozenset(lists["expected"]), frozenset(lists["forbidden"]),
        cast(str | None, entry.get("torch")), file, text.get("silent", ""),
    )  # fmt: skip


def outcome(case: Case) -> Outcome:
    """Reads one paste as ``analyze`` does and weighs what it says."""
    analysis = Analysis(rules())
    events = engine_events([case.log], "paste.log")
    for event in events:
        analysis.add(event)
    findings = analysis.report(Facts((SourceFacts("paste.log"),), torch_version=case.torch), load_catalog()).findings
    advised = _names(one for finding in findings for one in finding.advice)
    first = _names(finding.advice[0] for finding in findings if finding.advice)
    return Outcome(
        case, tuple(_mistakes(case, [event_to_json(event) for event in events])), tuple(dict.fromkeys(str(one.cause) for one in findings)),
        first, advised, tuple(_wrong(case, findings)),
    )  # fmt: skip


def _names(advice: Iterable[Advice]) -> tuple[str, ...]:
    """The forms and the keys, in their order: a case may expect either."""
    return tuple(dict.fromkeys(name for one in advice for name in (one.name, one.remedy)))


def _mistakes(case: Case, events: list[dict[str, object]]) -> Iterable[str]:
    kinds = [event["kind"] for event in events]
    wanted_kinds = [event["kind"] for event in case.events]
    if kinds != wanted_kinds:
        yield f"events {kinds}"
        return
    for wanted, event in zip(case.events, events, strict=True):
        reasons = cast(list[dict[str, object]], event["reasons"])
        seen = {**event, "texts": [reason["text"] for reason in reasons], "causes": [reason["cause"] for reason in reasons]}
        for name, value in wanted.items():
            if seen.get(name) != (None if value == "null" else value):
                yield f"{name} {seen.get(name)!r}"


def _wrong(case: Case, findings: Iterable[Finding]) -> Iterable[str]:
    for finding in findings:
        keys = set(_names(finding.advice))
        yield from sorted(keys & case.forbidden)
        if finding.kind in RECOMPILES:
            yield from sorted(keys & NO_CURE_FOR_RECOMPILES)
        if finding.kind == "cudagraph_overwritten_error" and "mark_step_begin" in keys and "clone_outputs" not in keys:
            yield "mark_step_begin alone"
        if any(NEVER_IN_TEXT in f"{one.apply} {one.title}" for one in finding.advice):
            yield NEVER_IN_TEXT


def rate(outcomes: Iterable[Outcome]) -> str:
    """``40 of 45``: how many got an expected remedy and none that is forbidden."""
    outcomes = list(outcomes)
    return f"{sum(one.is_good for one in outcomes)} of {len(outcomes)}"


def page() -> str:
    """What the program says of every case now, as Markdown."""
    outcomes = [outcome(case) for case in cases()]
    parts = [(part, [one for one in outcomes if one.case.part == part]) for part in PARTS]
    confirmed = [one for one in outcomes if one.case.basis in CONFIRMED]
    rows = [_counts(name, group) for name, group in (*parts, ("all", outcomes), ("confirmed in the thread", confirmed))]
    counts = "| part | good | an expected remedy first | events exact |\n|---|---|---|---|\n" + "".join(rows)
    table = "| case | part | known from | cause | first remedies | expected | events |\n|---|---|---|---|---|---|---|\n"
    return INTRODUCTION + counts + "\n## Every case\n\n" + table + "".join(map(_row, outcomes))


def _counts(name: str, outcomes: list[Outcome]) -> str:
    firsts = sum(one.is_first and one.is_good for one in outcomes)
    return f"| {name} | {rate(outcomes)} | {firsts} | {sum(not one.mistakes for one in outcomes)} |\n"


def _row(one: Outcome) -> str:
    """One case: ``first`` when a remedy to do first is an expected one, ``yes`` when one stands further down."""
    found = ("first" if one.is_first else "yes") if one.is_good else f"**no**{f': {one.case.silent}' if one.case.silent else ''}"
    causes = ", ".join(sorted(cause for cause in one.causes if cause != "None")) or "-"
    firsts = ", ".join(f"`{key}`" for key in one.first) or "-"
    cells = (one.case.source, one.case.part, one.case.basis, causes, firsts, found, "exact" if not one.mistakes else "**differ**")
    return "| " + " | ".join(cells) + " |\n"


def main() -> int:
    """Writes the page, or prints one line for each case."""
    parser = argparse.ArgumentParser(prog="python -m tests.threads", description=main.__doc__)
    parser.add_argument("--report", type=Path, metavar="FILE", help="writes the page")
    options = parser.parse_args()
    if options.report is not None:
        options.report.write_text(page())
        return 0
    for one in map(outcome, cases()):
        print("good" if one.is_good else "BAD ", one.case.source, *one.advised, *one.wrong, *one.mistakes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
