"""What `recgpt night` ends when it ends; a whole night is in dags/test_night.py and flow/test_one_user.py."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from recgpt_ops.commands import night_run
from recgpt_ops.commands.night_run import NightOrder, end_engines, run_night
from recgpt_ops.errors import NightError
from recgpt_ops.llm import ray_engine
from recgpt_ops.llm.cluster import Head, HeadStatus
from recgpt_ops.settings import load_settings

ORDER = NightOrder("2017-10-30", "default", ("v2",), 1, (), "night")


@pytest.fixture
def ended(monkeypatch):
    """The runs whose engines were ended, instead of ending any."""
    monkeypatch.setattr(night_run, "LOCAL_ENVIRONMENT", {})
    runs = []
    monkeypatch.setattr(ray_engine, "release_engines", lambda settings, *, warehouse_root, run: runs.append((settings.port, run)))
    return runs


def stand_in(monkeypatch, *, started_here, exit_code):
    """A head that is there, and a night that does nothing."""

    @contextmanager
    def local_head(settings):
        yield Head("http://127.0.0.1:1", started_here)

    monkeypatch.setattr(night_run, "local_head", local_head)
    monkeypatch.setattr(night_run, "head_status", lambda settings: HeadStatus(True, "", None, ""))
    monkeypatch.setattr(night_run, "seconds_of_nights", lambda warehouse: {})
    monkeypatch.setattr(night_run, "start", lambda *given: None)
    monkeypatch.setattr(night_run, "watch", lambda *given, **more: exit_code)


@pytest.mark.parametrize("exit_code", [0, 1])
def test_on_a_head_that_stays_the_engines_of_this_night_are_ended_however_it_ends(monkeypatch, tmp_path, ended, exit_code):
    stand_in(monkeypatch, started_here=False, exit_code=exit_code)
    warehouse, settings = SimpleNamespace(root=str(tmp_path)), load_settings({})
    if exit_code:
        with pytest.raises(NightError, match="ended with exit code 1"):
            run_night(warehouse, settings, ORDER)
        [(port, _)] = ended
    else:
        result = run_night(warehouse, settings, ORDER)
        [(port, run)] = ended
        assert run == result.publish_id
    assert port == settings.ray.port


def test_a_head_that_the_night_started_takes_its_engines_along(monkeypatch, tmp_path, ended):
    stand_in(monkeypatch, started_here=True, exit_code=0)
    run_night(SimpleNamespace(root=str(tmp_path)), load_settings({}), ORDER)
    assert ended == []


def test_a_cluster_keeps_its_engines_until_they_are_idle(ended):
    known = load_settings({})
    end_engines(replace(known, ray=replace(known.ray, address="http://ray-head:8265")), "w", "p1")
    assert ended == []


def test_a_head_that_is_gone_meanwhile_is_no_fault(monkeypatch):
    asked = []

    def refuse(settings, *, warehouse_root, run):
        asked.append(run)
        raise ConnectionError("nobody listens")

    monkeypatch.setattr(night_run, "LOCAL_ENVIRONMENT", {})
    monkeypatch.setattr(ray_engine, "release_engines", refuse)
    end_engines(load_settings({}), "w", "p1")
    assert asked == ["p1"]
