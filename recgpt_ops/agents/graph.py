"""The graph of one user, and a shard of users running side by side.

    context -> planner -> experts (at once) -> arbiter         V2
    context -> routes (at once) -> merged in turn              V1

Each user has a graph of its own: nobody waits until all users are planned, and the prefix that planner and arbiter share is still
in the engine's cache. A user whose row cannot be computed is a failure of that user only; a dead engine ends the shard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from recgpt_ops.agents.arbiter import arbitrate
from recgpt_ops.agents.crew import Crew
from recgpt_ops.agents.experts import propose
from recgpt_ops.agents.planner import plan
from recgpt_ops.agents.routes import follow, merge_routes, user_routes
from recgpt_ops.agents.rows import Context, UserIntents
from recgpt_ops.errors import NightError, RowError
from recgpt_ops.ledger.asking import all_of, side_by_side


@dataclass
class ShardIntents:
    """What a shard made: every user is in exactly one of the two lists."""

    done: list[UserIntents] = field(default_factory=list)
    failed: list[tuple[Context, RowError]] = field(default_factory=list)


async def compute_user(context: Context, crew: Crew) -> UserIntents:
    """Everything for one user; RowError when it cannot be made."""
    if crew.recipe.planner == "routes":
        return await compute_routes(context, crew)
    personas = await plan(context, crew)
    proposed = await all_of(
        propose(persona, crew, user_id=context.user_id, locale=context.locale, leave_out=context.recent_item_types) for persona in personas
    )
    proposals = tuple(proposal for tags in proposed for proposal in tags)
    return UserIntents(context, personas, proposals, await arbitrate(context, proposals, crew))


async def compute_routes(context: Context, crew: Crew) -> UserIntents:
    """The same by V1's design: routes that know nothing of each other, their picks merged in turn."""
    routes = user_routes(context, crew)
    picked = await all_of(follow(route, context, crew) for route in routes)
    proposals = tuple(proposal for picks in picked for proposal in picks)
    return UserIntents(context, routes, proposals, merge_routes(proposals, count=crew.recipe.final_tag_count))


async def compute_users(
    contexts: Iterable[Context], crew: Crew, *, users_in_flight: int, on_user: Callable[[int], None] = lambda done: None
) -> ShardIntents:
    """All users of a shard, at most `users_in_flight` at the same time; `contexts` is read no faster than that (020).

    `on_user` is told how many users are finished. EngineError of one user cancels the others and comes out.
    """
    result = ShardIntents()
    seen: list[str] = []

    async def work(context: Context) -> None:
        try:
            result.done.append(await compute_user(context, crew))
        except RowError as error:
            result.failed.append((context, error))
        on_user(len(result.done) + len(result.failed))

    await side_by_side(work, counted(contexts, seen), at_once=users_in_flight)
    check_every_user_once(seen, result)
    return result


def counted(contexts: Iterable[Context], seen: list[str]) -> Iterator[Context]:
    """The contexts as they are, their users noted."""
    for context in contexts:
        seen.append(context.user_id)
        yield context


def check_every_user_once(seen: Sequence[str], result: ShardIntents) -> None:
    """Users in = users out, each once (003); a mismatch is our own fault and ends the shard."""
    out = sorted([intents.context.user_id for intents in result.done] + [context.user_id for context, _ in result.failed])
    if out != sorted(seen) or len(set(out)) < len(out):
        raise NightError(f"intents: {len(seen)} users went in and {len(out)} came out, or not each once; nothing of the shard is kept")
