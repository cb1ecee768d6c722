# Everything happens in a virtual environment of its own: make demo, make test.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test lint types layers unit audit bench lock clean

demo: $(READY)
	$(BIN)/countervail demo

test: lint types layers unit

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

unit: $(READY)
	$(BIN)/python -m pytest -q -n 2

# Epsilon measured from outside, on the full grid; some minutes.
audit: $(READY)
	$(BIN)/python benchmarks/studies/dp_audit.py

bench: $(READY)
	$(BIN)/python benchmarks/speed/nice.py
	$(BIN)/python benchmarks/speed/cfk.py --grasp-rows 20 --million
	$(BIN)/python benchmarks/speed/mondrian.py

# After an upgrade that passes `make test`: write down what was tested.
lock: $(READY)
	$(BIN)/pip freeze --exclude-editable > constraints.txt

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis countervail-demo
