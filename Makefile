# make demo: set up and run the main job on embedded data.   make test: set up and pass the tests.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lint site wheel clean

demo: $(VENV)/.ready
	$(BIN)/bcl demo

test: $(VENV)/.ready-for-tests lint
	$(BIN)/pytest -n 2 --dist worksteal --coverage

site: $(VENV)/.ready-for-site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "site/index.html is ready"

wheel:
	PYTHON=$(PYTHON) scripts/build_wheel.sh

lint: $(VENV)/.ready-for-tests
	$(BIN)/ruff check bcl bench examples scripts tests
	$(BIN)/ruff format --check bcl bench examples scripts tests
	$(BIN)/mypy

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bcl needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/.ready-for-tests: $(VENV)/.ready
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

$(VENV)/.ready-for-site: $(VENV)/.ready
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .coverage.txt build dist site *.egg-info
