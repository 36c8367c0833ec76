from __future__ import annotations

from recgpt_ops.cli import run
from recgpt_ops.delta.warehouse import fix_identity, open_warehouse


def test_maintenance_tells_what_goes_and_the_newest_night(tmp_path, capsys):
    warehouse = open_warehouse(str(tmp_path / "shop"), create=True)
    fix_identity(warehouse, zone="America/New_York", locale="en-US")
    assert run(["maintenance", "--warehouse", warehouse.root]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "maintenance: nothing is old enough to go"
    assert told[1].startswith("FRESH v1: newest night none")


def test_a_late_night_is_exit_code_1_after_the_upkeep_was_done(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("RECGPT_NIGHT__IS_SCHEDULED", "true")
    warehouse = open_warehouse(str(tmp_path / "shop"), create=True)
    assert run(["maintenance", "--warehouse", warehouse.root]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("maintenance: nothing is old enough to go\nLATE  v1: newest night none, expected ")
    assert err.startswith("recgpt: LATE  v1")
