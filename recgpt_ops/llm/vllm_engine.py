"""vLLM, loaded in this process and driven by `step_loop`. The only module that imports vllm (besides its logits processor).

What decides the answers is pinned here: xgrammar as the grammar's back end without white space, the prefix cache, raw
log-probabilities, no seeds per request, and no sampling setting but the request's own (031). Why `LLMEngine` in process and
not AsyncLLM: infra/docs/adr/0002-the-engine.md.
"""

from __future__ import annotations

import asyncio
import math
import time
from pathlib import Path
from typing import Any

from vllm.engine.arg_utils import EngineArgs
from vllm.exceptions import VLLMValidationError
from vllm.platforms import current_platform
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1.engine.llm_engine import LLMEngine

from recgpt_ops.errors import ConfigError, EngineError
from recgpt_ops.llm.forced_tokens import FORCED, ForcedTokens
from recgpt_ops.llm.identity import vllm_identity
from recgpt_ops.llm.requests import Answer, EngineIdentity, Request, Sampling, check_request
from recgpt_ops.llm.step_loop import StepLoop
from recgpt_ops.llm.tokenizer import load_tokenizer
from recgpt_ops.settings import Engine as EngineSettings

CANARY_TOKENS = 8


class VllmEngine:
    """A loaded engine. `canary` is what it wrote, right after loading, to a fixed prompt: the measure of its health."""

    def __init__(self, settings: EngineSettings, *, name: str, folder: Path) -> None:
        """Loads the model; ConfigError when the folder's own sampling defaults would be applied."""
        started = time.monotonic()
        engine = LLMEngine.from_engine_args(engine_arguments(settings, folder))
        self.tokenizer = load_tokenizer(folder)
        self.known = vllm_identity(settings, name=name, folder=folder)
        check_effective(engine, self.known)
        self.loop = StepLoop(engine, request_errors=(VLLMValidationError, ValueError))
        self.canary: tuple[int, ...] = ()
        self.load_seconds = time.monotonic() - started

    @property
    def identity(self) -> EngineIdentity:
        """Model, build and effective sampling settings."""
        return self.known

    async def answer(self, request: Request) -> Answer:
        """The answer; what may not reach the engine is refused before it."""
        check_request(request, self.known)
        started = time.monotonic()
        prompt: dict[str, Any] = {"prompt_token_ids": list(request.token_ids)}
        if request.cache_scope is not None:
            prompt["cache_salt"] = request.cache_scope
        output = await asyncio.wrap_future(self.loop.submit(prompt, sampling_params(request)))
        return read_output(output, request, seconds=time.monotonic() - started)

    async def check_health(self) -> None:
        """EngineError unless the canary prompt gives the tokens it gave after loading: a poisoned engine looks healthy otherwise."""
        ids = list(self.tokenizer.encode_data("The days of the week are Monday, Tuesday,"))
        params = SamplingParams(max_tokens=CANARY_TOKENS, temperature=0.0, logprobs=0, ignore_eos=True)
        completion = (await asyncio.wrap_future(self.loop.submit({"prompt_token_ids": ids}, params))).outputs[0]
        written = tuple(completion.token_ids)
        self.canary = self.canary or written
        if written != self.canary or not math.isfinite(sum(sampled_logprobs(completion))):
            raise EngineError(f"engine is poisoned: the canary prompt gave {written}, after loading it gave {self.canary}")

    def stop(self) -> None:
        """Ends the stepping thread."""
        self.loop.stop()


def engine_arguments(settings: EngineSettings, folder: Path) -> EngineArgs:
    """What the engine is loaded with. Everything that changes answers is said, nothing is left to a default."""
    return EngineArgs(
        model=str(folder),
        tokenizer=str(folder),
        trust_remote_code=False,
        load_format="safetensors",
        dtype=settings.dtype,  # type: ignore[arg-type]  # vLLM checks the word itself
        quantization=settings.quantization,
        kv_cache_dtype=settings.kv_cache_dtype,  # type: ignore[arg-type]  # the same
        tensor_parallel_size=settings.tensor_parallel_size,
        max_model_len=settings.max_model_len,
        max_num_seqs=settings.max_num_seqs,
        max_num_batched_tokens=settings.max_num_batched_tokens,
        enable_prefix_caching=True,
        # The cache shares whole blocks. Most of our calls add a few dozen tokens to a shared prefix, so with the CPU build's own 128
        # they would compute half a block again each time; 32 is the least its fast kernel takes.
        block_size=32 if current_platform.is_cpu() else None,
        enforce_eager=current_platform.is_cpu(),  # compile mode fails on CPU: "CPU Generator does not use offset"
        async_scheduling=False,  # a forced row must see the tokens of the step before
        generation_config="vllm",  # not the folder's own sampling defaults
        logprobs_mode="raw_logprobs",
        logits_processors=[ForcedTokens],
        structured_outputs_config={"backend": "xgrammar", "disable_any_whitespace": True},  # type: ignore[arg-type]  # a mapping is taken
        disable_log_stats=True,
        seed=0,
    )


def sampling_params(request: Request) -> SamplingParams:
    """A request in vLLM's words. No seed: a seeded request whose prompt is split over steps kills the engine on CPU."""
    sampling = request.sampling
    settings: dict[str, Any] = {
        "temperature": sampling.temperature,
        "repetition_penalty": sampling.repetition_penalty,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
    }
    if request.forced_ids is not None:
        forced = list(request.forced_ids)
        return SamplingParams(max_tokens=len(forced), logprobs=0, ignore_eos=True, extra_args={FORCED: forced}, **settings)
    if request.label_ids is not None:
        return SamplingParams(max_tokens=1, logprob_token_ids=list(request.label_ids), ignore_eos=True, **settings)
    structured = None
    if request.choice is not None:
        structured = StructuredOutputsParams(choice=list(request.choice))
    elif request.json_schema is not None:
        structured = StructuredOutputsParams(json=request.json_schema)
    return SamplingParams(max_tokens=sampling.max_tokens, structured_outputs=structured, **settings)


def check_effective(engine: LLMEngine, identity: EngineIdentity) -> None:
    """ConfigError when the loaded engine is not what its identity says: vocabulary, length, and the sampling of a plain request (031)."""
    plain = sampling_params(Request("probe", "", (), (1,), Sampling(max_tokens=1)))
    taken = engine.input_processor.process_inputs(
        "probe", {"prompt_token_ids": [1]}, plain, supported_tasks=engine.get_supported_tasks()
    ).params
    loaded = {"vocabulary_size": engine.model_config.get_vocab_size(), "max_model_len": engine.model_config.max_model_len}
    faults = [
        f"{what} is {got} in the engine, {getattr(identity, what)} by folder and settings"
        for what, got in loaded.items()
        if got != getattr(identity, what)
    ]
    faults += [
        f"{name} is {getattr(taken, name)!r} in the engine, {asked!r} was asked"
        for name, asked in identity.sampling_defaults.items()
        if getattr(taken, name) != asked
    ]
    own = engine.model_config.get_diff_sampling_param()
    faults += [
        f"the model folder's own {name} = {value!r} is applied; remove it from generation_config.json" for name, value in own.items()
    ]
    if faults:
        raise ConfigError(f"engine of {identity.model}", faults)


def read_output(output: Any, request: Request, *, seconds: float) -> Answer:
    """The engine's output as our own; EngineError when forced ids were not written as they were forced."""
    completion = output.outputs[0]
    logprobs = None
    if request.forced_ids is not None:
        if tuple(completion.token_ids) != request.forced_ids:
            raise EngineError(
                f"forced ids {request.forced_ids} were written as {tuple(completion.token_ids)}; the logits processor is not in use"
            )
        logprobs = sampled_logprobs(completion)
    if request.label_ids is not None:
        logprobs = tuple(completion.logprobs[0][id_].logprob for id_ in request.label_ids)
    return Answer(
        text=completion.text,
        finish_reason=completion.finish_reason or "unknown",
        prompt_tokens=len(output.prompt_token_ids),
        cached_tokens=output.num_cached_tokens,
        completion_tokens=len(completion.token_ids),
        seconds=seconds,
        logprobs=logprobs,
    )


def sampled_logprobs(completion: Any) -> tuple[float, ...]:
    """The raw log-probability of each written token."""
    return tuple(step[id_].logprob for step, id_ in zip(completion.logprobs, completion.token_ids, strict=True))
