"""Exit statuses (contract, section 2): the convention of monitoring plugins, and two of sysexits.h."""

OK = 0
WARNING = 1
CRITICAL = 2
UNKNOWN = 3
USAGE = 64
CONFIG = 78
INTERRUPTED = 130

_OF_STATUS = {"ok": OK, "warning": WARNING, "critical": CRITICAL, "unknown": UNKNOWN}


def status_code(status: str, fail_on: str) -> int:
    """The exit status of a report. Evidence that is missing stays UNKNOWN, whatever ``fail_on`` says."""
    code = _OF_STATUS[status]
    if (fail_on == "critical" and code == WARNING) or (fail_on == "never" and code != UNKNOWN):
        return OK
    return code
