# Everything happens in a virtual environment of its own: make demo, make test.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
TOOLS  := $(VENV)/.tools

.PHONY: demo test test-long test-spark fuzz lint types layers unit audit bench lock clean

# The kernels that the demo needs are compiled on all processors first. What is compiled is kept, whatever is set.
demo: export PYTHONDONTWRITEBYTECODE :=
demo: $(READY)
	$(BIN)/countervail warm demo
	$(BIN)/countervail demo

# Types are checked beside the tests: without its cache mypy takes half a minute on one core.
test: $(TOOLS)
	+$(MAKE) --no-print-directory -j 2 lint types layers unit

lint: $(TOOLS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(TOOLS)
	$(BIN)/mypy

layers: $(TOOLS)
	$(BIN)/lint-imports

unit: $(TOOLS)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not spark"

# Those that need Java and a cluster of Spark, which starts once for all of them.
test-spark: $(TOOLS)
	$(BIN)/python -m pytest -q tests/engine -m spark

# The same with as many random tables as a night has time for.
test-long: $(TOOLS)
	$(BIN)/python -m pytest -q -n 2 --dist loadgroup --long

# Made-up files through all commands of tables, on as long as it is let; goes on where it stopped.
fuzz: $(TOOLS)
	$(BIN)/python tests/cli/fuzz_tables.py --cases $(or $(CASES),50000) --state fuzz.json

# Epsilon measured from outside, on the full grid; some minutes.
audit: $(TOOLS)
	$(BIN)/python benchmarks/studies/dp_audit.py

# Minutes; `make bench BENCH=--quick` only shows that every script works.
bench: $(TOOLS)
	$(BIN)/python benchmarks/speed/nice.py $(BENCH)
	$(BIN)/python benchmarks/speed/cfk.py --grasp-rows 20 --million $(BENCH)
	$(BIN)/python benchmarks/speed/actionable.py $(BENCH)
	$(BIN)/python benchmarks/speed/mondrian.py $(BENCH)
	$(BIN)/python benchmarks/speed/rules.py $(BENCH)
	$(BIN)/python benchmarks/speed/dp.py $(BENCH)
	$(BIN)/python benchmarks/speed/dit.py $(BENCH)
	$(BIN)/python benchmarks/speed/audit.py $(BENCH)
	$(BIN)/python benchmarks/speed/ledger.py $(BENCH)
	$(BIN)/python benchmarks/speed/first_use.py $(BENCH)

# After an upgrade that passes `make test`: write down what was tested.
lock: $(TOOLS)
	$(BIN)/pip freeze --exclude-editable | sed 's/+cpu$$//' > constraints.txt

# Of a gigabyte of packages the product imports a part: Python compiles that when it is first used.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e .
	touch $(READY)

# What tests need beyond the product: the tools, and every extra.
$(TOOLS): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,gan,lightgbm,sign,spark]"
	touch $(TOOLS)

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis countervail-demo
