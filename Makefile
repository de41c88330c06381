# Everything runs in .venv, which is made on first use. See README.md.
PYTHON ?= python3
# Tests side by side: many of them wait for something, so one more than the cores of a small machine.
WORKERS ?= 3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install services proto demo demo-mysql test check bench bench-sorter soak clean
.DEFAULT_GOAL := install

install: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV) 2>/dev/null || { tests/services/install python3-venv && $(PYTHON) -m venv $(VENV); }
	$(BIN)/pip install --quiet --editable '.[test]'
	mkdir -p build/types && ln -sfn ../.. build/types/tidemill
	touch $@

# MariaDB's programs, and MySQL in build/mysql97; nothing is started and no system service is set up.
services:
	tests/services/install mariadb-server-core mariadb-client
	tests/services/mysql97 || true

# The embedded cluster: needs nothing but PyPI.
demo: install
	GRPC_VERBOSITY=ERROR $(BIN)/python -m tidemill.benchmarks.demo

demo-mysql: install services
	$(BIN)/python -m tidemill.benchmarks.demo_mysql

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

bench: install services
	$(BIN)/python -m tidemill.benchmarks

# All sorters and their yardsticks side by side: build/bench/sorter.txt and .png; about 5 minutes.
bench-sorter: install
	$(BIN)/python -m tidemill.benchmarks.sorter_table build/bench

soak: install services
	$(BIN)/pytest -m soak

clean:
	rm -rf $(VENV) build *.egg-info .demo
