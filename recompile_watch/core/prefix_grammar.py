"""The grammar of prefixes: what stands in front of a message, as patterns over bytes.

Source of torch's formats: torch/_logging/_internal.py (TorchLogsFormatter.format), torch 2.1 to 2.15, and the
torchdynamo package of 2022. All patterns are anchored and their repeats bounded, so that no line can make them slow.
"""

import re
from typing import NamedTuple

from recompile_watch.core.compile_id import COMPILE_ID
from recompile_watch.core.late import pattern


class Stamp(NamedTuple):
    """A time as printed.

    form: ``"zoned"`` (full date and zone), ``"local"`` (full date, no zone), ``"glog"`` (no year, no zone),
    ``"epoch"`` (microseconds since 1970). text: the digits as printed, ``2025-10-30 09:08:09.06``.
    """

    form: str
    text: str


class Piece(NamedTuple):
    """One message line without its prefixes.

    channel: the stable outer identity; torch: torch's own prefix bytes (b"" when there is none), equal for all
    lines of one torch record; text: the message; stamp: the innermost time, outer_stamp: the transport's.
    headed: an application or torch prefix stood in front (not so for a bare line).
    continues: the carrier cut the line here, the next piece of the channel goes on (Docker 16 KiB, CRI ``P``).
    carried, carrier: what the carrier's layer holds before anything inside it is peeled, and the carrier's own
    channel (only where such cuts can happen; carrier None elsewhere).
    same_entry: a further line inside one JSON log entry, so it belongs to the line before it.
    tag: what a launcher put in front of the line, known only by what stands behind it; ``channel`` ends with it.
    torn: the line breaks off in the middle of a word, where the next one begins.
    """

    channel: bytes
    torch: bytes
    text: bytes
    stamp: Stamp | None
    outer_stamp: Stamp | None
    rank: int | None
    pid: int | None
    compile_id: bytes | None
    artifact: bytes
    headed: bool
    continues: bool
    carried: bytes = b""
    carrier: bytes | None = None
    same_entry: bool = False
    tag: bytes = b""
    torn: bool = False

    @property
    def tagged(self) -> bytes:
        """The text with the name of torch's artifact in front of it, as torch prints it: ``[__graph_breaks] Traceback …``."""
        return b"[" + self.artifact + b"] " + self.text if self.artifact else self.text

    @property
    def placed(self) -> bytes:
        """The text behind the module of torch that logged it, where that is the one which counts compilations: ``convert_frame: To log …``."""
        return (
            b"convert_frame: " + self.text
            if b"_dynamo/convert_frame.py:" in self.torch.replace(b"\\", b"/") or b"dynamo.convert_frame: " in self.torch
            else self.text
        )


MAX_LAYERS = 12
LINUX_PID_MAX = 1 << 22  # a larger number in the glog prefix is the thread id that torch 2.2 to 2.4 print there

ISO = rb"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
ZONE = rb" ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)(?![\w:])"
LEVEL = rb"(?:TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|FATAL|trace|debug|info|notice|warning|warn|error|critical|fatal|Warning)"
MONTH_NAMES = (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
MONTHS = rb"(?:" + b"|".join(MONTH_NAMES) + rb")"
DAYS = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"

ANSI = pattern(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]{1,4}[0-~]|[0-Z\\^-~])")
# Colours whose escape byte a viewer ate or syslog spelled out: "[1;36m", "#033[0m".
ANSI_WRECK = pattern(rb"#033\[[\d;]{0,12}m|(?<![\w\]])\[(?:0|\d{1,3}(?:;\d{1,3})+)m")
# How a page, a terminal or a program shows the escape byte that it does not print; most leave nothing of it: "^[[32m", "\\u001b[32m", "[32m".
SHOWN_ESCAPE = rb"(?:\x1b|\\{1,4}(?:u(?:001b|fffd|241b|2190)|x1b|033|e)|#033|\^\[|(?<![A-Z])ESC|\xef\xbf\xbd|\xe2\x90\x9b|\xe2\x86\x90)?"
SHOWN_COLOURS = pattern(SHOWN_ESCAPE + rb"\[\d{0,3}(?:;\d{1,3}){0,6}m")  # in a line in which they end
COLOURS_END = b"[0m"
BREAK = pattern(rb"(?:<br ?/?>|</(?:pre|code|samp|div|span|p|li|td|tr|tt)>)+\s*$")
# Newlines that syslog spelled out: lines of a record of torch's stand behind some of them.
SYSLOG_NEWLINES = pattern(rb"#012(?: {2,12}\S|(?:\[(?:rank|default)\d{1,6}\]:)?[VDIWEC]\d{4} \d\d:)")
ENTITY = pattern(rb"&(?:gt|lt|amp|quot|apos|nbsp|#\d{1,6}|#x[0-9a-fA-F]{1,6});")
# A date, a time or a number may have been made unreadable before it was shown: "W1017 xx:50:14.963000 17892 ".
_GLOG_TIME = rb"[\dxX*]{4} (?:[\dxX*]{2}:){2}[\dxX*]{2}"
GLOG = pattern(
    rb"[VDIWECF](?:(?P<stamp>\d{4} \d\d:\d\d:\d\d(?:\.\d{1,9})?)|" + _GLOG_TIME + rb"(?:\.[\dxX*]{1,9})?) +"
    rb"(?:(?:(?P<pid>\d{1,20})|[xX*]{1,20})(?: +|\](?: |$)))?"
    rb"(?:(?:[A-Za-z]:\\[^\]\n]{1,300}?|[^\s\]\[:\"']{1,300}):\d+\](?: |$))?"
    rb"(?:\[(?P<cid>" + COMPILE_ID + rb")\](?: |$))?"
    rb"(?:\[(?P<artifact>__\w+)\](?: |$))?"
)
# Inside a line only the full form counts: five fields that no application prints by chance.
GLOG_INSIDE = pattern(
    rb"(?:\[(?:rank|default)\d+\]:\s?)*"
    rb"[VDIWEC]" + _GLOG_TIME + rb"\.[\dxX*]{6} [\dxX*]{1,20} (?:[A-Za-z]:\\[^\]\n]{1,300}?|[^\s\]\[:\"']{1,300}):\d+\](?= |$)"
)
BRACKET_TORCH = pattern(
    rb"(?:\[(?P<stamp>" + ISO + rb")\] (?:\[(?P<cid>" + COMPILE_ID + rb")\] )?)?"
    rb"(?P<logger>[Tt]orch(?:dynamo|inductor)?(?:\.\w+)*?(?:\.__(?P<tag>\w+))?):? \[?(?:" + LEVEL + rb"|CODE)\](?: |$)"
)
# How torch's messages begin, and the lines behind them: where nothing else tells a cut prefix from an application's own.
SAYS = (
    rb"torch\._dynamo hit config\.|Recompiling function |Graph [Bb]reak (?:in user code|from `)|skipping cudagraphs due to "
    rb"| {3}(?:function: '| ?last reason: )|To (?:log all|diagnose) recompilation | {4}(?:triggered by the following guard |- \d)"
    rb"|Graph [Bb]reak Reason: | {2}(?:Explanation|Hint|Developer debug context): |User code traceback:|Graph break: from user code at:"
)
TORCH_SAYS = pattern(SAYS)
# A glog prefix of which the copying person left only some of its parts: ".../torch/_dynamo/guards.py:2772] [16/8] [__recompiles] ",
# "[0/8] ", "W [0/8] ", "W1017 10:50:14 [0/8] ", "17892] [__recompiles] ". What is left holds a place, a compile id or an artifact,
# or a level with a time; in front of any other parts, those of the bracket prefix too, a message of torch tells.
_NOT_TORN = rb"(?!\d{1,20} {1,8}[^\d\[])"  # a number and a place are the rest of a line that another one tore, a number alone counts lines
_GLOG_LEFT = rb"(?:(?:[VDIWEC](?:\d{4})?|\d{4})\]? {1,8})?(?:\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]? {1,8})?(?:\d{1,20}\]? {1,8})?"
_CUT_ID = rb"(?:\d{1,6}/\d{1,6}|!\d{1,6}(?:/\d{1,6}/\d{1,6})?)(?:_\d{1,6})?"
_CUT_LOGGER = rb"[Tt]orch(?:dynamo|inductor|\.\w{1,40})\.(?!exc\b|config\b)\w{1,40}(?:\.\w{1,40}){0,4}(?:: | (?=\[?" + LEVEL + rb"))"
_CUT_LEVEL = rb"(?:\[" + LEVEL + rb"\]|" + LEVEL + rb"):? "
_CUT_PARTS = (
    rb"(?:(?:\[?" + LEVEL + rb"\]?:?|[VDIWEC](?:\d{4})?\]?|\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?|\d{1,20}\]?"
    rb"|[\w./\\~-]{0,300}\b\w+\.py:\d+\]|\[(?P<cid>" + _CUT_ID + rb")\]|\[(?P<artifact>__\w+)\]) {1,8}|" + _CUT_LOGGER + rb"){1,8}"
)
TORCH_CUT = pattern(
    # A clock is the carrier's or the application's, an E with three blanks pytest's mark of an error.
    _NOT_TORN + rb"(?!\d\d:\d\d:\d\d(?:[.,]\d{1,9})? {1,8}(?!\d{1,20}\]? {1,8}[^\d\[]))"
    rb"(?=[VDIWECt\d\[])(?!\[?" + LEVEL + rb"|E {3})" + _CUT_PARTS + rb"(?=" + SAYS + rb")"
)
GLOG_STUMP = pattern(
    _NOT_TORN
    + _GLOG_LEFT
    + rb"(?:(?:[A-Za-z]:\\[^\]\n]{1,300}?|[\w./\\~-]{0,300}\b\w+)\.py:\d+\](?: |$)(?:\[(?P<cid>"
    + COMPILE_ID
    + rb")\](?: |$))?"
    rb"|\[(?P<cid2>" + _CUT_ID + rb")\](?: |$)(?:" + _CUT_LOGGER + rb")?(?:" + _CUT_LEVEL + rb")?"
    rb"|(?=\[__\w{1,60}\](?: |$)))(?:\[(?P<artifact>__\w+)\](?: |$))?"
    rb"|[VDIWEC] {1,8}\d\d:\d\d:\d\d\.\d{6}\]?(?: |$)(?:\d{1,20}\]?(?: |$))?"
    # copying began inside the prefix's last words: "ert_frame.py:906] [7/8] torch._dynamo hit", "7/8] [__recompiles] Recompiling"
    rb"| ?(?:[\d:.]{1,15} )?(?:\d{1,20} )?[\w./\\:-]{0,80}\](?: \[(?P<cid3>" + COMPILE_ID + rb")\])?(?: \[(?P<artifact2>__\w+)\])? "
    rb"(?=torch\._dynamo hit config\.|Recompiling function |Graph [Bb]reak in user code)"
)
# The same with its beginning lost inside the date or the time: "19:36:39.653000 19376 torch/_dynamo/guards.py:964] [3/8] ".
GLOG_CUT = pattern(
    rb"(?:\d{1,4} )?\d\d:\d\d:\d\d(?:\.\d{1,9})? (?P<pid>\d{1,20}) (?:[A-Za-z]:\\[^\]\n]{1,300}?|[^\s\]\[:\"']{1,300}):\d+\](?: |$)"
    rb"(?:\[(?P<cid>" + COMPILE_ID + rb")\](?: |$))?(?:\[(?P<artifact>__\w+)\](?: |$))?"
)
# The end of a bracket prefix's date: "27 21:42:30,628] " in front of the logger's name.
BRACKET_CUT = pattern(rb"(?:[\d-]{1,10} )?\d\d:\d\d:\d\d,\d{3}\] (?=(?:\[[\d/_]{1,20}\] )?torch[\w.]{0,80}: \[)")
BRACKET_INSIDE = pattern(
    rb"(?:\[(?:rank|default)\d+\]:\s?)*"
    rb"\[" + ISO + rb"\] (?:\[" + COMPILE_ID + rb"\] )?[Tt]orch(?:dynamo|inductor)?(?:\.\w+)*: \[" + LEVEL + rb"\] "
)
# The basic format of Python's logging, behind what a program printed without a newline.
BASIC_INSIDE = pattern(rb"(?<=\s)(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):torch(?:dynamo|inductor|\._dynamo|\._inductor)(?:\.\w+)*:(?=\S)")
TORCH_AHEAD = pattern(
    rb"[\s>*`_#~|-]{1,60}(?=(?:\[(?:rank|default)\d+\]:\s?)*[VDIWEC]" + _GLOG_TIME + rb"|\[(?:rank|default)\d+\]:"
    rb"|[Tt]orch(?:dynamo|inductor|\._dynamo|\._inductor)[\w.]{0,80}: \[" + LEVEL + rb"\]"
    rb"|(?:\[\d{1,6}/\d{1,6}(?:_\d+)?\] (?:\[__\w+\] )?|\[__\w+\] )(?:torch\._dynamo hit config\.|Recompiling function |Graph [Bb]reak in user code))"
)
# A notebook, or an editor, makes links of the paths in its output: "[/app/m.py:38](https://file+.vscode-resource…/m.py:38)".
LINK = pattern(rb"\[([^\[\]\s]{0,400}[/\\][^\[\]\s]{1,400})\]\((?:https?|file|vscode)[^()\s]{1,2000}\)")

TORCH_STARTS = pattern(rb"[VDIWEC]" + _GLOG_TIME + rb"|\[(?:rank|default)\d+\]:|\[" + ISO + rb"\] (?:\[[\d/_]+\] )?torch")
INDENTED_HEADER = pattern(rb"[ \t]{1,12}(?=" + LEVEL + rb":[\w.]+:\S|20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d)")
RANK = pattern(rb"\[(?:rank|Rank|RANK):?[ =]?(?P<rank>\d{1,6})\]:?(?:\s(?! ))?|rank(?P<rank2>\d{1,6}): ")
ROLE = pattern(rb"\[[a-z_-]{1,40}\d{1,6}\]:(?:\s(?! ))?")  # torchrun puts no blank behind it
# mpirun's tag, with ctime's date in front of it or without a tag, and that of Open MPI 5; a blank more is the message's own.
MPI = pattern(rb"\[(?:[\w.@-]{1,120}@)?\d+,(?:mpirank:)?(?P<rank>\d+)(?:,[\w.-]{1,120})?\]<std(?:out|err)>:(?: (?! ))?")
MPI_DATED = pattern(
    DAYS + rb" (?P<day>" + MONTHS + rb" [ \d]\d) (?P<clock>\d\d:\d\d:\d\d) (?P<year>\d{4})(?:\[\d+,(?P<rank>\d+)\])?<std(?:out|err)>:(?: (?! ))?"
)
_PROCESS = rb"\bpid=(?P<pid>\d{1,10})(?:, ip=[\w.:-]{1,60})?\)\s?"
_NESTED = rb"(?:\((?:[^()\n]|\([^()\n]{0,80}\)){0,80}\))?"  # a Ray actor names its task: "MapWorker(MapBatches(Stage))"
WORKER = pattern(rb"\((?P<name>[^()\n]{0,120}?" + _NESTED + rb"[^()\n]{0,60}?)" + _PROCESS)
WORKER_CUT = pattern(rb"(?P<name>[A-Z]\w{2,60}" + _NESTED + rb" )" + _PROCESS)  # its first parenthesis was not copied
WORKER_RANK = pattern(rb"\brank=(\d{1,6})\b")
SLURM = pattern(rb" {0,6}\d{1,6}: |\d{1,8}:(?=\[|[VDIWEC]\d{4} )")
CI_TABS = pattern(rb"[^\t\n]{1,120}\t[^\t\n]{1,120}\t(?=(?:\xef\xbb\xbf)?\d{4}-)")
LABELS = pattern(rb"\{[A-Za-z_]\w{0,60}=\"[^\"\n]{0,200}\"(?:, ?[A-Za-z_]\w{0,60}=\"[^\"\n]{0,200}\"){0,30}\} ")  # of a stream, as logcli prints them
CI_COMMAND = pattern(rb"##\[(?:error|warning|debug|command|section)\]")  # Azure DevOps and GitHub colour a line by it
TEAMCITY = pattern(rb"\[\d\d:\d\d:\d\d\](?: |[a-zA-Z])?:[ \t]{1,8}(?:\[[^\]\n]{1,120}\] )?")
LINE_NUMBER = pattern(rb" {1,8}\d{1,8}\t")  # of cat -n, nl and less -N
HTML_OPENS = pattern(rb"(?:<(?:pre|code|samp|div|span|p|li|td|tr|tt)(?: [^<>\n]{0,200})?>){1,8}")
KAGGLE = pattern(rb"\d{1,7}\.\d{1,3}s\t\d{1,9}\t")  # seconds since the notebook began, and the cell
CI_STREAM = pattern(rb"\d\d[OE][ +]")
POD = pattern(rb"\[pod/[^\]\s]{1,300}\] ")
PODMAN = pattern(rb"\[[\w.-]{1,120}\] *\| ")
PM2 = pattern(rb"\d{1,4}\|[\w.@-]{1,60} *\| ")
# A pod's name ends in letters that Kubernetes draws without vowels (rand.SafeEncodeString); its container follows, as stern prints them.
STERN = pattern(rb"(?:[a-z0-9][a-z0-9-]{0,62} )?[a-z0-9][a-z0-9.-]{0,240}-[bcdfghjklmnpqrstvwxz2456789]{5} [a-z0-9][a-z0-9-]{0,62} ")
# What launchers put in front of every line and a message can begin with just as well: it is a tag where a message begins behind it.
TAG = pattern(
    rb"(?=[\w.-]{0,100}\d)(?:[a-z][a-z0-9.-]{0,100}|[A-Z][A-Z0-9-]{0,62}): "  # a host, of pdsh and clush: clusters number theirs
    rb"|\[\d{1,6}\] "  # the rank, of mpiexec -l
    rb"|[a-z0-9][a-z0-9.-]{0,240}-\d{1,4} [a-z][a-z0-9-]{0,62} "  # a pod of a stateful set and its container, of stern
    rb"|\[[a-z0-9][a-z0-9.-]{0,240}-[a-z0-9]{1,10}(?: [a-z0-9-]{1,63})?\] |[a-z0-9.-]{1,240}/[a-z0-9.-]{1,240}\[[a-z0-9-]{1,63}\]: "  # kubetail, kail
    rb"|[a-z][\w-]{0,62}/\d{1,6} |\S{1,200}\t|E {3}"  # a replica, of torchx; a job's argument, of parallel --tag; pytest's mark of an error
    rb"|\d{1,8}:(?=\S)"  # the number of the line, of grep -n
)
COMPOSE = pattern(rb"[A-Za-z0-9][\w.@-]{0,160}\s{0,40}\|(?: |$)")
CRI = pattern(rb"(?P<stamp>" + ISO + rb")(?P<zone>Z|[+-]\d\d:\d\d) (?P<stream>stdout|stderr) (?P<flag>[FP])(?: |$)")
CRI_INSIDE = pattern(rb"(?<![^\s>])\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:Z|[+-]\d\d:\d\d) std(?:out|err) [FP] ")
# The time of syslog and journald, then host, program and process; ts, of moreutils, prints the time alone.
SYSLOG = pattern(
    rb"(?:<\d{1,3}>)?(?P<day>" + MONTHS + rb" [ \d]\d) (?P<clock>\d\d:\d\d:\d\d(?:\.\d{1,9})?) "
    rb"(?:(?P<id>[\w.-]{1,255} [^\s\[:\d][^\s\[:]{0,127}(?=[:\[])|[^\s\[:\d][^\s\[:]{0,127}(?=\[\d))(?:\[(?P<pid>\d{1,10})\])?: ?)?"
)
# journalctl --no-hostname leaves the host out; Heroku names a process type: "app[worker.1]".
LOGGED_BY = rb"(?P<id>(?:[\w.-]{1,255} )?[^\s\[:]{1,128}\[(?P<pid>[\w.-]{1,40})\]): ?"
_ISO_ZONED = rb"(?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,6})?[+-]\d\d:?\d\d) "
JOURNAL_ISO = pattern(_ISO_ZONED + LOGGED_BY)
RSYSLOG = pattern(_ISO_ZONED + rb"(?P<id>[\w.-]{1,255} [^\s\[:\d][^\s\[:]{0,127}): ?")  # a program that gives no process
JOURNAL_FULL = pattern(DAYS + rb" (?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{6})?(?: UTC)?)(?: [A-Z]{3,5}| [+-]\d\d)? " + LOGGED_BY)
JOURNAL_UNIX = pattern(rb"(?P<epoch>\d{10}\.\d{6}) " + LOGGED_BY)
JOURNAL_MONOTONIC = pattern(rb"\[ {0,8}\d{1,10}\.\d{6}(?: < {0,8}\d{1,10}\.\d{6} ?>| {1,24})?\] " + LOGGED_BY)
# "aws logs tail": the name of a log stream has slashes.
LOG_STREAM = pattern(rb"(?P<stamp>" + ISO + rb")(?P<zone>[+-]\d\d:?\d\d) (?P<id>[\w$.-]{1,128}(?:/[\w$.\[\]-]{1,128}){1,6}) ")
# A machine, its region and the level, as Fly prints them.
FLY = pattern(rb"(?P<stamp>" + ISO + rb")(?P<zone>Z) (?P<id>app\[\w{4,32}\] [a-z]{3}) \[" + LEVEL + rb"\] ?")
TAI64N = pattern(rb"@[0-9a-f]{24} ")  # multilog and s6
# Airflow: a time, the place of its own that prints, its level.
AIRFLOW = pattern(
    rb"\[(?P<stamp>\d{4}-\d\d-\d\d(?:, |T)\d\d:\d\d:\d\d(?:\.\d{1,6})?)(?P<zone>" + ZONE + rb")\] \{[\w./-]{1,120}:\d{1,6}\} " + LEVEL + rb" - "
)
# Celery: a time, level and process; a task has its name and id behind them.
CELERY = pattern(rb"\[(?P<stamp>" + ISO + rb"): " + LEVEL + rb"/[\w-]{1,60}\] (?:[\w.-]{1,160}\[[0-9a-f]{8}-[0-9a-f-]{27}\]: )?")
# Month or day first: such a time is none. The level behind it makes it a header.
DAY_OF_YEAR = pattern(
    rb"\d\d/\d\d/\d\d \d\d:\d\d:\d\d " + LEVEL + rb" [\w.$]{1,120}: |\d\d/\d\d/\d{4} \d\d:\d\d:\d\d - " + LEVEL + rb" - (?:[A-Za-z_][\w.]{0,120} - )?"
)
RFC5424 = pattern(
    rb"<\d{1,3}>1 (?P<stamp>" + ISO + rb"(?:Z|[+-]\d\d:\d\d)) (?P<id>\S{1,255} \S{1,128} (?P<pid>\d{1,10}|-|\S{1,128}) \S{1,64}) "
    rb"(?:-|(?:\[(?:[^\]\\]|\\.)*\])+)(?: |$)(?:\xef\xbb\xbf)?"
)
QUOTE = pattern(rb"(?:> ?)+")

DIALECT_A = pattern(
    rb"(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC \| [^|\n]{1,40}E[SD]T \| [^|\n]{1,40}NZ[SD]T \| "
    rb"(?:\S+?:[^:\n]{1,120}:\d+ )?(?:\| )?" + LEVEL + rb" \| ?"
)
DIALECT_A_OLD = pattern(
    rb"(?P<nz>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) NZ[SD]T \| (?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?P<zone>E[SD]T) \| " + LEVEL + rb" \| ?"
)
DIALECT_B = pattern(rb"(?P<stamp>" + ISO + rb")(?P<zone>[+-]\d\d:?\d\d)? \| " + LEVEL + rb" *\| (?:[\w.<>]+:[^:\n]{1,120}:\d+ - ?)?")
# Inside a line only the long forms count, with a zone or a place. What a killed program began to write ends in front of it.
DIALECT_INSIDE = pattern(
    rb"(?<![:-])20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?: UTC \| [^|\n]{1,40}E[SD]T \| [^|\n]{1,40}NZ[SD]T \| "
    rb"|\.\d{3} \| [A-Z]{4,8} *\| [\w.<>]{1,120}:[^:\s]{1,120}:\d{1,9} - )"
)
STAMP = pattern(
    rb"(?P<bracket>\[)?(?P<stamp>"
    + ISO
    + rb")(?P<zone>"
    + ZONE
    + rb")?(?(bracket)(?: [\w =:]{1,30})?\])(?P<sep> - | ?\| ?|: |:|,? (?: *(?=[A-Z]{4,8}\b|\|))?|$|(?=\[))"
)
CLOCK = pattern(rb"(?:(?P<date>\d\d-\d\d) )?(?P<clock>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(?: - | \| |: | {1,2}|$)")
# A header token ends in a separator that prose has not; exception names and torch's own words are message, not header.
TOKEN = pattern(
    rb"(?!\[ERROR FORMATTING)(?:"
    rb"\[?" + LEVEL + rb"\]?(?: - | *\| ?|: ?| +|$|(?=\[))"
    rb"|\w{0,40}Thread:\d{1,10} (?=\[)|\[[\w./:<>() -]{1,120}\](?: - |: | (?: +(?=\[|" + LEVEL + rb"\b))?|$|(?=\[))"
    rb"|(?!(?:[\w.]*\.)?\w*(?:Error|Exception|Exceeded|Failed|Interrupt|Warning|Unsupported|Hit|SymNode)\b|function:|reasons?:)"
    rb"(?:[A-Za-z_][\w-]*(?:\.[\w-]+)*|[\w.-]+\.py:\d+(?: \w+\(\))?|[\w.]+:[\w<>.]+:\d+|MainThread|\d{1,10})(?: - | ?\| |\||: |:(?=[^\s\\]))"
    rb")"
)
LEVEL_FIRST = pattern(rb"\[?" + LEVEL + rb"\]?(?: - | *\| |:(?=[\w.]+:)|: ?| +(?=\d\d-\d\d |\[|\d{4}-|torch))")
BASIC_LOGGER = pattern(rb"[\w.]+:(?! )")
TORCH_LOGGER = pattern(rb"torch(?:dynamo|inductor)?(?:\.[a-z_]\w*)*: ")
BOLD = pattern(rb"^([\s>]*)\*\*(.*?)\*\*\r?$")
REPEATED = pattern(rb"\s*\[repeated \d+x across cluster\].*$")
# What a line, or a message behind torch's prefix, must hold at least for any layer to change it.
SUSPECT = rb"[\x00\x1b\r]|&[a-z#]|\]\((?:http|file|vscode)|\[(?:rank|default|repeated|\d{4}-|\d*;|0m)|\*\*|\d:\d\d:\d|#033|\]$|<br"
MAY_PEEL = pattern(SUSPECT + rb"|^\s*[{\"]|\{\"|^\s*\d{1,6}: |^\s*" + LEVEL + rb":", re.MULTILINE)
NUMBERED = pattern(rb"\n\s*(?:\d{1,6}: |" + LEVEL + rb":)")
HARMLESS = bytes(byte for byte in range(256) if byte not in b'\x00\x1b\r&[]*:#{"')
# Headers of the bot's two file dialects as a whole; no carrier stands in front of them.
DIALECT_HEADERS = (
    rb"(?P<utc>\d{4}-.{13}\d) UTC \| .{19} E[SD]T \| .{19} NZ[SD]T \| [^\s:|]{1,120}:[^:\s|]{1,120}:\d{1,9} "
    rb"(?:\x1b\[\d{1,3}m)?" + LEVEL + rb"(?:\x1b\[0m)? \| ",
    rb"(?P<local>\d{4}-.{17}\d) \| " + LEVEL + rb" *\| [\w.<>]{1,120}:[^:\s]{1,120}:\d{1,9} - ",
)
# A line of dialect C (no metric has it) whose message certainly does not begin with two blanks.
LOGGING_LINE = rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - [A-Za-z_][\w.]{0,120} - " + LEVEL + rb" - (?:[^ \n\r\x00\x1b&]| (?! ))*\n"
BETWEEN_ENTRIES = pattern(rb"\}\s*\{\s*\"")
# What is left of such an entry when the log's beginning was cut inside of its text: ... foo\n","stream":"stderr"}, or foo\n",
STRING_REST = pattern(rb"(?P<body>(?:[^\"\\]|\\.)*?)(?:\\n\",?|(?:\\n)?\"(?:, ?\"[\w@.]{1,40}\": ?.*)?\},?)\s*")
STRING_BODY = pattern(rb"(?P<body>(?:[^\"\\]|\\.)*)\"")
CSV_BODY = pattern(rb"(?P<body>[^\"]*(?:\"\"[^\"]*)+)\"(?:,|$)")  # a table's cell, in which quotes are doubled
STRING_ELEMENT = pattern(rb"\s*\"(?P<body>(?:[^\"\\]|\\.)*)\",?\s*")
# A line of a JSON document between two of its texts.
BETWEEN_TEXTS = pattern(rb"\s+\"[\w@./-]{1,80}\" ?: ?(?:-?\d[\d.eE+-]{0,40}|\"(?:[^\"\\]|\\.)*\"|true|false|null|\{\}|\[\]|[{\[])?,?|\s*[{}],?")

# What names a message and is none: source (an import, a function that gives a string, a handler, a string that gets a name), an option with
# its help, a filter of warnings.
SOURCE = pattern(
    rb"from [\w.]{1,200} import |lambda\b[\w ,]{0,100}: [frb]{0,2}[\"']|except [\w.]{1,200}(?: as \w{1,60})?: ?(?:$|\S+ ?=)"
    rb"|\w{1,60} = [frbu]{0,2}[\"'][^\n]*[\"']$"
    rb"|(?:-\w, )?--[a-z][\w-]{0,60}(?:[ =]\S{1,60})?\s{2,}\S"
    rb"|[\"']?(?:ignore|error|always|default|module|once):\S[^\n]*:[\w.]{0,60}Warning[\"',]{0,3}$"
)
# One of torch's lines as a string that gets a name or is passed to a function, or as a comment that a change adds or takes away.
QUOTED_LINE = pattern(rb"(?:(?:\w = |\w\()[frbu]{0,2}[\"']{1,3}|(?:^|\s)[+-] {0,80}# ?)(?:[VDIWEC]\d{4} \d\d:|\[\d{4}-)")
# A quote that a line opens which a program logged as no trouble: what somebody wrote, or a document says.
TOLD = pattern(rb"(?<![\w=:\"'])(?:INFO|NOTICE|\[info *\])(?![\w=\"'])[^\"'`\n]{0,200}?[\s=(:\[](?P<quote>[\"'])")
BYTE_LIST = pattern(rb'"MESSAGE" ?: ?\[\d')  # how journald prints a message that is not UTF-8
JSON_TEXT = (
    "log", "message", "msg", "MESSAGE", "text", "body", "event", "textPayload", "line", "content", "stringValue", "_raw", "LogEntry",
    "LogMessage", "@m", "@message", "Message", "Log", "full_message", "short_message", "output", "stderr", "data",
)  # fmt: skip
TRACEBACK = b"Traceback (most recent call last)"
LOGFMT = pattern(
    rb"(?P<key>[\w.@-]{1,80})=(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|'(?P<single>(?:[^'\\]|\\.)*)'|(?P<bare>(?:[^\s\"'][^\s\"]*)?))(?:\s+|$)"
)
STRING_ENTRY = pattern(rb"\s*\"(?:" + "|".join(map(re.escape, JSON_TEXT)).encode() + rb")\" ?: ?\"(?P<body>(?:[^\"\\]|\\.)*)\",?\s*")
JSON_TIME = (
    "time",
    "timestamp",
    "@timestamp",
    "ts",
    "asctime",
    "datetime",
    "__REALTIME_TIMESTAMP",
    "_SOURCE_REALTIME_TIMESTAMP",
    "t",
    "timeUnixNano",
    "Timestamp",
    "TimeStamp",
    "TimeGenerated",
    "@t",
    "_time",
)
JSON_CHANNEL = (
    "stream", "stream_name", "rank", "local_rank", "pid", "process", "process_id", "_PID", "SYSLOG_PID", "hostname", "host", "_HOSTNAME",
    "pod", "pod_name", "container", "container_name", "_SYSTEMD_UNIT", "logger_pid",
)  # fmt: skip

_VARIES = pattern(rb"\d+|\b(?:" + b"|".join(MONTH_NAMES) + rb"|" + DAYS + rb")\b|\bstd(?:out|err)\\ [FP]\b|(?:\\ )+")


def front_form(front: bytes) -> bytes:
    """A pattern for what stands in front of another line like this front: with other numbers, days and months, of the other stream."""
    return _VARIES.sub(_any_such, re.escape(front))


def _any_such(match: "re.Match[bytes]") -> bytes:
    first = match[0][:1]
    if first == b"s":
        return rb"std(?:out|err) [FP]"
    return rb" +" if first == b"\\" else rb"\d+" if first.isdigit() else rb"[A-Z][a-z][a-z]"
