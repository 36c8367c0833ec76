from __future__ import annotations

import io
import json

from recgpt_ops.progress import DEFAULT_SECONDS, STAGES, NightProgress, ProgressLine, Step, read_steps

# 100 s for each stage, so that what is left is easy to count
EVEN = dict.fromkeys(STAGES, 100.0)


def steps(*told: tuple[float, str, str, int, int | None]) -> list[Step]:
    return [Step(*step) for step in told]


def test_before_any_stage_the_whole_night_is_left():
    progress = NightProgress(started=1000.0, seconds=EVEN)
    assert progress.line(1005.0, before="starting Airflow") == "[0/12] starting Airflow · 0:05 gone · about 20:00 left"


def test_a_stage_that_counts_is_told_with_its_rate():
    """10 of 40 users in 20 s, so 60 s for the other 30; five stages of 100 s come after it."""
    progress = NightProgress(started=1000.0, seconds=EVEN)
    progress.add(steps(*((1000.0, name, name, 1, 1) for name in STAGES[:6])))
    progress.add(steps((1100.0, "intents", "intents", 0, None), (1100.0, "intents", "users", 0, 40), (1120.0, "intents", "users", 10, 40)))
    assert progress.line(1120.0, before="") == "[7/12] intents: users 10 of 40 · 2:00 gone · about 9:20 left"


def test_a_stage_that_counts_nothing_is_expected_to_take_as_long_as_last_time():
    progress = NightProgress(started=1000.0, seconds=EVEN)
    progress.add(steps((1000.0, "night_users", "night_users", 0, None)))
    assert progress.seconds_left(1030.0) == 70.0 + 11 * 100.0
    assert progress.seconds_left(1200.0) == 11 * 100.0  # late; never less than nothing


def test_the_night_is_over_when_its_last_stage_is():
    progress = NightProgress(started=0.0, seconds=EVEN)
    progress.add(steps(*((1.0, name, name, 1, 1) for name in STAGES)))
    assert progress.line(61.0, before="") == "[12/12] publish_night · 1:01 gone · about 0:00 left"


def test_every_stage_has_an_expected_time():
    assert set(DEFAULT_SECONDS) == set(STAGES)


def test_reports_are_read_once_and_half_a_line_waits(tmp_path):
    path = tmp_path / "p1.jsonl"
    assert read_steps(path, 0) == ([], 0)
    line = json.dumps({"at": 1.0, "stage": "intents", "what": "users", "done": 1, "total": 8}) + "\n"
    path.write_text(line + line[:10])
    found, offset = read_steps(path, 0)
    assert (found, offset) == ([Step(1.0, "intents", "users", 1, 8)], len(line))
    with path.open("a") as file:
        file.write(line[10:])
    assert read_steps(path, offset) == ([Step(1.0, "intents", "users", 1, 8)], 2 * len(line))


def test_without_a_terminal_a_line_is_written_at_each_stage_and_not_more_often():
    stream = io.StringIO()
    line = ProgressLine(stream)
    for text, stage in (("one", "a"), ("two", "a"), ("three", "b"), ("four", "b")):
        line.show(text, stage=stage)
    line.close()
    assert stream.getvalue() == "one\nthree\n"


def test_on_a_terminal_the_line_changes_in_place():
    stream = io.StringIO()
    stream.isatty = lambda: True
    line = ProgressLine(stream)
    line.show("a long line", stage="a")
    line.show("short", stage="a")
    line.close()
    assert stream.getvalue() == "\ra long line\rshort      \n"
