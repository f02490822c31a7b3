# Every target does all of its own set-up; a machine with python3, venv and pip is enough for demo and test.
.PHONY: demo test collected tests core unit e2e clients test-all lint release bench docs setup clean
.DEFAULT_GOAL := test
PY := .venv/bin/python
PARTS := $(patsubst src/resume_hooks/parts/%/__init__.py,%,$(wildcard src/resume_hooks/parts/*/__init__.py))
# A shell that forbids Python's bytecode would have every process of the tests compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

setup:
	@sh tools/setup

demo:
	@sh tools/setup runtime
	@$(PY) demo/run.py

test: clients
	@$(MAKE) --no-print-directory --jobs 2 lint collected
	@$(MAKE) --no-print-directory core
	@$(MAKE) --no-print-directory tests TESTS=--apart

# pytest rewrites every file's asserts: once here, beside lint, or once in each worker.
collected: clients
	@$(PY) -m pytest --collect-only -qq >/dev/null || true

tests: clients
	$(PY) -m pytest -n auto --durations 25 $(TESTS)

core: clients
	sh tools/without all -q

clients: setup
	@sh tools/clients

unit: clients
	$(PY) -m pytest -n auto -m "not e2e and not slow"

# Workers read only the files that have such tests.
e2e: clients
	$(PY) -m pytest -n auto -m "e2e or slow" --durations 25 \
		tests/e2e tests/parts/*/e2e $$(grep -rlE 'mark\.(e2e|slow)\b' tests --include 'test_*.py')

test-all: clients
	RUN_ALL=1 $(PY) -m pytest -n 2 --dist worksteal
	set -e; for part in $(PARTS); do sh tools/without $$part -q; done
	RUN_ALL=1 $(PY) -m pytest -n 2 tests/fuzz

lint: setup
	@.venv/bin/ruff format --check --quiet . || { echo "Run: .venv/bin/ruff format" >&2; exit 1; }
	@.venv/bin/ruff check --quiet .
	@.venv/bin/lint-imports --no-logo >/dev/null || .venv/bin/lint-imports --no-logo
	@.venv/bin/mypy

release: setup
	$(PY) -m tools.release

bench: setup
	$(PY) -m benchmarks

docs: setup
	$(PY) -m tools.make_docs

clean:
	rm -rf .venv .clients .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
