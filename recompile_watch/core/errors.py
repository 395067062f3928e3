"""Whose fault a failure is, as types.

RecompileWatchError
├── UsageError        the command line: unknown option, bad value (exit status 64)
├── ConfigError       the user's configuration file (exit status 78)
│   └── RuleError     one of the user's rule files
├── SourceError       a log that cannot be read (exit status 3)
├── StoreError        the state database
├── DeliveryError     a receiver that does not answer
└── DiagnosisError    a diagnostic that cannot or must not run (exit status 3)

Our own bugs get no type. A log line that cannot be read is no error: it is counted under a named reason.
"""


class RecompileWatchError(Exception):
    """Base of all errors that a user can do something about; its text is one line and says what to do next."""


class UsageError(RecompileWatchError):
    """The command line asks for something that does not exist."""


class ConfigError(RecompileWatchError):
    """A configuration file is wrong; the text names the file and the key."""


class RuleError(ConfigError):
    """A rule file is wrong; the text names the file, the rule and the key, one line a mistake."""


class SourceError(RecompileWatchError):
    """A log source is missing, unreadable or not a log."""


class StoreError(RecompileWatchError):
    """The state directory or its database cannot be used."""


class DeliveryError(RecompileWatchError):
    """A receiver refused or did not take a message."""


class DiagnosisError(RecompileWatchError):
    """A diagnostic cannot run, or must not run now; the text says why and what to do instead."""
