# Everything runs in .venv, which is made on first use. See README.md.
PYTHON ?= python3
# Tests side by side: many of them wait for something, so twice the cores of a small machine.
WORKERS ?= 4
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install lock services docs proto demo demo-mysql demo-drainer demo-shards demo-kafka demo-serve demo-lake test check bench soak clean
.DEFAULT_GOAL := install

install: $(STAMP)

# uv installs in a third of pip's time; where there is no uv, pip installs the same versions.
$(STAMP): pyproject.toml requirements.lock setup.py $(wildcard codec/native/source/*)
	$(PYTHON) -m venv $(VENV) 2>/dev/null || { tests/services/install python3-venv && $(PYTHON) -m venv $(VENV); }
	{ $(BIN)/pip install --quiet uv && \
	  $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --requirements requirements.lock; } || \
	  $(BIN)/pip install --quiet --no-deps --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --editable .
	mkdir -p build/types && ln -sfn ../.. build/types/tidemill
	touch $@

# After a change of pyproject.toml, or to take newer versions.
lock:
	$(PYTHON) -m venv build/lock && build/lock/bin/pip install --quiet uv
	{ head -n 1 requirements.lock; build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --extra test \
	  --no-annotate --no-header pyproject.toml; } > build/requirements.lock
	mv build/requirements.lock requirements.lock

# The programs of MariaDB, PostgreSQL and etcd, Chromium, Java with Maven, and in build/ MySQL, MariaDB 11.8, Kafka,
# Avro, JDBC, Delta Lake and DuckDB for Iceberg; the tests start servers of their own.
services:
	tests/services/install mariadb-server-core mariadb-client postgresql etcd-server chromium maven default-jdk-headless
	tests/services/mysql97 || true
	tests/services/mariadb118 || true
	tests/services/kafka4 || true
	tests/services/avro-java || true
	tests/services/iceberg-rest || true
	tests/services/jdbc || true
	tests/services/delta || true
	tests/services/duckdb-iceberg || true

# The site of docs/, in build/site.
docs: install
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --jobs auto docs build/site

# The embedded cluster: needs nothing but PyPI.
demo: install
	GRPC_VERBOSITY=ERROR $(BIN)/python -m tidemill.benchmarks.demo

demo-mysql: install services
	$(BIN)/python -m tidemill.benchmarks.demo_mysql

demo-drainer: install services
	GRPC_VERBOSITY=ERROR $(BIN)/python -m tidemill.benchmarks.demo_drainer

demo-shards: install services
	$(BIN)/python -m tidemill.benchmarks.demo_shards

demo-kafka: install services
	$(BIN)/python -m tidemill.benchmarks.demo_kafka

demo-serve: install services
	GRPC_VERBOSITY=ERROR $(BIN)/python -m tidemill.benchmarks.demo_serve

demo-lake: install services
	GRPC_VERBOSITY=ERROR $(BIN)/python -m tidemill.benchmarks.demo_lake

test: install services
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m 'not soak'

check: install
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pytest -q tests/test_import_law.py

# After a change of a .proto file.
proto: install
	cd codec/proto && ../../$(BIN)/python -m grpc_tools.protoc -I. --descriptor_set_out=descriptors.binpb *.proto
	$(BIN)/python -m tidemill.testing.proto_stubs

bench: install services
	$(BIN)/python -m tidemill.benchmarks

soak: install services
	$(BIN)/pytest -m soak -o faulthandler_timeout=0

clean:
	rm -rf $(VENV) build *.egg-info .demo
