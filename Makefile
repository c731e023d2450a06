# The environment and everything built stay in the checkout: .venv, .bench, .docs, .tf and target.

PYTHON ?= python3
NAME ?= records
ARGS ?=
OUT ?= .bench
FUZZ_SECONDS ?= 60

# Tests run on all cores.
PYTEST := -n auto --dist worksteal
QUICK := tests/test_api.py tests/test_reader.py tests/test_writer.py tests/test_corruption.py \
  tests/test_format.py tests/test_dataset.py tests/test_dataset_views.py \
  tests/test_dataset_writer.py tests/test_dataset_save.py tests/test_paths.py \
  tests/test_layers.py tests/test_extras.py

VENV := .venv
BIN := $(VENV)/bin
BENCH_VENV := .bench/venv
BENCH_BIN := $(BENCH_VENV)/bin
DOCS_VENV := .docs/venv
TF_VENV := .tf/venv
# Streaming asks for other versions than the rest, so it goes beside the environments with what
# `import streaming` needs and they do not have.
STREAMING := mosaicml-streaming==0.13.0 brotli catalogue cramjam python-snappy regex safetensors \
  tokenizers==0.23.3 transformers==5.22.2 zstd
FUZZ_TOOLS := target/tools

# The directories themselves are sources too: they change when a file is removed.
SOURCES := Cargo.toml $(wildcard Cargo.lock) pyproject.toml \
  $(shell find crates -name fuzz -prune -o \( -name '*.rs' -o -name '*.toml' -o -type d \) -print)

# One interpreter for maturin and for cargo, or each would rebuild what the other has built.
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start many interpreters, which share the modules that one of them has compiled.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help build demo quick test tensorflow soak check bench docs fuzz clean
.DELETE_ON_ERROR:

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: $(VENV)/built  ## set up .venv with numpy and Pillow and build the extension into it

.PHONY: tools
tools: build $(VENV)/tools

demo: build  ## write, read, verify and damage a file, build a data set, kill and resume a training
	$(BIN)/python examples/demo.py
	$(BIN)/python examples/pictures.py
	$(BIN)/python examples/resume.py

quick: build $(VENV)/quick  ## run the tests of the core, which need few packages
	$(BIN)/python -m pytest $(PYTEST) $(QUICK)

test: tools  ## run every test but the long campaigns
	@echo "compiling the engine once more for its tests, with checks that the release does not have:" \
	  "600 MB of disk and about 3 minutes on 2 cores the first time"
	cargo test --workspace --exclude ingot-python
	$(BIN)/python -m pytest $(PYTEST)

tensorflow: $(TF_VENV)/built  ## run the tests that need TensorFlow, in an environment of its own
	$(TF_VENV)/bin/python -m pytest -m tensorflow tests/tf

soak: tools  ## run the long campaigns: kills, faults and interrupts at every step, fuzzing
	$(BIN)/python -m pytest $(PYTEST) -m soak
	$(MAKE) fuzz

check: tools  ## formats, lints, types and layers
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest ingot._core
	$(BIN)/lint-imports
	$(BIN)/python tests/check_layers.py

bench: $(BENCH_VENV)/built  ## compare with the peers: NAME=records ARGS=--quick OUT=directory
	$(BENCH_BIN)/python benchmarks/bench_$(NAME).py \
	  --json $(OUT)/$(NAME).json --chart $(OUT)/$(NAME).png $(ARGS)

docs: $(DOCS_VENV)/installed  ## build the guides and the API reference into .docs/site
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict

fuzz: $(FUZZ_TOOLS)/bin/cargo-fuzz  ## feed damaged files to the parsers: FUZZ_SECONDS=60 for each
	cd crates/ingot && export RUSTC_BOOTSTRAP=1 PATH="$(CURDIR)/$(FUZZ_TOOLS)/bin:$$PATH" && \
	targets=$$(cargo fuzz list) && for target in $$targets; do \
	  cargo fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) -timeout=10 || exit 1; \
	done

clean:  ## remove the environments and everything built
	rm -rf $(VENV) .bench .docs .tf target crates/ingot/fuzz/target crates/ingot/fuzz/artifacts
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -f src/ingot/_core*.so
	find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +

# $(call announce,WHAT,DOWNLOAD,DISK,MINUTES): said before something large begins.
define announce
@echo "installing $(1);" \
  "this downloads $(2), takes $(3) of disk and about $(4) minutes at 100 Mbit/s"
endef

# $(call new_venv,DIRECTORY): an environment whose pip knows dependency groups.
define new_venv
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
  { echo "Python 3.11 or later is needed, $(PYTHON) is $$($(PYTHON) --version 2>&1);" \
    "name another with: make PYTHON=python3.12 ..." >&2; exit 1; }
@command -v cargo >/dev/null || \
  { echo "a Rust toolchain is needed (rustup.rs), cargo is not on the PATH" >&2; exit 1; }
@command -v $(firstword $(CC)) >/dev/null || \
  { echo "a C compiler is needed, $(firstword $(CC)) is not on the PATH" >&2; exit 1; }
test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
$(1)/bin/python -m pip install --quiet 'pip>=25.1'
endef

# $(call new_wheel,DIRECTORY): Ingot as users install it, in the environment of a directory.
define new_wheel
rm -rf $(1)/wheels
$(BIN)/maturin build --release --interpreter $(BIN)/python --out $(1)/wheels
$(1)/venv/bin/python -m pip install --quiet --force-reinstall --no-deps $(1)/wheels/*.whl
endef

$(VENV)/installed: pyproject.toml
	$(call new_venv,$(VENV))
	$(BIN)/python -m pip install --quiet --group build
	touch $@

$(VENV)/quick: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --group quick
	touch $@

$(VENV)/tools: $(VENV)/installed
	$(call announce,PyTorch with CUDA and all else that the tests use into $(VENV),3.2 GB,7 GB,10)
	$(BIN)/python -m pip install --quiet --group test --group check
	$(BIN)/python -m pip install --quiet --no-deps --target $(VENV)/granular-0.21 granular==0.21.2
	$(BIN)/python -m pip install --quiet --no-deps --target $(VENV)/streaming $(STREAMING)
	touch $@

$(VENV)/built: $(VENV)/installed $(SOURCES)
	@echo "compiling the extension: 300 MB of disk and about 3 minutes on 2 cores the first time"
	$(BIN)/maturin develop --release
	touch $@

$(BENCH_VENV)/installed: pyproject.toml
	$(call announce,PyTorch with CUDA and the alternatives into $(BENCH_VENV),3.3 GB,7 GB,10)
	$(call new_venv,$(BENCH_VENV))
	$(BENCH_BIN)/python -m pip install --quiet --group bench
	$(BENCH_BIN)/python -m pip install --quiet --no-deps --target .bench/granular-0.21 granular==0.21.2
	$(BENCH_BIN)/python -m pip install --quiet --no-deps --target .bench/streaming $(STREAMING)
	touch $@

$(BENCH_VENV)/built: $(BENCH_VENV)/installed $(VENV)/built $(shell find src -name "*.py")
	$(call new_wheel,.bench)
	touch $@

$(TF_VENV)/installed: pyproject.toml
	$(call announce,TensorFlow into $(TF_VENV),350 MB,1.6 GB,3)
	$(call new_venv,$(TF_VENV))
	$(TF_VENV)/bin/python -m pip install --quiet --group tensorflow
	touch $@

$(TF_VENV)/built: $(TF_VENV)/installed $(VENV)/built $(shell find src -name "*.py")
	$(call new_wheel,.tf)
	touch $@

$(DOCS_VENV)/installed: pyproject.toml
	$(call new_venv,$(DOCS_VENV))
	$(DOCS_VENV)/bin/python -m pip install --quiet --group docs
	touch $@

$(FUZZ_TOOLS)/bin/cargo-fuzz:
	cargo install --locked --quiet --root $(FUZZ_TOOLS) cargo-fuzz
