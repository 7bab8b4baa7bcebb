# `make tour` and `make test` need Python 3.11 or newer, pip and make; everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install -q -c constraints.txt

.PHONY: tour test test-all check clean

tour: $(VENV)/.base
	$(BIN)/qkv tour

# Two workers with one thread each: threads that fight for cores slow each other down.
TEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

test: $(VENV)/.dev
	$(TEST) -m "not slow"

test-all: $(VENV)/.dev
	$(TEST)

check: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -e .
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -e ".[dev]"
	touch $@ $(VENV)/.base

clean:
	rm -rf $(VENV) tour build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
