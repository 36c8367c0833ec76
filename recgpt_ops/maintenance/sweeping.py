"""Files and folders beside the tables that nobody needs any more: what a dead attempt staged, old recorded answers, old progress.

Only what was last written long ago goes. A job that is at work writes; one that stood still for a day was killed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from recgpt_ops.effects import effect

IN_FLIGHT = timedelta(days=1)  # longer than any stage's time limit in dags/
SEGMENT_SUFFIX = ".seg"


class Old(NamedTuple):
    """One file or folder that goes, and what it takes."""

    path: Path
    size_bytes: int


def last_write(path: Path) -> datetime:
    """When a file, or anything in a folder, was written last."""
    times = [path.stat().st_mtime]
    for folder, _, names in os.walk(path):
        times.append(os.stat(folder).st_mtime)
        times += [(Path(folder) / name).stat().st_mtime for name in names]
    return datetime.fromtimestamp(max(times), UTC)


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum((Path(folder) / name).stat().st_size for folder, _, names in os.walk(path) for name in names)


def older(paths: Iterable[Path], *, before: datetime) -> list[Old]:
    """Those of some files and folders that nobody has written to since."""
    found = []
    for path in sorted(paths):
        try:
            if last_write(path) < before:
                found.append(Old(path, size_of(path)))
        except FileNotFoundError:  # its job ended meanwhile and removed it
            continue
    return found


def old_staging(root: Path, *, before: datetime) -> list[Old]:
    """Folders of staged rows, `_staging/<table>/<generation>`."""
    return older((root / "_staging").glob("*/*"), before=before)


def old_progress(root: Path, *, before: datetime) -> list[Old]:
    """Lines about the progress of nights that ended."""
    return older((root / "_progress").glob("*.jsonl"), before=before)


def old_answers(ledger: Path, *, before: datetime) -> list[Old]:
    """Segments of recorded answers."""
    return older(ledger.rglob(f"*{SEGMENT_SUFFIX}"), before=before)


def remove(path: Path) -> None:
    """Removes a file, or a folder and all in it; what is gone already is fine."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_staging(old: Iterable[Old]) -> None:
    """Removes staged rows; a rerun finds what a kill left over."""
    for path, _ in old:
        with effect("staging.remove", path.parent.name):
            remove(path)


def remove_progress(old: Iterable[Old]) -> None:
    """Removes lines of progress."""
    for path, _ in old:
        with effect("progress.remove", path.stem):
            remove(path)


def remove_answers(old: Sequence[Old], ledger: Path) -> None:
    """Removes segments, and then the folders that hold nothing any more, the deepest first."""
    folders = {folder for path, _ in old for folder in path.parents if ledger in folder.parents}
    for path in [*(path for path, _ in old), *sorted(folders, reverse=True)]:
        if path.is_file() or not any(path.iterdir()):
            with effect("ledger.remove", path.relative_to(ledger).parts[0]):
                remove(path)
