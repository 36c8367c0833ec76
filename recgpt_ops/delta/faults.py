"""What may come out of a failing write: one line that names the table and never shows a row.

delta-rs puts a preview of rows into its messages, and an operating system error deep in its text. Neither may reach a log, so every
call that writes stands inside `told_plainly`, which raises our own error in place of theirs and drops theirs altogether.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from deltalake.exceptions import CommitFailedError, DeltaError

from recgpt_ops.errors import NightError, RecgptError, UsageError

NEXT_STEPS = {
    errno.ENOSPC: "free some room and run it again",
    errno.EDQUOT: "raise the quota or free some room, then run it again",
    errno.EROFS: "mount it for writing, or choose another --warehouse",
    errno.EACCES: "give this user the right to write there, or choose another --warehouse",
    errno.EPERM: "give this user the right to write there, or choose another --warehouse",
}


def storage_errno(error: BaseException) -> int | None:
    """The operating system's number behind an error of Python, Arrow or delta-rs; None when it is another kind of fault.

    >>> storage_errno(DeltaError("Generic LocalFileSystem error: ... No space left on device (os error 28)"))
    28
    """
    if isinstance(error, OSError) and error.errno in NEXT_STEPS:
        return error.errno
    found = re.search(r"(?:os error|errno) (\d+)", str(error))  # delta-rs and Arrow write it into their text
    number = int(found[1]) if found else None
    return number if number in NEXT_STEPS else None


@contextmanager
def told_plainly(where: str, *, root: str = "") -> Iterator[None]:
    """Turns what storage and its files raise into our errors: full, read-only or forbidden is UsageError, the rest NightError.

    `where` names table and partition. Commit conflicts pass as they are, because the caller reads the marker and decides.
    """
    try:
        yield
    except (RecgptError, CommitFailedError):
        raise
    except (OSError, DeltaError, pa.ArrowException) as error:
        number = storage_errno(error)
        if number is not None:
            place = root or getattr(error, "filename", None) or "the warehouse"
            raise UsageError(f"{where}: cannot write {place}: {os.strerror(number)}; {NEXT_STEPS[number]}") from None
        # `from None`, and the class alone: the text of the original may hold rows
        raise NightError(f"{where}: storage failed with {type(error).__name__}; run `recgpt doctor`, then the stage again") from None
