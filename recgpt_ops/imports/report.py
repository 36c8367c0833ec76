"""What an import did, in numbers that add up, and the table of them that people read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TableReport:
    """One table's rows: counts_in = kept + already_there + all dropped + all quarantined. Reasons map to rows."""

    table: str
    import_id: str
    counts_in: int
    kept: int
    already_there: int
    dropped: dict[str, int] = field(default_factory=dict)
    quarantined: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)  # quarantine reason -> file:line of its first row
    warnings: tuple[str, ...] = ()

    @property
    def quarantined_count(self) -> int:
        """Rows put into quarantine."""
        return sum(self.quarantined.values())

    @property
    def adds_up(self) -> bool:
        """Whether every row that came in is accounted for exactly once."""
        return self.counts_in == self.kept + self.already_there + sum(self.dropped.values()) + self.quarantined_count

    def reasons(self) -> str:
        """The quarantine reasons with counts and where the first row of each stands."""
        return ", ".join(
            f"{reason} {count:,}" + (f" (first at {self.examples[reason]})" if reason in self.examples else "")
            for reason, count in Counter(self.quarantined).most_common()
        )


@dataclass(frozen=True)
class ImportReport:
    """A whole import. `peak_memory_mb` is of this process."""

    source: str
    tables: tuple[TableReport, ...]
    seconds: float
    peak_memory_mb: int

    def rows(self) -> list[tuple[str, str, str, int]]:
        """The numbers as rows of (table, what, reason, rows), zeros left out but for those in, kept and already there."""
        told = []
        for table in self.tables:
            told += [(table.table, "in", "", table.counts_in), (table.table, "kept", "", table.kept)]
            told.append((table.table, "already there", "", table.already_there))
            told += [(table.table, "dropped", reason, count) for reason, count in Counter(table.dropped).most_common()]
            told += [(table.table, "quarantined", reason, count) for reason, count in Counter(table.quarantined).most_common()]
        return told

    def lines(self) -> list[str]:
        """The report as a table of fixed columns, warnings below, and a closing line."""
        rows = [(table, what, reason, f"{count:,}") for table, what, reason, count in self.rows()]
        widths = [max(map(len, column)) for column in zip(("table", "rows", "reason", "count"), *rows, strict=True)]
        told = [f"{'table':<{widths[0]}}  {'rows':<{widths[1]}}  {'reason':<{widths[2]}}  {'count':>{widths[3]}}"]
        told += [f"{t:<{widths[0]}}  {w:<{widths[1]}}  {r:<{widths[2]}}  {c:>{widths[3]}}" for t, w, r, c in rows]
        told += [f"warning: {warning}" for table in self.tables for warning in table.warnings]
        return [*told, f"{self.source}: imported in {self.seconds:.1f} s, peak memory {self.peak_memory_mb:,} MB"]
