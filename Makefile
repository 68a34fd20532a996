# PYTHON chooses the interpreter (another one makes .venv anew); ARGS is handed to the command of demo, test,
# mutants, bench and lock.

UV ?= uv
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
AUDIT_VENV := $(VENV)/audit
PIP_INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check

# One empty file for each finished step of the set-up: what is done is not done again.
DONE := $(VENV)/.done
RUN_DONE := $(DONE)/project $(DONE)/java
DEV_DONE := $(RUN_DONE) $(DONE)/dev
BENCH_DONE := $(DEV_DONE) $(DONE)/bench

# Without PYTHON, a .venv that is there serves, whichever interpreter made it.
VENV_DONE := $(if $(PYTHON),$(DONE)/venv-$(subst /,-,$(PYTHON)),$(firstword $(wildcard $(DONE)/venv-*) $(DONE)/venv-python3))
PYTHON ?= python3

MAKEFLAGS += --no-builtin-rules
.NOTPARALLEL: # two pips at once would spoil the environment
.DEFAULT_GOAL := help

# $(call packages,FILE): how many packages a lock file installs here
packages = $$(grep '^[a-z].*==' $(1) | grep -vc win32)

.PHONY: help
help: # only the lines with two number signs are shown
	@awk 'BEGIN { FS = ":.*## "; print "make TARGET [PYTHON=python3.12] [ARGS=\"...\"]" } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Try it

.PHONY: demo
demo: $(RUN_DONE) ## Tour a lake in a scratch folder; installs only what running needs.
	@$(BIN)/eventlake demo $(ARGS)

##@ Work on it

.PHONY: setup
setup: $(DEV_DONE) ## Install everything for development into .venv.
	@echo "ready: $(BIN)/eventlake"

# Property tests try other examples each time: make test SEED=… tries those of another run again.
SEED := $(shell date +%s)

# Three files of tests at a time on two cores, each with servers of its own: a third of the time tests wait for something.
# tests/conftest.py says which come first.
PYTEST := $(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder --hypothesis-seed=$(SEED)

.PHONY: test
test: $(DEV_DONE) ## Run the tests, but for the long ones; ARGS="-k java" runs some of them.
	$(PYTEST) -m "not long" $(ARGS)

.PHONY: test-long
test-long: $(DEV_DONE) ## Run the long tests: every point at which a run can be killed, large loads, foreign SDKs.
	$(PYTEST) -m long $(ARGS)

# What tests say of runs, once more with every lake in a bucket of a real S3 server.
ON_S3 := $(patsubst %,tests/test_%.py,books crash index replay rudderstack verify)

.PHONY: test-s3
test-s3: $(DEV_DONE) ## Run the tests of syncs, crashes and verify with lakes in buckets.
	EVENTLAKE_TEST_LAKE=s3 $(PYTEST) -m "not long" $(ON_S3) $(ARGS)

# And some of them in containers of Azure's emulator: what differs from S3 is little.
ON_AZURE := $(patsubst %,tests/test_%.py,books crash index replay rudderstack verify)

.PHONY: test-azure
test-azure: $(DEV_DONE) ## Run the tests of syncs, crashes and verify with lakes on Azure's emulator.
	EVENTLAKE_TEST_LAKE=azure $(PYTEST) -m "not long" $(ON_AZURE) $(ARGS)

# And with every workspace database on a real PostgreSQL server. Spark has no part in it.
ON_POSTGRES := $(patsubst %,tests/test_%.py,admission alerts api beside books catalog console crash lakes leases \
  ledger migrations plan_api plans replay restore schedule settings suppression)

.PHONY: test-postgres
test-postgres: $(DEV_DONE) ## Run the tests of databases, syncs and crashes with databases on PostgreSQL.
	EVENTLAKE_TEST_DATABASE=postgres EVENTLAKE_TEST_RUNNER=process $(PYTEST) -m "not long" $(ON_POSTGRES) $(ARGS)

.PHONY: screens
screens: $(DEV_DONE) ## Write the screens of README and tutorial anew from what the program prints.
	EVENTLAKE_UPDATE_SCREENS=1 $(BIN)/python -m pytest -q tests/test_screens.py

.PHONY: pictures
pictures: $(DEV_DONE) ## Make the pictures of docs/console.md anew, in Chromium.
	EVENTLAKE_PICTURES=docs/pictures $(BIN)/python -m pytest -q tests/test_browser.py

.PHONY: torture
torture: $(DEV_DONE) ## Kill hundreds of runs and load 100,000 hostile events; more than an hour.
	EVENTLAKE_KILLS=300 EVENTLAKE_EXAMPLES=300 EVENTLAKE_EVENTS=100000 EVENTLAKE_CONNECTIONS=500 $(BIN)/python -m pytest \
	  tests/test_crash.py tests/test_faults.py tests/test_storage.py tests/test_laws.py tests/test_schedule.py --timeout 7200 $(ARGS)

# In an environment of its own: mutmut does not go together with the pytest of the other.
MUTANTS := .venv-mutants

.PHONY: mutants
mutants: $(MUTANTS)/.done ## Change the code and see whether tests notice; ARGS="schema/evolve" takes some modules.
	$(MUTANTS)/bin/python tests/mutants.py $(ARGS)

.PHONY: check
check: $(DEV_DONE) ## Check style, formatting, types and the import rules.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror src/eventlake/native/*.[ch]
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

.PHONY: format
format: $(DEV_DONE) ## Mend style and formatting where a tool can.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i src/eventlake/native/*.[ch]

.PHONY: bench
bench: $(BENCH_DONE) ## Measure what a load costs, here and elsewhere; see docs/performance.md.
	PYTHONPATH=tests $(BIN)/python -m bench $(ARGS)

.PHONY: bench-smoke
bench-smoke: $(DEV_DONE) ## Fail if loads have become slow; about two minutes.
	$(BIN)/python -m bench.smoke

.PHONY: bench-collect
bench-collect: $(DEV_DONE) ## Load the collector; see docs/collector.md.
	$(BIN)/python -m bench.collect $(ARGS)

.PHONY: bench-lossless
bench-lossless: $(BENCH_DONE) ## Count what is lost of 20,000 hostile events, here and elsewhere.
	$(BIN)/python -m bench.lossless $(ARGS)

##@ Look after it

# $(call pyproject,KEYS): the requirements found under these keys, one a line
pyproject = $(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))$(1), sep="\n")'
LOCK := $(UV) pip compile --quiet --generate-hashes --universal --fork-strategy fewest --python-version 3.11 \
  --custom-compile-command "make lock"

# What runs with the extras `aws` and `azure`, from which `eventlake package` is built: it is shipped with eventlake.
PACKAGE_LOCK := src/eventlake/runners/package.txt

# hatchling asks for it only when it installs in place, so pyproject.toml does not name it
EDITABLE_NEEDS := editables

.PHONY: lock
lock: ## Pin every dependency of pyproject.toml by hash (needs uv); ARGS=--upgrade takes newer versions.
	@command -v $(UV) >/dev/null || { echo "make lock needs uv: pip install uv, or make lock UV=path/to/uv" >&2; exit 1; }
	$(LOCK) $(ARGS) pyproject.toml -o requirements/run.txt
	$(LOCK) $(ARGS) pyproject.toml $(patsubst %,--extra %,aws azure connect databricks gcs hive postgres) --group dev -c requirements/run.txt -o requirements/dev.txt
	$(LOCK) $(ARGS) pyproject.toml --extra aws --extra azure -c requirements/dev.txt --no-annotate -o $(PACKAGE_LOCK)
	$(LOCK) $(ARGS) --group bench -c requirements/dev.txt -o requirements/bench.txt
	$(LOCK) $(ARGS) pyproject.toml --extra postgres --group mutants -c requirements/run.txt -o requirements/mutants.txt
	$(LOCK) $(ARGS) --group spark35 -o requirements/spark35.txt
	$(LOCK) $(ARGS) --group audit -o requirements/audit.txt
	$(LOCK) $(ARGS) --group terraform -o requirements/terraform.txt
	@build=$$($(call pyproject,["build-system"]["requires"])) && printf '%s\n' "$$build" $(EDITABLE_NEEDS) | \
	  $(LOCK) $(ARGS) --no-annotate - -c requirements/dev.txt -o requirements/build.txt
	@java=$$($(call pyproject,["project"]["optional-dependencies"]["java"])) && echo "$$java" | \
	  $(LOCK) $(ARGS) --no-annotate - -o requirements/java.txt

# What people run, what builds it and what it is developed with.
AUDITED := $(patsubst %,requirements/%.txt,run java build dev) $(PACKAGE_LOCK)

.PHONY: audit
audit: $(DONE)/audit ## Look up every pinned package in the database of known vulnerabilities; needs the network.
	$(BIN)/python .ci/audit.py $(AUDIT_VENV)/bin/pip-audit $(AUDITED)

.PHONY: clean
clean: ## Remove environments, caches and built packages; a demo lake stays.
	rm -rf $(VENV) $(MUTANTS) .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The steps of the set-up

$(VENV_DONE):
	@command -v $(PYTHON) >/dev/null || { \
	  echo "no $(PYTHON) here: install Python 3.11 or newer, or name it: make setup PYTHON=path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "eventlake needs Python 3.11 or newer, and $(PYTHON) is older: make setup PYTHON=python3.12" >&2; exit 1; }
	@echo "making $(VENV) with $$($(PYTHON) --version)…"
	@$(PYTHON) -m venv --clear $(VENV)
	@mkdir -p $(DONE) && touch $@

$(DONE)/run: $(VENV_DONE) requirements/run.txt requirements/build.txt
	@echo "installing $(call packages,$(filter %.txt,$^)) packages for running (Spark is large: a minute or two)…"
	@$(PIP_INSTALL) --require-hashes $(patsubst %,-r %,$(filter %.txt,$^))
	@touch $@

NATIVE := $(wildcard hatch_build.py src/eventlake/native/build.py src/eventlake/native/*.[ch])

$(DONE)/project: $(DONE)/run pyproject.toml $(NATIVE)
	@echo "installing eventlake itself…"
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(DONE)/java: $(DONE)/run requirements/java.txt | $(DONE)/project
	@java=$$($(BIN)/python -c 'from eventlake.runners import java; print(java.machine_java_home() or "")') && \
	if [ -n "$$java" ]; then \
	  echo "using the Java in $$java"; \
	else \
	  echo "installing a Java runtime: this machine has no Java 17 or newer…"; \
	  $(PIP_INSTALL) --require-hashes -r requirements/java.txt || { \
	    echo "that failed: install a JDK 17, then run make again" >&2; exit 1; }; \
	fi
	@touch $@

$(DONE)/dev: $(DONE)/run requirements/dev.txt
	@echo "installing the rest of $(call packages,requirements/dev.txt) packages for development…"
	@$(PIP_INSTALL) --require-hashes -r requirements/dev.txt
	@touch $@

$(DONE)/audit: $(VENV_DONE) requirements/audit.txt
	@echo "installing pip-audit into an environment of its own…"
	@$(PYTHON) -m venv --clear $(AUDIT_VENV)
	@$(AUDIT_VENV)/bin/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements/audit.txt
	@touch $@

$(DONE)/bench: $(DONE)/dev requirements/bench.txt
	@echo "installing what eventlake is measured against…"
	@$(PIP_INSTALL) --require-hashes -r requirements/bench.txt
	@touch $@

$(MUTANTS)/.done: requirements/mutants.txt
	@echo "making $(MUTANTS), with $(call packages,$<) packages…"
	@$(PYTHON) -m venv --clear $(MUTANTS)
	@$(MUTANTS)/bin/python -m pip install -qq --disable-pip-version-check --require-hashes -r $<
	@touch $@
