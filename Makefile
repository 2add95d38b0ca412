# The commands of this repository; `make help` lists them.
#
# ARGS passes arguments on:         make run ARGS="--config my.conf"
# SUITES chooses interop suites:    make interop SUITES="python go"
# FUZZ_SECONDS limits each target:  make fuzz FUZZ_SECONDS=600

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

ARGS ?=
SUITES ?=
FUZZ_SECONDS ?= 60
SERVER := target/release/leveret
TOOLS := $(CURDIR)/target/tools
# In CI the lock file must be up to date; at a desk cargo may bring it up to date.
LOCKED := $(if $(CI),--locked)

export PATH := $(TOOLS)/bin:$(PATH)

.PHONY: help
help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## Build with optimizations and run the server
	cargo run --release $(LOCKED) -- $(ARGS)

.PHONY: build
build: ## Build the server with optimizations
	cargo build --release $(LOCKED)

.PHONY: lint
lint: ## Check format, lints, licences and the arrows between crates
	scripts/setup-test-deps.sh lint
	cargo fmt --all --check
	cargo fmt --check --manifest-path interop/rust/Cargo.toml
	cargo clippy --workspace --all-targets $(LOCKED) -- -D warnings
	cargo deny --log-level error check bans licenses sources
	python3 scripts/check-architecture.py

.PHONY: test
test: ## Run all tests: Rust's, then those of other languages' clients
	scripts/setup-test-deps.sh test
	$(MAKE) --no-print-directory build
	cargo test --workspace $(LOCKED)
	RUSTFLAGS="--cfg loom" cargo test -p broker -p wal --lib --target-dir target/loom $(LOCKED) loom_
	interop/run.sh --server $(SERVER) $(SUITES)

# Optimized, but not for as long as a release: each of these test programs is linked anew.
.PHONY: test-long
test-long: build ## Run the long versions of tests, and those that are too long for `make test`
	CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 cargo test --release \
	  --target-dir target/long -p wal -p store -p broker -p leveret --tests $(LOCKED) -- --ignored
	CRASH_ROUNDS=20 LEVERET_BIN=$(CURDIR)/$(SERVER) interop/python/run.sh test_crash.py

.PHONY: interop
interop: build ## Run only the tests of other languages' clients
	interop/run.sh --server $(SERVER) $(SUITES)

.PHONY: verify
verify: ## All that has to pass before a change is taken: lint, then test
	$(MAKE) --no-print-directory lint
	$(MAKE) --no-print-directory test

.PHONY: bench
bench: build ## Measure throughput, CPU time per message, latency, restarts and memory
	cargo run --release $(LOCKED) -p bench -- $(ARGS)

.PHONY: bench-full
bench-full: ## The same, with a backlog of 5,000,000 messages: 12 GB of disk
	$(MAKE) --no-print-directory bench ARGS="--full $(ARGS)"

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZ_SECONDS
	scripts/run-fuzz.sh $(FUZZ_SECONDS)
