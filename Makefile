# `make` lists what there is. Everything runs in .venv, which the first target that needs it makes.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON := $(or $(shell command -v python3.11),$(shell command -v python3))
TORCH := torch==2.13.0
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.complete
DEMO_DS := 2017-10-30
# These run on any Spark; a few need Delta's jars on the JVM, see tests/jvm_spark.py
TRANSFORMS := tests/spark/test_audience.py tests/spark/test_behaviors.py tests/spark/test_contexts.py tests/spark/test_histories.py \
  tests/spark/test_trends.py tests/spark/test_night_audience.py tests/spark/test_state_tables.py tests/spark/imports/test_frames.py \
  tests/sql/test_views_on_spark.py

# Modules are compiled once and kept: Airflow alone starts in one second rather than eight.
export PYTHONPYCACHEPREFIX := $(CURDIR)/.cache/pyc
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help venv demo airflow test test-light test-jvm lint typecheck docs lock bench-contexts bench-publish bench-resume crash-matrix clean

help: ## What there is to make
	@echo "recgpt-ops: nightly recommendations made by language models, as a batch pipeline"
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1|\2/' | awk -F'|' '{printf "  make %-15s %s\n", $$1, $$2}'

venv: $(STAMP) ## Install everything into .venv (once: 2 to 5 minutes, 4 to 7 GB)

$(STAMP): requirements.txt
	@test -n "$(PYTHON)" || { echo "No python3 found. Install Python 3.11, such as by: apt install python3.11 python3.11-venv"; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { \
	  echo "Python 3.11 is needed, but $(PYTHON) is $$($(PYTHON) -V 2>&1). Install it beside, or name it: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 2; }
	@echo "[1/4] Making $(VENV) with $$($(PYTHON) -V 2>&1)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "No venv module. Install it, such as by: apt install python3.11-venv"; exit 2; }
	@echo "[2/4] Installing $(TORCH): one large download, 1 to 3 minutes"
	@$(BIN)/python -m pip install -q --disable-pip-version-check $(TORCH)
	@echo "[3/4] Installing $$(grep -c == requirements.txt) pinned packages: 1 to 3 minutes"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -r requirements.txt
	@echo "[4/4] Installing recgpt-ops itself"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(STAMP) ## Import The Complete Journey, run one night for 8 households by V1 and V2, show it as a page (14 minutes on 2 cores)
	@echo "== 1/3 import: real purchases of 2,469 households in 2017"
	@$(BIN)/recgpt import complete-journey
	@echo "== 2/3 night of $(DEMO_DS) for 8 households by both methods: tags, candidates, explanations, verdicts"
	@$(BIN)/recgpt night --ds $(DEMO_DS) --users 8
	@echo "== 3/3 report: the night as a page"
	@$(BIN)/recgpt report --ds $(DEMO_DS)

airflow: $(STAMP) ## The same DAGs in Airflow's pages, with a Ray head beside it, until Ctrl-C; PORT=8080
	@exec $(BIN)/recgpt airflow $(if $(PORT),--port $(PORT))

test: $(STAMP) ## All tests, those with the real engines too (under 20 minutes on 2 cores)
	@if command -v java >/dev/null; then \
	  echo "== transforms on JVM Spark"; RECGPT_SPARK=jvm $(BIN)/python -m pytest -q $(TRANSFORMS) -m "not slow"; \
	else echo "== no Java here: the transforms' tests run on Sail alone"; fi
	@echo "== nights that are killed, in a process of their own"
	@$(BIN)/python -m pytest -q --durations=5 tests/crash
	@echo "== all other tests, the transforms on Sail"
	@$(BIN)/python -m pytest -q --durations=15 -m "not jvm" --ignore=tests/crash

test-light: $(STAMP) ## The tests without the real engine (under 3 minutes)
	@$(BIN)/python -m pytest -q --durations=5 -m "not slow and not jvm"

test-jvm: $(STAMP) ## Transforms, both writers, spark-submit and Connect on JVM Spark: Java 17, and Delta's jars in RECGPT_SPARK_JARS=DIR
	@RECGPT_SPARK=jvm $(BIN)/python -m pytest -q --durations=10 $(TRANSFORMS) tests/jvm

crash-matrix: $(STAMP) ## Kill a small night at every durable step, run it again, compare; goes on where it stopped; SAMPLE=N for a part
	@$(BIN)/python -m tests.crash.matrix $(if $(SAMPLE),--sample $(SAMPLE))

lint: $(STAMP) ## Style, layers and YAML
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports
	@$(BIN)/yamllint --strict .
	@if [ -n "$$(find sql -name '*.sql' 2>/dev/null)" ]; then $(BIN)/sqlfluff lint sql; fi

typecheck: $(STAMP) ## mypy --strict
	@$(BIN)/mypy

docs: $(STAMP) ## Write the generated pages again: schemas/README.md
	@$(BIN)/python -m recgpt_ops.data_dictionary

lock: $(STAMP) ## Resolve requirements.in into requirements.txt, every version pinned
	@$(BIN)/python -m pip install -q --disable-pip-version-check uv
	@$(BIN)/uv pip compile requirements.in --output-file requirements.txt --python-version 3.11 --no-header --no-annotate --no-emit-index-url

bench-contexts: $(STAMP) ## Time contexts against a DuckDB twin that does the same work; DATA=DIR with online_retail/ and open_ecommerce/
	@$(BIN)/python -m tests.bench.contexts $(if $(DATA),--data $(DATA))

bench-publish: $(STAMP) ## Time the publishing of a million rows against a bare write with the same rules in SQL
	@$(BIN)/python -m tests.bench.publish

bench-resume: $(STAMP) ## Time the resume of a shard with five million recorded answers (7 GB of disk) and tell its memory
	@$(BIN)/python -m tests.bench.resume

clean: ## Remove what runs and tools made, but not .venv and not the warehouse
	@rm -rf .cache .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis reports *.egg-info
