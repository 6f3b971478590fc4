# make demo   from a fresh clone: set up, run the main job, show the result
# make test   the same set-up, then all tests
# make quick  what daily work needs: everything but experiments, pages, browsers and commands; three to four minutes
# make docs   the guides and the reference as pages, in out/site
# make lint   ruff, and mypy in strict mode
# make bench  the numbers in bench/RESULTS.md, measured anew

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
OUT    := out

.DEFAULT_GOAL := help
SLOW   := assets cli engine plots reproduce studio

.PHONY: help demo test quick docs lint bench clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "saywhere needs Python 3.11 or newer: make PYTHON=python3.12 …"; exit 1; }
	@test -x $(BIN)/python || { echo "Creating $(VENV) …"; $(PYTHON) -m venv $(VENV); }
	@echo "Installing pinned packages (a minute or two the first time) …"
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[language,java,models,probes,speech,studio,dev]'
	@touch $@

demo: $(READY)
	@$(BIN)/python examples/demo.py $(OUT)

test: $(READY)
	$(BIN)/python -m pytest -n 2

quick: $(READY)
	$(BIN)/python -m pytest -q -n 2 $(SLOW:%=--ignore=tests/%)

$(VENV)/.ready-docs: $(READY)
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@

docs: $(VENV)/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir $(OUT)/site
	@echo "written: $(OUT)/site/index.html"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) $(OUT)
