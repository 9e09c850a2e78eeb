# Every target sets up what it needs: a clean clone, python3, pip and make are enough.
#   make demo      a study that crashes, hangs and runs out of memory, and succeeds       make test   format, lint, types, fast tests
#   make test-all  the slow tests as well     make bench  speed against peers     make campaign  all tables, in hours

PYTHON ?= python3
BIN := .venv/bin
BENCH := .venv-bench/bin
PEER_PROBLEMS := keane-10 welded-beam ackley-5 pressure-vessel

# The engine keeps to one BLAS thread itself; this keeps the tests' own oracles and the peers to one as well.
export OMP_NUM_THREADS = 1
export OPENBLAS_NUM_THREADS = 1
export MKL_NUM_THREADS = 1

.PHONY: help setup demo test test-all lint bench bench-setup campaign report peers clean soak overhead test-ray

help:
	@sed -n '2,3s/^# *//p' Makefile

setup: .venv/.ready
bench-setup: .venv-bench/.ready

# The constraints hold for the build tools too: pip reads them from one variable or the other, by its version.
.venv/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(BIN)/python -m pip install -q -e '.[dev]'
	@touch $@

.venv-bench/.ready: pyproject.toml benchmarks/requirements.txt
	$(PYTHON) -m venv .venv-bench
	$(BENCH)/python -m pip install -q -r benchmarks/requirements.txt -e .
	@touch $@

# The demo needs a fraction of what the tests do, so that it does not wait for the rest.
.venv/.demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(BIN)/python -m pip install -q -e '.[plot,study]'
	@touch $@

demo: .venv/.demo
	$(BIN)/cbob demo

lint: setup
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -m "not slow"

test-all: lint
	$(BIN)/python -m pytest

bench: bench-setup
	$(BENCH)/python benchmarks/ask_speed.py

soak: setup
	$(BIN)/python benchmarks/study_soak.py

# Ours are those of the campaigns; the peers go on in files of their own.
peers: setup bench-setup
	$(BIN)/python -m cbob.bench run --problems $(PEER_PROBLEMS) --strategies auto cbob eic --seeds 0-9
	$(BENCH)/python benchmarks/optuna_samplers.py --problems $(PEER_PROBLEMS) --samplers tpe "tpe independent" gp "gp noiseless"
	$(BENCH)/python benchmarks/botorch_peers.py --problems $(PEER_PROBLEMS)
	$(BIN)/python -m cbob.bench report

overhead: setup
	$(BIN)/python benchmarks/study_overhead.py

# Ray is heavy, so that it has an environment of its own.
.venv-ray/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-ray
	PIP_CONSTRAINT=constraints.txt .venv-ray/bin/python -m pip install -q -e '.[dev,ray]'
	@touch $@

test-ray: .venv-ray/.ready
	.venv-ray/bin/python -m pytest tests-ray

campaign: setup
	$(BIN)/python -m cbob.bench run --campaign table1 table2 b3 auto
	$(BIN)/python -m cbob.bench run --campaign s3
	$(BIN)/python -m cbob.bench run --campaign tuning held-out --seeds 0-9
	$(BIN)/python -m cbob.bench report

report: setup
	$(BIN)/python -m cbob.bench report

clean:
	rm -rf .venv .venv-bench .venv-ray .mypy_cache .pytest_cache .ruff_cache build dist
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
