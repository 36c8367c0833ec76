from __future__ import annotations

import json

from recgpt_ops.commands.night_results import night_results, results_text
from recgpt_ops.commands.night_run import NightResult
from recgpt_ops.commands.night_summary import write_summary
from recgpt_ops.commands.status import visible_results
from recgpt_ops.delta.records import read_rows
from recgpt_ops.planning.budget import Planned
from recgpt_ops.runs import StageCounts, record_state
from tests.unit.cli.conftest import DS, night_run

PANEL = {"judged": 48, "failed": 1, "by_rule": 2, "excluded": 3, "S": 10, "A": 30, "B": 8}
DETAILS = {
    "explanations": {"texts": {"v2": {"written": 14, "shared": 2, "failed": 1}}},
    "tag_verdicts": {
        "verdicts": {"v2": {"panel": PANEL}},
        "levels": {"v2": {"relevance": {"negative": 1, "neutral": 1, "positive": 2, "failed": 4}, "novelty": {}}},
    },
}


def stages(details=DETAILS):
    return [{"stage": stage, "detail": json.dumps({"methods": ["v2"], **detail})} for stage, detail in details.items()]


def test_each_methods_users_tags_explanations_and_verdicts_are_told(done):
    results = night_results(done, "p1", stages())
    assert results["methods"] == [
        {
            "method": "v2",
            "users": 2,
            "failed_users": None,
            "carried_users": None,
            "tags": 2,
            "explanations": 14,
            "shared": 2,
            "failed_explanations": 1,
        }
    ]
    assert results["verdicts"] == [{"table": "tag_verdicts", "method": "v2", "judge": "panel", **PANEL}]


def test_levels_are_shares_of_those_that_were_given(done):
    [relevance, novelty] = night_results(done, "p1", stages())["levels"]
    assert (relevance["table"], relevance["method"], relevance["dimension"]) == ("tag_verdicts", "v2", "relevance")
    assert (relevance["negative"], relevance["neutral"], relevance["positive"], relevance["failed"]) == ("25%", "25%", "50%", 4)
    assert (novelty["positive"], novelty["failed"]) == (None, 0)  # no level was given at all


def test_what_is_not_known_is_left_out(done):
    text = results_text(night_results(done, "p1", stages({"intents": {}})))
    assert "explanations" not in text
    assert "judge" not in text
    assert text.splitlines()[0].split() == ["method", "users", "tags"]


def test_status_tells_what_readers_see_of_a_day(done, settings):
    record_state(
        night_run(done, settings, "p1", stage="tag_verdicts"), StageCounts(detail=DETAILS["tag_verdicts"]), state="done", seconds=1.0
    )
    records = read_rows(done, "nights")
    told = visible_results(done, records, DS)
    assert "Readers of default see generation p1" in told
    assert "tag_verdicts" in told
    assert visible_results(done, records, "2017-10-29") == ""


def test_the_summary_ends_with_what_was_spent_of_the_budget_and_where_to_look_next(done, settings, capsys):
    account = {"prompt_tokens": 900, "computed_tokens": 300, "completion_tokens": 20}
    counts = StageCounts(calls_made=40, calls_reused=2, detail={"account": account})
    record_state(night_run(done, settings, "p1", stage="intents"), counts, state="done", seconds=1.0)
    budget = {"intents": Planned(96, 100_000)}
    write_summary(done, NightResult("p1", {}), DS, budget=budget, form="table", option="")
    told = capsys.readouterr().out
    assert "Model calls: 40 made, 2 from the record, of at most 96 planned. Prompt tokens: 900 submitted, of at most 100,000." in told
    for command in ("recgpt report --ds 2017-10-30", "recgpt query", "recgpt status --ds 2017-10-30", "make airflow"):
        assert command in told
    write_summary(done, NightResult("p1", {}), DS, budget=budget, form="json", option="")
    summary = json.loads(capsys.readouterr().out)
    assert summary["planned"] == {"intents": {"calls": 96, "prompt_tokens": 100_000}}
    assert [row["method"] for row in summary["methods"]] == ["v2"]
    [intents] = [row for row in summary["stages"] if row["stage"] == "intents"]
    assert (intents["submitted_tokens"], intents["computed_tokens"], intents["written_tokens"]) == (900, 300, 20)
