"""Whether a local Airflow is ready: its parts, its DAGs, its login; asked over its own REST interface."""

from __future__ import annotations

import json
import urllib.request
from functools import cached_property
from pathlib import Path
from typing import Any

from recgpt_ops.errors import NightError
from recgpt_ops.tables import ROOT

PARTS = ("metadatabase", "scheduler", "triggerer", "dag_processor")
SECONDS = 10.0
PASSWORDS = "simple_auth_manager_passwords.json.generated"  # Airflow's own file name, below its home


class AirflowApi:
    """One local Airflow, logged in as its one user."""

    user = "admin"

    def __init__(self, address: str, home: Path) -> None:
        """`address` such as http://127.0.0.1:8080; `home` where Airflow writes the password that it makes up at its first start."""
        self.address, self.home = address, home

    @property
    def password(self) -> str:
        """The password of `user`; Airflow keeps it from start to start."""
        return str(json.loads((self.home / PASSWORDS).read_text())[self.user])

    @cached_property
    def token(self) -> str:
        """What every request but the health check needs."""
        return str(self.ask("POST", "/auth/token", {"username": self.user, "password": self.password}, token=None)["access_token"])

    def waits_for(self) -> str:
        """What is still missing, in words; empty when every part is healthy and all our DAGs are there."""
        try:
            health = self.ask("GET", "/api/v2/monitor/health", token=None)
        except OSError:
            return "api server"
        ill = [part for part in PARTS if (health.get(part) or {}).get("status") != "healthy"]
        if ill:
            return ", ".join(ill).replace("_", " ")
        if errors := self.ask("GET", "/api/v2/importErrors", token=self.token)["import_errors"]:
            raise NightError(f"Airflow cannot load {errors[0]['filename']}: {errors[0]['stack_trace'].strip().splitlines()[-1]}")
        known = {dag["dag_id"] for dag in self.ask("GET", "/api/v2/dags?limit=100", token=self.token)["dags"]}
        return ", ".join(sorted(our_dags() - known))

    def unpause(self) -> None:
        """Lets our DAGs run. Only now, since a run that starts while parts are missing fails for nothing."""
        for dag_id in sorted(our_dags()):
            self.ask("PATCH", f"/api/v2/dags/{dag_id}?update_mask=is_paused", {"is_paused": False}, token=self.token)

    def ask(self, verb: str, path: str, body: dict[str, Any] | None = None, *, token: str | None) -> dict[str, Any]:
        """One request; OSError when nobody answers, or not with what was asked for."""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data=data, headers=headers, method=verb)
        with urllib.request.urlopen(request, timeout=SECONDS) as reply:
            answer: dict[str, Any] = json.load(reply)
        return answer


def our_dags() -> set[str]:
    """The ids of our DAGs: one file, one DAG of the same name."""
    return {path.stem for path in (ROOT / "dags").glob("*.py") if path.stem != "__init__"}
