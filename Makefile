# Everything stays in the checkout: .venv, .frameworks, .pythons, .bench, .docs and target.

PYTHON ?= python3
PYTHONS ?= 3.11 3.12 3.13
TESTS ?= tests --ignore tests/frameworks
NAME ?= records
ARGS ?=
OUT ?= .bench
FUZZ_SECONDS ?= 60

# Tests run on all cores.
PYTEST := -n auto --dist worksteal

VENV := .venv
BIN := $(VENV)/bin
FRAMEWORKS_VENV := .frameworks/venv
TENSORFLOW_VENV := .frameworks/tensorflow
BENCH_VENV := .bench/venv
DOCS_VENV := .docs/venv
WHEELS := target/wheels
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
# Tests start many interpreters, which share the modules that one of them has compiled. Most
# modules of an environment are never imported, so pip compiles none (0 stands for yes here).
export PIP_NO_COMPILE := 0
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help build demo test frameworks pythons soak check bench docs fuzz clean
.DELETE_ON_ERROR:
.PRECIOUS: .pythons/%/installed

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: $(VENV)/built  ## set up .venv with numpy and Pillow and build the extension into it

demo: build  ## write, read, verify and damage a file, build a data set, kill and resume a training
	$(BIN)/python examples/demo.py
	$(BIN)/python examples/pictures.py
	$(BIN)/python examples/resume.py

test: $(VENV)/tests $(VENV)/checked  ## run the tests that need no framework
	cargo test --workspace --exclude ingot-python
	$(BIN)/python -m pytest $(PYTEST) $(TESTS)
	@echo "left out: tests/frameworks (PyTorch, JAX, Grain, TensorFlow, Beam, Hugging Face," \
	  "LitData, Streaming, H5Record: make frameworks), other versions of Python" \
	  "(make pythons) and long campaigns (make soak)"

frameworks: $(FRAMEWORKS_VENV)/built $(TENSORFLOW_VENV)/built  ## run the tests that need PyTorch, JAX, TensorFlow, Beam and others
	$(FRAMEWORKS_VENV)/bin/python -m pytest $(PYTEST) tests/frameworks --ignore tests/frameworks/tf
	$(TENSORFLOW_VENV)/bin/python -m pytest tests/frameworks/tf
	$(FRAMEWORKS_VENV)/bin/mypy

pythons: $(WHEELS)/built  ## run the tests with one wheel in each version of Python: PYTHONS="3.12 3.13"
	@missing=; for version in $(PYTHONS); do \
	  python=$$(for one in python$$version "$$HOME"/.pyenv/versions/$$version.*/bin/python; do \
	    $$one -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$$version')" \
	      2>/dev/null && echo $$one && break; done); \
	  if [ -z "$$python" ]; then missing="$$missing $$version"; continue; fi; \
	  $(MAKE) --no-print-directory PYTHON=$$python .pythons/$$version/built && \
	  .pythons/$$version/bin/python -m pytest $(PYTEST) $(TESTS) || exit 1; \
	done; \
	if [ -n "$$missing" ]; then echo "not tested, there is no interpreter:$$missing"; fi

soak: build $(VENV)/tests $(FRAMEWORKS_VENV)/built  ## run the long campaigns: kills, faults and interrupts at every step, fuzzing
	$(BIN)/python -m pytest $(PYTEST) -m soak --ignore tests/frameworks
	$(FRAMEWORKS_VENV)/bin/python -m pytest $(PYTEST) -m soak tests/frameworks --ignore tests/frameworks/tf
	$(MAKE) fuzz

check: $(VENV)/tests $(VENV)/checks $(VENV)/checked  ## formats, lints, types and layers
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest ingot._core
	$(BIN)/lint-imports
	$(BIN)/python tests/package/check_layers.py

bench: $(BENCH_VENV)/built  ## compare with the peers: NAME=records ARGS=--quick OUT=directory
	$(BENCH_VENV)/bin/python benchmarks/bench_$(NAME).py \
	  --json $(OUT)/$(NAME).json --chart $(OUT)/$(NAME).png $(ARGS)

docs: $(DOCS_VENV)/installed  ## build the guides and the API reference into .docs/site
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict

fuzz: $(FUZZ_TOOLS)/bin/cargo-fuzz  ## feed damaged files to the parsers: FUZZ_SECONDS=60 for each
	cd crates/ingot && export RUSTC_BOOTSTRAP=1 PATH="$(CURDIR)/$(FUZZ_TOOLS)/bin:$$PATH" && \
	targets=$$(cargo fuzz list) && for target in $$targets; do \
	  cargo fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) -timeout=10 || exit 1; \
	done

clean:  ## remove the environments and everything built
	rm -rf $(VENV) .frameworks .pythons .bench .docs target
	rm -rf crates/ingot/fuzz/target crates/ingot/fuzz/artifacts
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

# $(call old_granular,DIRECTORY): the last version of Granular that writes the old layout.
define old_granular
$(1)/bin/python -m pip install --quiet --no-deps --target $(1)/granular-0.21 granular==0.21.2
endef

# $(call install_wheel,ENVIRONMENT): Ingot as users install it.
define install_wheel
$(1)/bin/python -m pip install --quiet --force-reinstall --no-deps $(WHEELS)/*.whl
endef

$(VENV)/installed: pyproject.toml
	$(call new_venv,$(VENV))
	$(BIN)/python -m pip install --quiet --group build
	touch $@

$(VENV)/tests: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --group test
	$(call old_granular,$(VENV))
	touch $@

$(VENV)/checks: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --group check
	touch $@

# The extension in src is that of a release, or one that checks overflows as the engine's tests do
# and shares what is compiled for them.
$(VENV)/built: $(VENV)/installed $(SOURCES)
	@echo "compiling the extension: 300 MB of disk and about 3 minutes on 2 cores the first time"
	$(BIN)/maturin develop --release
	rm -f $(VENV)/checked
	touch $@

$(VENV)/checked: $(VENV)/installed $(SOURCES)
	$(BIN)/maturin develop
	rm -f $(VENV)/built
	touch $@

$(WHEELS)/built: $(VENV)/installed $(SOURCES) $(shell find src -name "*.py")
	rm -rf $(WHEELS)
	$(BIN)/maturin build --release --interpreter $(BIN)/python --out $(WHEELS)
	touch $@

$(FRAMEWORKS_VENV)/installed: pyproject.toml
	$(call announce,PyTorch with CUDA and the other frameworks into $(FRAMEWORKS_VENV),3.2 GB,7 GB,10)
	$(call new_venv,$(FRAMEWORKS_VENV))
	$(FRAMEWORKS_VENV)/bin/python -m pip install --quiet --group frameworks
	$(FRAMEWORKS_VENV)/bin/python -m pip install --quiet --no-deps \
	  --target $(FRAMEWORKS_VENV)/streaming $(STREAMING)
	touch $@

$(FRAMEWORKS_VENV)/built: $(FRAMEWORKS_VENV)/installed $(WHEELS)/built
	$(call install_wheel,$(FRAMEWORKS_VENV))
	touch $@

$(TENSORFLOW_VENV)/installed: pyproject.toml
	$(call announce,TensorFlow into $(TENSORFLOW_VENV),350 MB,1.6 GB,3)
	$(call new_venv,$(TENSORFLOW_VENV))
	$(TENSORFLOW_VENV)/bin/python -m pip install --quiet --group tensorflow
	touch $@

$(TENSORFLOW_VENV)/built: $(TENSORFLOW_VENV)/installed $(WHEELS)/built
	$(call install_wheel,$(TENSORFLOW_VENV))
	touch $@

.pythons/%/installed: pyproject.toml
	$(call new_venv,$(@D))
	$(@D)/bin/python -m pip install --quiet --group test
	$(call old_granular,$(@D))
	touch $@

.pythons/%/built: .pythons/%/installed $(WHEELS)/built
	$(call install_wheel,$(@D))
	touch $@

$(BENCH_VENV)/installed: pyproject.toml
	$(call announce,PyTorch with CUDA and the alternatives into $(BENCH_VENV),3.3 GB,7 GB,10)
	$(call new_venv,$(BENCH_VENV))
	$(BENCH_VENV)/bin/python -m pip install --quiet --group bench
	$(BENCH_VENV)/bin/python -m pip install --quiet --no-deps --target .bench/granular-0.21 granular==0.21.2
	$(BENCH_VENV)/bin/python -m pip install --quiet --no-deps --target .bench/streaming $(STREAMING)
	touch $@

$(BENCH_VENV)/built: $(BENCH_VENV)/installed $(WHEELS)/built
	$(call install_wheel,$(BENCH_VENV))
	touch $@

$(DOCS_VENV)/installed: pyproject.toml
	$(call new_venv,$(DOCS_VENV))
	$(DOCS_VENV)/bin/python -m pip install --quiet --group docs
	touch $@

$(FUZZ_TOOLS)/bin/cargo-fuzz:
	cargo install --locked --quiet --root $(FUZZ_TOOLS) cargo-fuzz
