# `make run` starts everything on this machine, `make help` lists the rest.
# Needs Python 3.11 or newer. README.md has more for systems other than Linux on x86_64.

PORT ?= 8000
DEMO ?= 1
TEST_WORKERS ?= 2
export PORT DEMO

# make run CLUSTER=kubernetes KUBECONFIG=… shows a real cluster instead of a simulated one
ifeq ($(origin CLUSTER),command line)
export SCHEDULER_CLUSTER := $(CLUSTER)
endif

VENV := .venv
PY := $(VENV)/bin/python
PYTEST := $(PY) -m pytest

# Named after what is to be installed, so that nothing is installed twice, and a change is
# noticed whatever the dates of the files are.
sum_of = $(firstword $(shell cat $(1) requirements/redis-server.txt deploy/install | cksum))
RUN_STAMP := $(VENV)/run-$(call sum_of,requirements.txt).stamp
KUBERNETES_STAMP := $(VENV)/kubernetes-$(call sum_of,requirements-kubernetes.txt).stamp
DEV_STAMP := $(VENV)/dev-$(call sum_of,requirements-dev.txt).stamp
# Known vulnerabilities change by the day: the same requirements are looked up once a day.
AUDIT_STAMP := $(VENV)/audit-$(call sum_of,requirements.txt)-$(shell date +%F).stamp

.DEFAULT_GOAL := help
.PHONY: help run test test-long soak image-check control-plane check metrics bench bench-compare bench-document screenshots requirements clean

help:
	@echo "make run           start everything (PORT=8000, DEMO=0 for an empty cluster); Ctrl-C stops it"
	@echo "make run CLUSTER=kubernetes KUBECONFIG=FILE   the same for a real cluster, which it watches"
	@echo "make test          all tests but the long ones"
	@echo "make test-long     the long forms of the tests"
	@echo "make image-check   build deploy/Dockerfile with buildah, and run it (needs root and some minutes)"
	@echo "make soak          everything at once, everything failing (SECONDS=1800 SEED=1 KEEP=FOLDER)"
	@echo "make control-plane build a Kubernetes control plane for tests, once (needs Go);"
	@echo "                   SCHEDULERS=1 also kube-scheduler and Volcano's, to compare with; HELM=1 also helm, DEX=1 also Dex"
	@echo "make check         format, lint, types, imports, unsafe and dead code, vulnerabilities, migrations"
	@echo "make metrics       how hard the code is to read, in figures (COMPARE=REV to compare)"
	@echo "make bench         measure the engine, sessions, the API and the pages; keeps the run under var/bench/"
	@echo "make bench-compare A=FILE B=FILE   what moved between two runs"
	@echo "make bench-document   show the newest run in docs/performance.md, or RUN=FILE"
	@echo "make screenshots   pictures of the pages, for the documentation"
	@echo "make requirements  pin the packages of requirements/*.in by hash"
	@echo "make clean         remove what can be made again; var/ stays"

# With exec, signals reach the supervisor itself and not a shell around it.
run: $(if $(filter kubernetes,$(SCHEDULER_CLUSTER)),$(KUBERNETES_STAMP),$(RUN_STAMP))
	@exec $(PY) manage.py up

# Without make's own flags, which tests that run make would pass on.
test: $(DEV_STAMP)
	MAKEFLAGS= $(PYTEST) -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder $(TEST_OPTIONS)

test-long: $(DEV_STAMP)
	$(PYTEST) --long -m long

image-check: $(DEV_STAMP)
	$(PY) -m tests.deploy.image_check

soak: $(DEV_STAMP)
	$(PY) -m tests.processes.soak --seconds $(or $(SECONDS),1800) --seed $(or $(SEED),1) $(if $(KEEP),--keep $(KEEP))

control-plane:
	@python3 -m tests.control_plane.build control-plane $(if $(SCHEDULERS),schedulers) $(if $(HELM),helm) $(if $(DEX),dex)

check: $(DEV_STAMP) $(AUDIT_STAMP)
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/djlint --check --lint --rules tests/tools/djlint_rules.yaml templates
	SECRET_KEY=check $(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(VENV)/bin/bandit --quiet --configfile pyproject.toml --recursive scheduler dashboard manage.py
	$(PY) -m tests.tools.dead_code
	SECRET_KEY=check DATABASE_URL=sqlite://:memory: $(PY) manage.py makemigrations --check --dry-run

metrics:
	@python3 tests/tools/metrics.py $(if $(COMPARE),--compare $(COMPARE))

# Ten minutes. More time is needed to compare decisions, QUALITY=1 (half an hour), for very large clusters and 10,000 sockets, LARGE=1,
# and for every page with much to show, PAGES=1.
bench: $(DEV_STAMP)
	$(PY) -m tests.bench --save $(if $(QUALITY),--also quality) $(if $(LARGE),--also sockets --also large --also large-database)
	$(if $(PAGES),$(PYTEST) tests/bench -q -s)

# Shows a run in docs/performance.md: RUN=FILE, or the newest.
bench-document: $(DEV_STAMP)
	@$(PY) -m tests.bench.document $(RUN)

bench-compare: $(DEV_STAMP)
	@$(PY) -m tests.bench.runs "$(A)" "$(B)"

screenshots: $(DEV_STAMP)
	$(PY) -m tests.browser.screenshots

requirements: $(DEV_STAMP)
	requirements/compile

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache staticfiles test-results build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUN_STAMP):
	@deploy/install $(VENV) requirements.txt
	@rm -f $(VENV)/*.stamp && touch $@

# A kubeconfig may start a program for its credentials, which needs a package more.
$(KUBERNETES_STAMP):
	@deploy/install $(VENV) requirements-kubernetes.txt
	@rm -f $(VENV)/*.stamp && touch $@ $(RUN_STAMP)

$(DEV_STAMP):
	@deploy/install $(VENV) requirements-dev.txt
	@rm -f $(VENV)/*.stamp && touch $@ $(RUN_STAMP) $(KUBERNETES_STAMP)

$(AUDIT_STAMP): $(DEV_STAMP)
	$(PY) requirements/audit.py requirements.txt
	@rm -f $(VENV)/audit-*.stamp && touch $@
