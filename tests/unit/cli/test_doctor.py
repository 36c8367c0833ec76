from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from recgpt_ops import doctor
from recgpt_ops.doctor import examine, is_free, java, memory, model_findings, package, port_findings, warehouse_findings


def states(findings) -> dict[str, str]:
    return {finding.what: finding.state for finding in findings}


def test_a_healthy_machine_has_nothing_missing(settings, warehouse):
    found = list(examine(settings))
    assert {finding.what: finding.mend for finding in found if finding.state == "missing"} == {}
    assert len(found) >= 20


def test_a_missing_package_is_told_with_its_remedy():
    assert package("no-such-package") == ("no-such-package", "missing", "not installed", "make venv")


def test_the_warehouse_tells_zone_and_locale_or_that_it_is_to_be_made(settings, warehouse, tmp_path):
    assert "zone America/New_York, locale en-US" in list(warehouse_findings(settings))[-1].found
    empty = list(warehouse_findings(replace(settings, warehouse=str(tmp_path / "none"))))[-1]
    assert (empty.state, empty.mend) == ("note", "recgpt import complete-journey")


@pytest.mark.parametrize("below", ["", "/shop"])
def test_a_file_where_the_warehouse_should_be_is_told(settings, tmp_path, below):
    (tmp_path / "file").write_text("")
    (found,) = [f for f in warehouse_findings(replace(settings, warehouse=f"{tmp_path}/file{below}")) if f.what == "warehouse"]
    assert (found.state, found.found) == ("missing", f"{tmp_path}/file is a file")


def test_a_full_disk_is_missing_room(settings, monkeypatch):
    monkeypatch.setattr(doctor, "NEEDED_GB", 10.0**9)
    assert states(warehouse_findings(settings))["disk"] == "missing"


def test_little_memory_is_noted_with_the_setting_that_helps(monkeypatch):
    monkeypatch.setattr(doctor, "NEEDED_MEMORY_GB", 10.0**6)
    assert "engine.kv_cache_gb" in memory().mend


@pytest.mark.parametrize(
    ("kind", "model", "state"),
    [("vllm", "smollm2-135m-instruct", "ok"), ("vllm", "/no/such/folder", "missing"), ("openai", "any", "ok")],
)
def test_the_model_is_from_the_package_a_folder_or_an_address(settings, kind, model, state):
    chosen = replace(settings, engine=replace(settings.engine, kind=kind, model=model, base_url="http://llm"))
    assert states(model_findings(chosen))["model"] == state


def test_a_port_in_use_is_noted(settings):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        assert not is_free(port)
        assert states(port_findings(replace(settings, ray=replace(settings.ray, port=port))))["ray.port"] == "note"
    assert is_free(port)


def test_java_is_only_for_one_kind_of_test():
    assert java(lambda name: None).state == "note"
