"""The few errors of this project, and the exit code that each one ends a command with.

A message says where (table, ds, key), what was expected, what came, and the next step, in one line or a short list.
"""

from __future__ import annotations


class RecgptError(Exception):
    """Anything we raise on purpose. Shown as its message, without a stack trace."""

    exit_code = 1


class UsageError(RecgptError):
    """The command could not run: wrong use, a missing thing, no room on the disk. Nothing was changed."""

    exit_code = 2


class ConfigError(UsageError):
    """A settings, recipe, mapping or contract file is wrong. Carries every fault found, not only the first."""

    def __init__(self, where: str, faults: list[str]) -> None:
        """`where` names the file; `faults` are full sentences, each with its own next step."""
        self.where, self.faults = where, faults
        lines = "\n".join(f"  - {fault}" for fault in faults)
        super().__init__(f"{where}: {len(faults)} {'fault' if len(faults) == 1 else 'faults'}\n{lines}")

    def __reduce__(self) -> tuple[type[ConfigError], tuple[str, list[str]]]:
        """Made again from its parts where it crosses to another process (Ray)."""
        return type(self), (self.where, self.faults)


class InputsChangedError(UsageError):
    """A finished night was asked for again, but what it read has changed since."""


class ContractError(RecgptError):
    """Rows broke their contract beyond what the stage may quarantine; nothing was published."""


class NightError(RecgptError):
    """A stage of a night failed; what it had published before stays as it was."""


class EngineError(RecgptError):
    """The engine as a whole failed (died, was poisoned, could not load), not one row of it."""


class RowError(RecgptError):
    """One row could not be computed. The row goes to quarantine with `reason`; the others go on."""

    def __init__(self, reason: str, detail: str) -> None:
        """`reason` is a short snake_case word that is counted; `detail` a sentence with what was measured."""
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}")

    def __reduce__(self) -> tuple[type[RowError], tuple[str, str]]:
        """Made again from its parts where it crosses to another process (Ray)."""
        return type(self), (self.reason, self.detail)
