"""Fifty random damages, each to a fresh copy of the small warehouse: every one is found, under the name of what was hurt."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from recgpt_ops.delta.reading import DataFile, generation_files
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.ledger.segments import scan
from recgpt_ops.tables import all_contracts
from tests.unit.verification.damage import add_copy, in_place, other_value, rewrite_answer, segments, swap, through_delta
from tests.unit.verification.nights import BEFORE, DS, REBUILT, Row, copy_of, verify

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
SEED, FLIPS = 50, 50
RECORDS = ("llm_calls", "quarantine", "certificates", "publications")  # of the tables without certificates those that are recomputed whole


class Flip(NamedTuple):
    """What was done, and the words that one line of the differences has to hold: the table, and where it has one the generation."""

    told: str
    named: tuple[str, ...]


def tables(warehouse: Warehouse, *kinds: str) -> list[str]:
    """The tables that have rows, of some kinds; without kinds all whose rows are recomputed."""
    contracts = [one for one in all_contracts().values() if (one.kind in kinds if kinds else one.kind != "record" or one.name in RECORDS)]
    return [one.name for one in contracts if warehouse.exists(one.name) and generation_files(warehouse, one.name)]


def names_of(table: str, file: DataFile) -> tuple[str, ...]:
    """The words that name a file's rows."""
    return (table, *([file.partition["publish_id"]] if "publish_id" in file.partition else []))


def hurt_rows(random: Random, how: str) -> Callable[[list[Row]], list[Row]]:
    """A change of one random row: one value another, or the row lost or there twice."""

    def change(rows: list[Row]) -> list[Row]:
        place = random.randrange(len(rows))
        if how == "lost":
            return rows[:place] + rows[place + 1 :]
        if how == "doubled":
            return [*rows, rows[place]]
        row = rows[place]
        column = random.choice([name for name, value in sorted(row.items()) if value is not None and other_value(value) != value])
        return [*rows[:place], row | {column: other_value(row[column])}, *rows[place + 1 :]]

    return change


def flip_row(warehouse: Warehouse, random: Random) -> Flip:
    """A row of any table, behind the back of its log."""
    table = random.choice(tables(warehouse))
    file, how = random.choice(generation_files(warehouse, table)), random.choice(("changed", "lost", "doubled"))
    in_place(file, hurt_rows(random, how))
    return Flip(f"a row of {table} {how} in {Path(file.path).name}", names_of(table, file))


def flip_row_through_delta(warehouse: Warehouse, random: Random) -> Flip:
    """A row of any table by a commit of Delta's own, so that log and files agree."""
    table, how = random.choice(tables(warehouse)), random.choice(("changed", "lost", "doubled"))
    through_delta(warehouse, table, hurt_rows(random, how))
    return Flip(f"a row of {table} {how} through Delta", (table,))


def flip_file(warehouse: Warehouse, random: Random) -> Flip:
    """A file that is gone or cut short, that another of its table took the place of, or that another day has too."""
    table = random.choice(tables(warehouse, "night"))
    file, how = random.choice(generation_files(warehouse, table)), random.choice(("gone", "cut", "swapped", "copied"))
    path = Path(file.path)
    others = [one for one in generation_files(warehouse, table) if Path(one.path).read_bytes() != path.read_bytes()]
    if how == "gone":
        path.unlink()
    elif how == "cut":
        path.write_bytes(path.read_bytes()[: random.randrange(path.stat().st_size)])
    elif how == "swapped":
        swap(file, random.choice(others))
    else:
        add_copy(warehouse, table, file, ds=DS if file.partition["ds"] == BEFORE else BEFORE)
    return Flip(f"file {path.name} of {table} {how}", names_of(table, file))


def flip_pointer(warehouse: Warehouse, random: Random) -> Flip:
    """A row of `publications` that names another generation, or that is gone."""

    def move(rows: list[Row]) -> list[Row]:
        row = random.choice(rows)
        others = sorted({str(one["publish_id"]) for one in rows} | {REBUILT} - {row["publish_id"]})
        return [one if one is not row else row | {"publish_id": random.choice([name for name in others if name != row["publish_id"]])}
                for one in rows]  # fmt: skip

    how = random.choice(("moved", "lost"))
    through_delta(warehouse, "publications", move if how == "moved" else hurt_rows(random, how))
    return Flip(f"a pointer {how}", ("publications",))


def flip_answer(warehouse: Warehouse, random: Random) -> Flip:
    """An answer of the ledger: another text under a right checksum, or one byte."""
    segment = random.choice(segments(warehouse))
    how = random.choice(("rewritten", "rotten"))
    if how == "rewritten":
        last = len(list(scan(segment.read_bytes(), [], where="here"))) - 1  # the first may have its row on the day before
        rewrite_answer(segment, lambda payload: {**payload, "text": f"{payload['text']}x"}, place=last)
    else:
        data = bytearray(segment.read_bytes())
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        segment.write_bytes(data)
    return Flip(f"an answer of {segment.parent.parent.name} {how}", ("ledger",))


KINDS = (flip_row, flip_row_through_delta, flip_file, flip_pointer, flip_answer)


def test_fifty_random_flips_are_found_each_by_its_name(sound, tmp_path):
    random, missed = Random(SEED), []
    for number in range(FLIPS):
        damaged = copy_of(sound, tmp_path)
        flip = KINDS[number % len(KINDS)](damaged, random)
        lines = [difference.line for difference in verify(damaged).differences]
        if not any(all(name in line for name in flip.named) for line in lines):
            missed.append((number, flip, lines))
        shutil.rmtree(damaged.root)
    assert missed == [], f"{FLIPS - len(missed)} of {FLIPS} found"
