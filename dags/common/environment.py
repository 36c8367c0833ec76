"""What an Airflow on this machine must find in the environment before its first import. Standard library only, for that reason.

airflow_environment(Path("/data/shop/_airflow"))   ->  AIRFLOW_HOME, our DAGs alone, lineage to _airflow/lineage.jsonl
"""

from __future__ import annotations

import json
from pathlib import Path

from recgpt_ops.tables import ROOT

LINEAGE = "lineage.jsonl"


def airflow_environment(home: Path, *, lineage: Path) -> dict[str, str]:
    """Airflow's own files in `home`, our DAGs, and each OpenLineage event as one more line of a file in the folder `lineage`."""
    transport = {"type": "file", "log_file_path": str(lineage / LINEAGE), "append": True}
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
        "AIRFLOW__OPENLINEAGE__NAMESPACE": "recgpt-ops",
    }
