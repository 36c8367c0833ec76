"""Airflow reads its home at the first import, so it is set before any test module is loaded."""

from __future__ import annotations

import os
import tempfile

os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="recgpt-airflow-")
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
