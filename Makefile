# Every target does all of its own set-up; a machine with python3, venv and pip is enough for demo and test.
.PHONY: demo test test-all lint bench docs setup clean
.DEFAULT_GOAL := test
PY := .venv/bin/python

setup:
	@sh tools/setup

demo: setup
	@$(PY) demo/run.py

test: setup lint
	$(PY) -m pytest -n auto -m "not e2e and not slow"
	$(PY) -m pytest -n 2 -m "e2e or slow"

test-all: setup
	RUN_ALL=1 $(PY) -m pytest tests/e2e

lint: setup
	@.venv/bin/ruff format --check --quiet . || { echo "Run: .venv/bin/ruff format" >&2; exit 1; }
	@.venv/bin/ruff check --quiet .
	@.venv/bin/lint-imports --no-logo >/dev/null || .venv/bin/lint-imports --no-logo
	@.venv/bin/mypy

bench: setup
	$(PY) -m benchmarks

docs: setup
	$(PY) tools/make_docs.py

clean:
	rm -rf .venv .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
