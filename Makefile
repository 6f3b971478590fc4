# make demo   from a fresh clone: set up, run the main job, show the result
# make test   the same set-up, then all tests
# make quick  what daily work needs: all tests but the slow files, which tests/conftest.py lists
# make thorough  all tests, and more examples of every property and request
# make fuzz   a hundred thousand spoilt files of every format and model folder (a night's work)
# make kills  five hundred writers killed while they write
# make audit  licences of the pinned packages, and their known vulnerabilities
# make docs   the guides and the reference as pages, in out/site
# make pictures  the README's and the Studio's pictures, by using them (needs Chromium)
# make lint   ruff, and mypy in strict mode
# make store  the object store that tests of libraries at a URL ask; make test has it
# make bench  the numbers in bench/RESULTS.md, measured anew

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
OUT    := out

.DEFAULT_GOAL := help
# Tests of one file share its fixtures, so they stay in one process; slow files come first (tests/conftest.py).
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: help demo test quick thorough store fuzz kills audit docs pictures lint bench clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "saywhere needs Python 3.11 or newer: make PYTHON=python3.12 …"; exit 1; }
	@test -x $(BIN)/python || { echo "Creating $(VENV) …"; $(PYTHON) -m venv $(VENV); }
	@echo "Installing pinned packages (a minute or two the first time) …"
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[language,java,models,vlm,search,scale,fast,probes,speech,transcribe,studio,postgresql,dev]'
	@touch $@

demo: $(READY)
	@$(BIN)/python examples/demo.py $(OUT)

test: $(READY) store
	$(PYTEST)

quick: $(READY)
	$(PYTEST) -q -m "not slow"

thorough: $(READY) store
	SAYWHERE_API_CASES=200 $(PYTEST) --hypothesis-profile=thorough

$(VENV)/store/.ready: tests/index/store_server.txt $(READY)
	@$(BIN)/python -m venv $(VENV)/store
	@$(VENV)/store/bin/pip install --quiet --disable-pip-version-check --requirement tests/index/store_server.txt
	@touch $@

store: $(VENV)/store/.ready

fuzz: $(READY)
	$(BIN)/python -m tests.fuzz --cases 100000 --out $(OUT)/fuzz

kills: $(READY)
	$(BIN)/python -m tests.fuzz.kills --kills 500

# --strict: a package whose advisories cannot be asked for is an error, not a silence.
audit: $(READY)
	$(BIN)/python -m tests.licences
	@$(BIN)/pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/pip-audit --strict --disable-pip --no-deps --requirement constraints.txt

$(VENV)/.ready-docs: $(READY)
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@

docs: $(VENV)/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir $(OUT)/site
	@echo "written: $(OUT)/site/index.html"

pictures: $(READY)
	$(BIN)/python docs/pictures.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) $(OUT)
