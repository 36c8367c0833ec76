"""The real small model in its Ray actor: one load for all of these tests, on a head of their own."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from recgpt_ops.errors import RowError
from recgpt_ops.llm.cluster import LOCAL_ENVIRONMENT, free_ports, head_status, local_head, start_head
from recgpt_ops.llm.engine import connect_engine
from recgpt_ops.llm.models import model_directory, models_root
from recgpt_ops.llm.requests import Answer, Request, Sampling
from recgpt_ops.llm.tokenizer import PromptTokenizer, load_tokenizer
from recgpt_ops.prompts import Message, Segment
from recgpt_ops.settings import Settings, load_settings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

HISTORY = "\n".join(f"{n}. bought item {n * 37 % 101} and a yoga mat" for n in range(60))
# What a model's release may bring along; applied unasked, each of these changes answers.
OWN_DEFAULTS = {"do_sample": True, "top_k": 20, "top_p": 0.8, "temperature": 0.7, "repetition_penalty": 1.3, "eos_token_id": 2}


class Running(NamedTuple):
    """A loaded engine and what belongs to it."""

    engine: Any
    tokenizer: PromptTokenizer
    settings: Settings
    folder: Path
    warehouse: str


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A copy of the model with sampling defaults of its own, in an actor on a fresh head."""
    import ray

    known = load_settings()
    original = model_directory(known.engine.model, models_root=models_root(known.warehouse))
    folder = tmp_path_factory.mktemp("model") / "smollm2"
    shutil.copytree(original, folder, copy_function=lambda source, target: Path(target).symlink_to(Path(source).resolve()))
    (folder / "generation_config.json").unlink()
    (folder / "generation_config.json").write_text(json.dumps(OWN_DEFAULTS))
    port, dashboard_port = free_ports(2)
    settings = replace(
        known,
        ray=replace(known.ray, port=port, dashboard_port=dashboard_port),
        engine=replace(known.engine, model=str(folder), kv_cache_gb=1),
    )
    warehouse = str(tmp_path_factory.mktemp("warehouse"))
    with local_head(settings), pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setattr("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False)  # as LOCAL_ENVIRONMENT says; Ray is loaded already
        ray.init(address=f"127.0.0.1:{port}", log_to_driver=False)
        try:
            engine: Any = connect_engine(settings, warehouse, run="p1")
            assert engine.loads == 0  # nothing is loaded before it is needed
            engine.start()
            yield Running(engine, load_tokenizer(folder), settings, folder, warehouse)
        finally:
            ray.shutdown()


def request(running: Running, question: str, *, max_tokens: int = 12, history: str = HISTORY, **constraint: Any) -> Request:
    messages = (
        Message("system", (Segment("You read a shopper's history.", False),)),
        Message("user", (Segment(history, True), Segment(question, False))),
    )
    return Request("test", "prompt", messages, running.tokenizer.encode(messages), Sampling(max_tokens), **constraint)


def ask(running: Running, *requests: Request) -> list[Any]:
    async def run() -> list[Any]:
        return await asyncio.gather(*map(running.engine.answer, requests), return_exceptions=True)

    return asyncio.run(run())


def test_case_031_the_folder_s_own_sampling_defaults_do_not_slip_in(running: Running) -> None:
    assert running.engine.identity.sampling_defaults == {
        "temperature": 0.0,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    }
    assert len({answer.text for answer in ask(running, *[request(running, "\nTell a story.")] * 3)}) == 1


def test_a_second_job_of_the_night_finds_the_loaded_engine(running: Running) -> None:
    started = time.monotonic()
    again: Any = connect_engine(running.settings, running.warehouse, run="p1")
    asyncio.run(again.answer(request(running, "\nIs it?", choice=("yes", "no"))))
    assert (running.engine.loads, again.loads) == (1, 0)
    assert again.identity == running.engine.identity
    assert time.monotonic() - started < 30
    assert start_head(running.settings).started_here is False
    assert head_status(running.settings).is_up


def test_choices_and_schemas_hold_and_json_is_compact(running: Running) -> None:
    schema = '{"type":"array","items":{"type":"string","enum":["milk","eggs","candy"]},"minItems":2,"maxItems":2}'
    choice, listed = ask(
        running,
        request(running, "\nWhich fits?", choice=("yoga mat", 'a "quoted" one', "日本")),
        request(running, "\nName two.", json_schema=schema, max_tokens=40),
    )
    assert choice.text in ("yoga mat", 'a "quoted" one', "日本")
    assert len(json.loads(listed.text)) == 2
    assert " " not in listed.text
    assert listed.finish_reason == "stop"


def test_forced_ids_are_scored_as_the_model_itself_scores_them_and_read_the_prefix_cache(running: Running) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    tags = ["yoga mat", "fishing line", "Halloween costume"]
    requests = [request(running, "\nNext buy:", forced_ids=running.tokenizer.encode_data(f" {tag}")) for tag in tags]
    answers: list[Answer] = [*ask(running, requests[0]), *ask(running, *requests[1:])]
    model = AutoModelForCausalLM.from_pretrained(running.folder, dtype=torch.float32)
    for asked, answer in zip(requests, answers, strict=True):
        assert asked.forced_ids is not None
        prompt = len(asked.token_ids)
        with torch.no_grad():
            logprobs = model(torch.tensor([[*asked.token_ids, *asked.forced_ids]])).logits[0].log_softmax(-1)
        expected = [float(logprobs[prompt - 1 + n, id_]) for n, id_ in enumerate(asked.forced_ids)]
        assert answer.logprobs == pytest.approx(expected, abs=1e-3)
        assert answer.prompt_tokens == prompt
    whole_blocks = (len(requests[0].token_ids) - 1) // 32 * 32
    assert [answer.cached_tokens for answer in answers[1:]] == [whole_blocks, whole_blocks]
    assert whole_blocks > 0


def test_a_prompt_reads_the_prefix_cache_of_its_own_scope_only_and_answers_the_same(running: Running) -> None:
    asked = request(running, "\nIs it milk?", choice=("yes", "no"))
    answers: list[Answer] = [answer for scope in ("a", "a", "b", None) for answer in ask(running, replace(asked, cache_scope=scope))]
    whole_blocks = (len(asked.token_ids) - 1) // 32 * 32
    assert [answer.cached_tokens for answer in answers[:3]] == [0, whole_blocks, 0]
    assert len({answer.text for answer in answers}) == 1


@pytest.mark.parametrize("place", [0, 4, 8])
def test_case_001_002_bad_requests_cost_themselves(running: Running, place: int) -> None:
    good = [request(running, f"\nIs it {n}?", choice=("yes", "no")) for n in range(8)]
    bad = [
        request(running, "\nGo on.", max_tokens=5000),
        replace(good[0], token_ids=()),
        replace(good[0], token_ids=(1, 99_999)),
        request(running, "\nGo on.", json_schema='{"type":"string","pattern":"[("}'),
        request(running, "\nGo on.", json_schema='{"type":"array","uniqueItems":true}'),
    ]
    outcome = ask(running, *good[:place], *bad, *good[place:])
    refused = outcome[place : place + len(bad)]
    assert [each.reason for each in refused] == ["prompt_too_long", "prompt_empty", "bad_token_id", "engine_refused", "engine_refused"]
    assert f"{len(bad[0].token_ids)} prompt tokens + 5000 new tokens are more than the model's 4096" in refused[0].detail
    assert [each.text for each in outcome[:place] + outcome[place + len(bad) :]] == [each.text for each in ask(running, *good)]


def test_case_041_greedy_answers_do_not_depend_on_the_batch_on_this_build(running: Running) -> None:
    requests = [request(running, f"\nTell of item {n}.", history="") for n in range(8)]
    alone = [answer for each in requests for answer in ask(running, each)]
    assert [answer.text for answer in ask(running, *requests)] == [answer.text for answer in alone]


def test_case_004_an_engine_that_is_killed_under_way_is_replaced_and_every_request_answered(running: Running) -> None:
    import ray

    requests = [request(running, f"\nTell of item {n}.", history="") for n in range(4)]
    before = ask(running, *requests)

    async def run() -> list[Any]:
        async def kill() -> None:
            await asyncio.sleep(0.2)
            ray.kill(running.engine.actor)

        longer = [replace(each, sampling=Sampling(60)) for each in requests]
        return await asyncio.gather(kill(), *map(running.engine.answer, longer), return_exceptions=True)

    after = asyncio.run(run())[1:]
    assert not [each for each in after if isinstance(each, RowError | Exception)]
    assert [each.text.startswith(first.text) for first, each in zip(before, after, strict=True)] == [True] * 4
    assert running.engine.loads == 2


def test_nothing_of_the_head_listens_beyond_this_machine(running: Running) -> None:
    head = psutil.Process(head_status(running.settings).pid)
    listening = [
        connection
        for process in [head, *head.children(recursive=True)]
        for connection in process.net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert running.settings.ray.port in {connection.laddr.port for connection in listening}
    beyond = [connection.laddr for connection in listening if not connection.laddr.ip.removeprefix("::ffff:").startswith("127.")]
    assert beyond == []


def test_a_run_s_engines_are_ended_by_its_namespace_and_no_other(running: Running) -> None:
    script = (
        "import sys; from recgpt_ops.settings import load_settings; from recgpt_ops.llm.ray_engine import release_engines;"
        "[print(release_engines(load_settings().ray, warehouse_root=sys.argv[1], run=run)) for run in sys.argv[2:]]"
    )
    environment = {**os.environ, **LOCAL_ENVIRONMENT, "RECGPT_RAY__PORT": str(running.settings.ray.port)}
    done = subprocess.run(
        [sys.executable, "-c", script, running.warehouse, "p2", "p1"], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["0", "1"]
