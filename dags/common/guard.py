"""Runs a command that may not outlive its parent: when stdin closes, the command and all its children are ended.

    python -m dags.common.guard python -m jobs.spark.user_contexts ...

A task that is killed, even by SIGKILL, closes the pipe without doing anything; so no job stays behind and holds memory or locks.
Standard library only: this starts before every job.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

GRACE_SECONDS = 5.0  # from the request to end until the kill: time to stop a remote job and to write the failed row


def guard(command: list[str]) -> int:
    """Runs the command in a session of its own and returns its exit code, 128 + signal when it was killed."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    signal.signal(signal.SIGTERM, lambda *_: end(child))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C reaches us too; who started us decides, by closing the pipe
    threading.Thread(target=end_with_parent, args=(child,), daemon=True).start()
    code = child.wait()
    kill_group(child.pid, signal.SIGKILL)  # what it left behind in its group
    return code if code >= 0 else 128 - code


def end_with_parent(child: subprocess.Popen[bytes]) -> None:
    """Waits until every writer of our stdin is gone, then ends the child."""
    while os.read(0, 4096):
        continue
    end(child)


def end(child: subprocess.Popen[bytes]) -> None:
    """Asks the child's whole group to end, and kills it after the grace."""
    kill_group(child.pid, signal.SIGTERM)
    kill = threading.Timer(GRACE_SECONDS, kill_group, (child.pid, signal.SIGKILL))
    kill.daemon = True  # a child that ends in time is not waited for
    kill.start()


def kill_group(pid: int, sign: signal.Signals) -> None:
    """Signals a process group; one that is gone already is fine."""
    try:
        os.killpg(pid, sign)
    except (ProcessLookupError, PermissionError):  # macOS answers EPERM for a group of zombies
        return


if __name__ == "__main__":
    sys.exit(guard(sys.argv[1:]))
