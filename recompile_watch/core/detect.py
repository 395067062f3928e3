"""Records become sightings: the fields that a rule's patterns found, read by the reader that the rule names."""

from recompile_watch.core.readers import READERS, read_plain
from recompile_watch.core.reasons import Reasons
from recompile_watch.core.records import Record
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.sightings import Sighting, TableRows, captured_fields, decode, extra_fields, sighting
from recompile_watch.core.tables import TABLES, table_of, without_cut_number


class Detector:
    """Turns closed records of one source into sightings.

    in_bulk: the rows of a table come as one ``TableRows``, for an analysis.
    """

    def __init__(self, rules: Ruleset, source: str, *, in_bulk: bool = False) -> None:
        self._source, self._in_bulk = source, in_bulk
        self._inner = tuple(rule for rule in rules.rules if rule.anywhere)
        self._reasons = Reasons()

    def sightings(self, record: Record) -> list[Sighting | TableRows]:
        """The events of one record, in the order of their lines; empty when it proves to be only a quotation."""
        if record.rule.is_mute:
            return []
        if record.rule.reader in TABLES:
            return self._table(record)
        found: list[Sighting | TableRows] = [*self._read(record)]
        if record.rule.inside:
            found += self._inside(record)
        return found

    def _read(self, record: Record) -> list[Sighting]:
        reader = READERS.get(record.rule.reader or "", read_plain)
        return reader(self._source, self._reasons, record, captured_fields(record))

    def _table(self, record: Record) -> list[Sighting | TableRows]:
        texts = decode(record.message()).split("\n")
        if record.cut and record.unterminated:
            texts = without_cut_number(texts)
        lines, span = [line for line, _ in record.at], (record.offset, record.at[-1][1] + 1)
        table = table_of(record.rule, self._source, record.stamp, texts, extra_fields(record.rule, captured_fields(record)), lines, span)
        if self._in_bulk:
            return [table._replace(outer_stamp=record.head.outer_stamp)] if table.at else []
        found: list[Sighting | TableRows] = []
        for number, index in enumerate(table.at):
            is_cut = record.match is None or (record.cut and record.unterminated and index == len(record.texts) - 1)
            found.append(sighting(self._source, record, table.row(number), place=record.at[index], partial=is_cut))
        return found

    def _inside(self, record: Record) -> list[Sighting]:
        """Events that another rule finds inside the record's message, such as torch's error in the bot's words."""
        message = record.message()
        for rule in self._inner:
            if rule is record.rule or not any(literal in message for literal in rule.literals):
                continue
            match = rule.pattern.search(message)
            if match is not None:
                return self._read(Record(rule, match, record.line, record.offset, record.head, record.stamp, [message], record.at, cut=record.cut))
        return []
