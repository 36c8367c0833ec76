"""The contexts of a night by spark-submit on a standalone cluster and by a Connect server, against those of the embedded server."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from recgpt_ops.delta.certificates import certificates
from recgpt_ops.delta.generations import publish_arrow
from recgpt_ops.delta.warehouse import Warehouse, fix_identity, open_warehouse
from recgpt_ops.settings import Spark
from recgpt_ops.tables import ROOT
from tests.jvm_spark import environment, require_delta, standalone_cluster, submit_command
from tests.spark.frames import event_rows, item, profile, table_of
from tests.spark.words import write_word_tokenizer

pytestmark = [pytest.mark.jvm, pytest.mark.slow, pytest.mark.timeout(1200)]

DS = "2017-10-30"
SCRIPT = str(Path(__file__).parent / "build_contexts.py")


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Four users, three items, a few weeks of events."""
    require_delta()
    made = open_warehouse(str(tmp_path_factory.mktemp("build") / "warehouse"), create=True)
    fix_identity(made, zone="America/New_York", locale="en-US")
    bought = [(user, "purchase", f"i{number % 3}", 1, f"2017-{9 + number % 2:02d}-{10 + number}") for number in range(9) for user in "abcd"]
    rows = {
        "behavior_events": event_rows(*bought, ("a", "search", "pumpkin", None, DS), ("b", "return", "i1", 1, DS)),
        "items": [item(f"i{number}", f"Item {number}", item_type=f"Type {number}", text_hash="t") for number in range(3)],
        "user_profiles": [profile(user, text_hash="t") for user in "abcd"],
    }
    for table, told in rows.items():
        filled = table_of(table, [row | {"import_id": "i1", "source": "test"} for row in told])
        publish_arrow(made, table, filled, publish_id="i1", scopes=["i1"], fence=None, input_digest="i1")
    return made


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What every build is told: no model but a tokenizer that counts words."""
    tokenizer = write_word_tokenizer(tmp_path_factory.mktemp("words"))
    (tokenizer / "config.json").write_text("{}")
    (tokenizer / "none.safetensors").touch()  # a model's folder has weights; nothing here reads them
    return environment() | {"RECGPT_ENGINE__TOKENIZER": str(tokenizer), "RECGPT_SPARK__SHUFFLE_PARTITIONS": "2"}


def build(command: list[str], feeds: Warehouse, folder: Path, variables: dict[str, str]) -> Warehouse:
    """Runs all stages on a copy of the feeds."""
    built = Warehouse(str(shutil.copytree(feeds.root, folder)))
    done = subprocess.run([*command, built.root, DS, "p1"], cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return built


def contents(warehouse: Warehouse) -> dict[tuple[str, str], tuple[int, str, str]]:
    """What every table and bucket holds: the number of rows, the digest of the keys and that of the rows."""
    found = certificates(warehouse, publish_id="p1")
    return {(one.table_name, one.partition): (one.row_count, one.key_digest, one.row_digest) for one in found}


def writers(warehouse: Warehouse, table: str) -> list[str]:
    """Who made the commits of a table, the newest first; the first of all creates it."""
    return ["delta_rs" if commit.get("clientVersion", "").startswith("delta-rs") else "spark" for commit in warehouse.open(table).history()]


@pytest.fixture(scope="module")
def embedded(warehouse: Warehouse, variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """What the embedded server builds."""
    built = build([sys.executable, SCRIPT], warehouse, tmp_path_factory.mktemp("embedded") / "warehouse", variables)
    counts = {one.table_name: one.row_count for one in certificates(built, publish_id="p1") if one.partition == DS}
    assert (counts["night_users"], counts["user_contexts"]) == (4, 4)
    return built


def test_a_connect_server_builds_the_same_contexts(
    warehouse: Warehouse, embedded: Warehouse, variables: dict[str, str], spark_settings: Spark, tmp_path: Path
) -> None:
    told = {"RECGPT_SPARK__ENGINE": "connect", "RECGPT_SPARK__REMOTE": str(spark_settings.remote), "RECGPT_SPARK__WRITER": "spark"}
    built = build([sys.executable, SCRIPT], warehouse, tmp_path / "warehouse", variables | told)
    assert contents(built) == contents(embedded)
    assert writers(built, "user_contexts") == writers(built, "night_users") == ["spark", "delta_rs"]
    assert writers(built, "behavior_days") == ["delta_rs", "delta_rs"]


def test_spark_submit_on_a_standalone_cluster_builds_the_same_contexts(
    warehouse: Warehouse, embedded: Warehouse, variables: dict[str, str], tmp_path: Path
) -> None:
    told = {"RECGPT_SPARK__ENGINE": "classic", "RECGPT_SPARK__WRITER": "spark"}
    options = ("--executor-memory", "600m", "--conf", f"spark.sql.warehouse.dir={tmp_path / 'hive'}")
    with standalone_cluster(tmp_path / "cluster") as master:
        built = build(submit_command(master, *options, SCRIPT), warehouse, tmp_path / "warehouse", variables | told)
    assert contents(built) == contents(embedded)
    assert writers(built, "user_contexts") == ["spark", "delta_rs"]
