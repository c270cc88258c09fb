# Each word sets up what it needs in .venv. Needs python3 (3.11 or newer), make, git and the package registries.
PYTHON ?= python3
PORT ?= 8000
SUITES ?= bookworm sid
PY := .venv/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check

.PHONY: run test pythons debian-pythons lowest newest environments check format docs bench faults conformance \
  coverage-spec clean

run: .venv/ready
	$(PY) examples/tour.py
	@echo; echo "next, in another terminal: .venv/bin/interlock list http://127.0.0.1:$(PORT)/mcp"; echo "or talk to it: .venv/bin/interlock chat http://127.0.0.1:$(PORT)/mcp"; echo
	$(PY) -m interlock run examples/notes.py --http --port $(PORT)

test: .venv/ready
	$(PY) tools/test.py

pythons: .venv/ready
	$(PY) tools/pythons.py $(addprefix --only=,$(ONLY)) $(ARGUMENTS)

debian-pythons: .venv/ready
	$(PY) tools/pythons.py $(addprefix --debian=,$(SUITES)) $(addprefix --only=,$(ONLY)) $(ARGUMENTS)

lowest newest: .venv/ready
	$(PY) tools/dependency_bounds.py $@ $(TESTS)

environments: .venv/ready
	$(PY) tools/environments.py $(TESTS)

check: .venv/ready
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/pyright

format: .venv/ready
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

docs: .venv/ready .venv-docs/ready
	$(PY) tools/docs.py

bench: .venv/ready
	$(PY) bench/run.py --write

faults: .venv/ready
	$(PY) tools/faults.py

conformance: .venv/ready
	$(PY) tools/conformance.py
	$(PY) tools/authorization.py

coverage-spec: .venv/ready
	$(PY) tools/coverage_spec.py

.venv/ready: requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Interlock needs Python 3.11 or newer: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(PIP) -r requirements/dev.txt
	$(PIP) --no-build-isolation --no-deps -e .
	touch $@

.venv-docs/ready: requirements/docs.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/docs.txt
	touch $@

clean:
	rm -rf .venv .venv-* .cache dist .pytest_cache .ruff_cache .hypothesis
