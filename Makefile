# make demo: a first look. make test: everything CI checks. Needs only Python 3.11 or newer with venv, and pip.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := sample_logs/bot-2025-10-30.log
FUZZ_SECONDS ?= 600
FUZZ_SEED ?= 1
STACKED_SHARE ?= 1

# The SARIF schema as the standard's own tool carries it.
SARIF_PACKAGE := @microsoft/sarif-multitool-linux@5.7.0
SARIF_SCHEMA := .cache/sarif-2.1.0.json

# The torch that proves the remedies; it gets an environment of its own.
TORCH ?= torch==2.13.0
TORCH_VENV ?= .venv-torch
PROVE ?= --markdown docs/remedies.md

# How long the daemon is tried: random schedules of rotation and kills, and minutes of a compressed two days.
SCHEDULES ?= 10000
SOAK_MINUTES ?= 30
UNITS_FOLDER ?= /var/tmp/recompile-watch-units

# toto-ts pins another torch and needs much that its model does not; this is what the model does need.
TOTO_VENV ?= .venv-toto
TOTO_NEEDS := numpy pandas scipy einops jaxtyping typeguard==2.13.3 rotary-embedding-torch toolz pydantic safetensors huggingface_hub

.PHONY: demo test test-torch test-gpu gpu-report example-toto bench bench-watch crash units soak sarif fuzz corpus prove clean stacked

demo: $(STAMP)
	@$(BIN)/recompile-watch analyze --tz UTC $(DEMO) || test $$? -le 2

test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto
	$(BIN)/recompile-watch rules check

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py --markdown docs/benchmarks.md

bench-watch: $(STAMP)
	$(BIN)/python benchmarks/watch.py --markdown docs/benchmarks-watch.md

crash: $(STAMP)
	$(BIN)/python -m tests.sources.follow_schedules --schedules $(SCHEDULES) --seed $(FUZZ_SEED) --report docs/following.md
	$(BIN)/python -m tests.daemon.crash --schedules $(SCHEDULES) --seed $(FUZZ_SEED) --report docs/crash.md

# The unit files under a real systemd in namespaces of its own; as root, two minutes, and once the time to fetch a small Debian.
units: $(STAMP)
	tests/units/run.sh $(BIN)/python $(UNITS_FOLDER)

soak: $(STAMP)
	$(BIN)/python benchmarks/soak.py --minutes $(SOAK_MINUTES) --markdown docs/soak.md

sarif: $(STAMP) $(SARIF_SCHEMA)
	SARIF_SCHEMA=$(SARIF_SCHEMA) $(BIN)/python -m pytest tests/report/test_sarif_schema.py

$(SARIF_SCHEMA):
	mkdir -p $(@D)
	cd $(@D) && npm pack --silent $(SARIF_PACKAGE) && tar --extract --gzip --file *.tgz --strip-components=1 package/$(@F) && rm -- *.tgz

fuzz: $(STAMP)
	$(BIN)/python -m tests.fuzz.run --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED) --report docs/fuzzing.md

# Every stack of two and three of the forms that `make test` tries one by one, and a sample of the stacks.
stacked: $(STAMP)
	$(BIN)/python -m tests.stacked --share $(STACKED_SHARE)

corpus: $(STAMP)
	@test -d "$(CORPUS)" || { echo "usage: make corpus CORPUS=folder (it holds one folder per torch version)"; exit 64; }
	$(BIN)/python -m tests.truth $(CORPUS) --events tests.conftest:events_of_bytes
	$(BIN)/python -m tests.test_corpus $(CORPUS) --report docs/corpus.md

prove: $(STAMP) $(TORCH_VENV)/.installed
	$(BIN)/python proofs/run.py --python $(TORCH_VENV)/bin/python $(PROVE)

# The diagnostic with a real torch, in an environment of its own; `make test` needs none.
test-torch: $(STAMP) $(TORCH_VENV)/.installed
	TORCH_PYTHON=$(TORCH_VENV)/bin/python $(BIN)/python -m pytest tests/torch

# Where a GPU is: TORCH_PYTHON names an interpreter whose torch sees it (default: the environment of `make prove`).
TORCH_PYTHON ?= $(TORCH_VENV)/bin/python
test-gpu: $(STAMP)
	TORCH_PYTHON=$(TORCH_PYTHON) $(BIN)/python -m pytest -rs tests/gpu

gpu-report: $(STAMP)
	$(BIN)/python proofs/gpu_report.py --python $(TORCH_PYTHON) --markdown docs/gpu-report.md

# Toto with tiny random weights: the bot's cache storms, without the cache there is no recompile. Status 3: nothing is timed, so nothing decided.
example-toto: $(STAMP) $(TOTO_VENV)/.installed
	cd workloads && $(abspath $(BIN))/recompile-watch diagnose --workload toto_example:make --python $(abspath $(TOTO_VENV))/bin/python \
	  --stage structural --candidates default,variant:upstream-cache,variant:no-cache || test $$? -eq 3

$(TOTO_VENV)/.installed:
	$(PYTHON) -m venv $(TOTO_VENV)
	$(TOTO_VENV)/bin/python -m pip install --quiet --disable-pip-version-check '$(TORCH)' $(TOTO_NEEDS)
	$(TOTO_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps toto-ts==0.2.0 gluonts==0.17.0
	@touch $@

$(TORCH_VENV)/.installed:
	$(PYTHON) -m venv $(TORCH_VENV)
	$(TORCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	@touch $@

clean:
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis $(VENV) $(TORCH_VENV) $(TOTO_VENV)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m compileall -q recompile_watch
	@touch $@
