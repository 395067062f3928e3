"""Env files: what a shell file such as ``.env.compile`` sets and exports, read as a POSIX shell reads it and never run.

What only running it could tell (a substitution, a condition, another file) is marked as such, not guessed.
The grammar is that of the Shell Command Language, POSIX.1-2017, 2.2 to 2.10, as far as assignments go.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from recompile_watch.core.late import pattern

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_ASSIGNMENT = pattern(rf"({_NAME})=")
_JUST_NAME = pattern(_NAME)
_SIGN = pattern(r"&&|\|\||;;|[;&|()]")
_PLAIN = pattern(r"[^\s'\"\\;&|()$`<>]+")
_VARIABLE = pattern(rf"\$(?:{_NAME}|[0-9@*#?$!-])?")
_HEREDOC = pattern(r"<<-?[ \t]*(['\"]?)(\w+)\1")
_OPENS = frozenset({"if", "for", "while", "until", "case", "select"})
_CLOSES = frozenset({"fi", "done", "esac", "}"})
_SKIPPED = frozenset({"then", "do", "else", "elif", "!"})
_DECLARES = frozenset({"export", "declare", "typeset", "readonly"})
_RUN_IN_ANY_CASE = frozenset({"\n", ";"})


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that the file does to a variable.

    does: ``set``, ``export`` (a variable that has its value already), ``unset``, or ``blank`` (``A = b``, which sets nothing).
    value: None where only the shell would know it. line: 1-based. is_exported: it reaches the programs started from there.
    is_certain: it happens whenever the file is sourced, under no condition.
    """

    name: str
    does: str
    value: str | None
    line: int
    is_exported: bool
    is_certain: bool


@dataclass(frozen=True, slots=True)
class EnvFile:
    """An env file: its path and its steps in order.

    open_quote: the line on which a quote opens that is never closed; what follows is not read. has_returns: its lines end
    with carriage returns, which a shell takes into the values.
    """

    path: str
    steps: tuple[Step, ...]
    open_quote: int | None = None
    has_returns: bool = False


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a command. text: without its quotes. raw: as written. is_known: it holds no substitution."""

    text: str
    raw: str
    is_known: bool
    line: int


@dataclass(slots=True)
class _Shell:
    """Where the reader stands. depth: of conditions, loops and functions around it."""

    exports_all: bool = False
    depth: int = 0
    exported: set[str] = field(default_factory=set)
    steps: list[Step] = field(default_factory=list)


class _OpenQuoteError(Exception):
    """A quote is never closed."""


def parse_env_file(path: str, text: str) -> EnvFile:
    """What the file does to the environment; nothing of it is executed."""
    shell, reader = _Shell(), _Reader(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    try:
        for words, is_certain in _commands(reader):
            _take(words, is_certain, shell)
    except _OpenQuoteError:
        return EnvFile(path, tuple(shell.steps), reader.line, "\r\n" in text)
    return EnvFile(path, tuple(shell.steps), None, "\r\n" in text)


class _Reader:
    """Reads words and signs. line: of the word or sign that comes next, 1-based."""

    def __init__(self, text: str) -> None:
        self._text, self._position, self.line = text, 0, 1
        self._heredocs: list[str] = []

    def items(self) -> Iterator[_Word | str]:
        """Words, and the signs between commands; a line's end is one."""
        while self._position < len(self._text):
            item = self._blank() or self._sign() or self._word()
            if item:
                yield item

    def _blank(self) -> str | None:
        """Goes over what separates words; the newline when a line ended."""
        char = self._text[self._position]
        if char == "\n":
            self._go(self._position + 1)
            while self._heredocs:
                self._skip_heredoc(self._heredocs.pop(0))
            return "\n"
        if char in " \t\r\v\f":
            self._go(self._position + 1)
        elif self._text.startswith("\\\n", self._position):
            self._go(self._position + 2)
        elif char == "#":
            end = self._text.find("\n", self._position)
            self._go(len(self._text) if end < 0 else end)
        else:
            return None
        return ""

    def _sign(self) -> str | None:
        if self._at_end() or self._text[self._position] in " \t\r\v\f\n#":
            return ""
        sign = _SIGN.match(self._text, self._position)
        if sign is not None:
            self._go(sign.end())
            return sign[0]
        if self._text[self._position] not in "<>":
            return None
        heredoc = _HEREDOC.match(self._text, self._position)
        if heredoc is not None:
            self._heredocs.append(heredoc[2])
        self._go(heredoc.end() if heredoc else self._position + 1)
        return ""

    def _word(self) -> _Word | None:
        if self._at_end() or self._text[self._position] in " \t\r\v\f\n#;&|()<>" or self._text.startswith("\\\n", self._position):
            return None
        start, line, parts, is_known = self._position, self.line, [], True
        while not self._at_end() and self._text[self._position] not in " \t\r\v\f\n;&|()<>":
            part = self._part()
            is_known = is_known and part is not None
            parts.append(part or "")
        return _Word("".join(parts), self._text[start : self._position], is_known, line)

    def _part(self) -> str | None:
        """One piece of a word without its quotes; None for a substitution."""
        char = self._text[self._position]
        if char == "'":
            end = self._closing("'", self._position + 1)
            part: str | None = self._text[self._position + 1 : end]
            self._go(end + 1)
            return part
        if char == '"':
            return self._double_quoted()
        if char == "\\":
            part = self._text[self._position + 1 : self._position + 2]
            self._go(min(self._position + 2, len(self._text)))
            return part.removeprefix("\n")
        if char in "$`":
            self._go(self._behind_substitution(self._position))
            return None
        plain = _PLAIN.match(self._text, self._position)
        assert plain is not None
        self._go(plain.end())
        return plain[0]

    def _double_quoted(self) -> str | None:
        text, position, parts, is_known = self._text, self._position + 1, [], True
        while position < len(text) and text[position] != '"':
            char = text[position]
            if char == "\\" and position + 1 < len(text):
                following = text[position + 1]
                parts.append("" if following == "\n" else following if following in '"\\$`' else char + following)
                position += 2
            elif char in "$`":
                is_known, position = False, self._behind_substitution(position)
            else:
                parts.append(char)
                position += 1
        if position >= len(text):
            raise _OpenQuoteError
        self._go(position + 1)
        return "".join(parts) if is_known else None

    def _behind_substitution(self, position: int) -> int:
        """The position behind ``$name``, ``${…}``, ``$(…)``, ``$'…'`` or a pair of backquotes."""
        text = self._text
        if text[position] == "`":
            return self._closing("`", position + 1) + 1
        if text.startswith("$'", position):
            return self._closing("'", position + 2) + 1
        opening = text[position + 1 : position + 2]
        if opening not in ("(", "{"):
            variable = _VARIABLE.match(text, position)
            assert variable is not None
            return variable.end()
        closing, depth = {"(": ")", "{": "}"}[opening], 0
        for at in range(position + 1, len(text)):
            depth += (text[at] == opening) - (text[at] == closing)
            if depth == 0:
                return at + 1
        raise _OpenQuoteError

    def _closing(self, quote: str, position: int) -> int:
        end = self._text.find(quote, position)
        if end < 0:
            raise _OpenQuoteError
        return end

    def _skip_heredoc(self, ending: str) -> None:
        while not self._at_end():
            end = self._text.find("\n", self._position)
            line = self._text[self._position : end if end >= 0 else len(self._text)]
            self._go(len(self._text) if end < 0 else end + 1)
            if line.lstrip("\t") == ending:
                return

    def _go(self, position: int) -> None:
        self.line += self._text.count("\n", self._position, position)
        self._position = position

    def _at_end(self) -> bool:
        return self._position >= len(self._text)


def _commands(reader: _Reader) -> Iterator[tuple[list[_Word], bool]]:
    """The commands in order, each with whether it runs here in any case: not behind ``&&``, in a pipe or in parentheses."""
    words: list[_Word] = []
    before, parentheses = "\n", 0
    for item in reader.items():
        if isinstance(item, _Word):
            words.append(item)
            continue
        if words:
            yield words, not parentheses and before in _RUN_IN_ANY_CASE and item not in ("|", "&")
        parentheses = max(0, parentheses + (item == "(") - (item == ")"))
        before, words = item, []
    if words:
        yield words, not parentheses and before in _RUN_IN_ANY_CASE


def _take(words: list[_Word], is_certain: bool, shell: _Shell) -> None:
    """Notes what one command does to the environment."""
    while words and words[0].text in _SKIPPED:
        words = words[1:]
    if not words:
        return
    first = words[0].text
    if first in _OPENS or (first == "function" and words[-1].text == "{"):
        shell.depth += 1
    elif first == "{":
        shell.depth += 1
        _take(words[1:], is_certain, shell)
    elif first in _CLOSES:
        shell.depth = max(0, shell.depth - 1)
    elif first == "set":
        _set_options([word.text for word in words[1:]], shell)
    elif first in _DECLARES:
        _declare(first, words[1:], is_certain, shell)
    elif first == "unset":
        names = [word for word in words[1:] if _JUST_NAME.fullmatch(word.raw)]
        _note([(word.text, "unset", None, word.line) for word in names], False, is_certain, shell)
    elif len(words) > 1 and _JUST_NAME.fullmatch(words[0].raw) and words[1].raw.startswith("="):
        _note([(first, "blank", None, words[0].line)], False, is_certain, shell)
    elif all(_ASSIGNMENT.match(word.raw) for word in words):  # in front of a command they hold for that command only
        _note([_assigned(word) for word in words], shell.exports_all, is_certain, shell)


def _set_options(options: list[str], shell: _Shell) -> None:
    for option, following in zip(options, [*options[1:], ""], strict=True):
        if option[:1] in ("-", "+") and ("a" in option[1:] or (option[1:].endswith("o") and following == "allexport")):
            shell.exports_all = option[0] == "-"


def _declare(command: str, words: list[_Word], is_certain: bool, shell: _Shell) -> None:
    flags = "".join(word.text for word in words if word.text.startswith("-"))
    exports = (command == "export" and "n" not in flags) or (command in ("declare", "typeset") and "x" in flags) or shell.exports_all
    steps = []
    for word, following in zip(words, [*words[1:], None], strict=True):
        if _ASSIGNMENT.match(word.raw):
            steps.append(_assigned(word))
        elif _JUST_NAME.fullmatch(word.raw):
            is_blank = following is not None and following.raw.startswith("=")
            steps += [(word.text, "blank" if is_blank else "export", None, word.line)] if is_blank or exports else []
    _note(steps, exports, is_certain, shell)


def _assigned(word: _Word) -> tuple[str, str, str | None, int]:
    name, _, value = word.text.partition("=")
    return name, "set", value if word.is_known else None, word.line


def _note(steps: list[tuple[str, str, str | None, int]], exports: bool, is_certain: bool, shell: _Shell) -> None:
    for name, does, value, line in steps:
        if exports and does in ("set", "export"):
            shell.exported.add(name)
        elif does == "unset":
            shell.exported.discard(name)
        shell.steps.append(Step(name, does, value, line, name in shell.exported, is_certain and shell.depth == 0))
