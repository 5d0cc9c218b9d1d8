# `make run` brings up everything on this machine; `make help` lists the rest. Needs Python 3.11 or newer and nothing else.

PORT ?= 8000
DEMO ?= 1
TEST_WORKERS ?= 2
export PORT DEMO

VENV := .venv
PY := $(VENV)/bin/python
PYTEST := $(PY) -m pytest

.DEFAULT_GOAL := help
.PHONY: help run test test-long check bench screenshots clean

help:
	@echo "make run          start everything (PORT=8000, DEMO=0 for an empty cluster); Ctrl-C stops it"
	@echo "make test         all tests but the long ones"
	@echo "make test-long    the long forms of the tests"
	@echo "make check        format, lint, types, imports, migrations"
	@echo "make bench        how fast the engine, the data path, the API and the pages are"
	@echo "make screenshots  pictures of the pages, for the documentation"
	@echo "make clean        remove what can be made again; var/ stays"

# exec: signals reach the supervisor itself, not a shell around it.
run: $(VENV)/run.stamp
	@exec $(PY) manage.py up

test: $(VENV)/dev.stamp
	$(PYTEST) -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder

test-long: $(VENV)/dev.stamp
	$(PYTEST) --long -m long

check: $(VENV)/dev.stamp
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	SECRET_KEY=check $(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	SECRET_KEY=check DATABASE_URL=sqlite://:memory: $(PY) manage.py makemigrations --check --dry-run

bench: $(VENV)/dev.stamp
	$(PY) -m tests.bench
	$(PYTEST) tests/bench -q -s

screenshots: $(VENV)/dev.stamp
	$(PY) -m tests.browser.screenshots

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache staticfiles test-results build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is newer than the requirements it stands for: nothing is installed twice.
$(VENV)/run.stamp: requirements.txt deploy/install
	@deploy/install $(VENV) requirements.txt
	@touch $@

$(VENV)/dev.stamp: requirements-dev.txt requirements.txt deploy/install
	@deploy/install $(VENV) requirements-dev.txt
	@touch $@ $(VENV)/run.stamp
