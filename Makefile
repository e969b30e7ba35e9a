# Every command does its own set-up. They need Python 3.11 or newer and nothing else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One environment, installed in steps: what running needs, what testing needs, what the site needs.
RUN := $(VENV)/.installed-run
DEV := $(VENV)/.installed-dev
DOCS := $(VENV)/.installed-docs
# Python compiles what it imports; compiling everything at installation takes twice as long as installing.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

.DEFAULT_GOAL := help
.PHONY: help demo check test docs bench calibrate clean browser real-data lint

help: ## Say what each command does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(RUN) ## Compare eight policies on the paper's problem: a table here, a figure under results/demo
	@$(BIN)/duelist run --dim 10 --arms 32 --rounds 2500 --trials 20 --seed 0 --out results/demo

check: lint ## Check format, style, types and layers, then run the fast tests: the inner loop
	$(BIN)/python -m pytest --numprocesses auto -m "not slow" tests

test: lint browser real-data ## Check format, style, types and layers, then run every test; a skipped one fails
	@$(BIN)/duelist warm-up
	R_LIBS=$(abspath $(VENV))/r-library DUELIST_REQUIRE_ALL=1 $(BIN)/python -m pytest --numprocesses auto

lint: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(DOCS) ## Build the documentation site into site/: broken links and unlisted pages fail
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site is in site/index.html"

browser:
	@scripts/browser.sh

real-data: $(DEV)
	@scripts/real_data.sh $(VENV)

bench: $(DEV) ## Measure speed and memory against a plain NumPy loop: a table here, JSON under results/benchmarks
	@$(BIN)/python benchmarks/fgts_speed.py

calibrate: $(DEV) ## Measure every sampler against reference posteriors and simulated truths (half an hour)
	@$(BIN)/python benchmarks/calibrate.py

clean: ## Remove the environment, caches and results
	rm -rf $(VENV) results site build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Installed afresh whenever pyproject.toml changes. An environment left half made, as when Debian's python3-venv is
# missing, has no pip and is made again.
$(RUN): pyproject.toml
	@command -v $(PYTHON) >/dev/null || \
		{ echo "duelist needs Python 3.11 or newer, and there is no '$(PYTHON)' here. Name one: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "duelist needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "Installing duelist into $(VENV) (half a minute, the first time only)"
	@$(PIP) --editable '.[plot]'
	@touch $@

$(DEV): $(RUN)
	@echo "Installing the developers' tools into $(VENV) (two minutes, the first time only)"
	@$(PIP) --editable '.[dev]'
	@touch $@

$(DOCS): $(RUN)
	@echo "Installing what builds the site into $(VENV) (half a minute, the first time only)"
	@$(PIP) --editable '.[docs]'
	@touch $@
