# Two commands do all their own set-up: `make demo` and `make test`. They need Python 3.11 or newer and nothing else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test test-jax bench calibrate clean browser

help: ## Say what each command does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(INSTALLED) ## Compare the policies on the paper's problem: a table here, a figure under results/demo
	@$(BIN)/duelist run --dim 10 --arms 32 --rounds 2500 --trials 20 --seed 0 --out results/demo

test: $(INSTALLED) browser ## Check format, style, types and layers, then run every test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest --numprocesses auto

test-jax: $(INSTALLED) ## Install JAX (some 400 MB) and run the tests of nonlinear rewards
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,jax]'
	$(BIN)/python -m pytest tests/rewards tests/policies/test_nonlinear_fgts.py tests/docs

browser:
	@scripts/browser.sh

bench: $(INSTALLED) ## Measure speed and memory against a plain NumPy loop: a table here, JSON under results/benchmarks
	@$(BIN)/python benchmarks/fgts_speed.py

calibrate: $(INSTALLED) ## Measure every sampler against reference posteriors and simulated truths (half an hour)
	@$(BIN)/python benchmarks/calibrate.py

clean: ## Remove the environment, caches and results
	rm -rf $(VENV) results build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Installed afresh whenever pyproject.toml changes. An environment left half made, as when Debian's python3-venv is
# missing, has no pip and is made again.
$(INSTALLED): pyproject.toml
	@command -v $(PYTHON) >/dev/null || \
		{ echo "duelist needs Python 3.11 or newer, and there is no '$(PYTHON)' here. Name one: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "duelist needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "Installing duelist and its tools into $(VENV) (a minute, the first time only)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@
