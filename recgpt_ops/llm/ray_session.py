"""A job's time on Ray: connected to the cluster it was submitted to, and errors told as ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import ray
from ray.exceptions import RayError, RayTaskError

from recgpt_ops.errors import NightError, RecgptError, UsageError


@contextmanager
def ray_session(where: str) -> Iterator[None]:
    """Connects, and disconnects at the end, which ends the tasks that still run; `where` names stage and ds for messages.

    What a task raised on purpose comes out as it was raised; the loss of a head, a node or a process is a NightError.
    """
    try:
        ray.init(address="auto", log_to_driver=False)
    except (ConnectionError, RuntimeError) as error:  # nobody listens, or nobody answers
        raise UsageError(f"{where}: no Ray head answers ({str(error).splitlines()[0]}); start one: recgpt engine up") from error
    try:
        yield
    except RayTaskError as error:
        if isinstance(error.cause, RecgptError):
            raise error.cause from None
        raise
    except RayError as error:
        raise NightError(
            f"{where}: Ray lost a part of itself ({type(error).__name__}); what was answered is in the ledger, run the stage again"
        ) from error
    finally:
        ray.shutdown()
