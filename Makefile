# Everything one needs to work on Windlass. `make` or `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help install run recording test test-foreign schemathesis conformance differential bench bench-json bench-parts simulate instructions crash-test fmt lint fuzz clean setup hooks checkers toolchain components format-check curl tests deny left-out

CARGO ?= cargo
FUZZ_SECONDS ?= 120
KILLS ?= 500
SEEDS ?= 0..100000
PROCESS_SEEDS ?= 0..200000
# The seed and the sizes of the differential test.
SEED ?= 1
EXPRESSIONS ?= 200000
DOCUMENTS ?= 20000
WORKFLOWS ?= 500
# Where cargo puts what it builds.
TARGET := $(or $(CARGO_TARGET_DIR),target)
ORACLES := $(TARGET)/differential
SCHEMATHESIS := $(TARGET)/schemathesis
# How many requests schemathesis generates for each route, role and phase.
EXAMPLES ?= 40
CHECKERS := cargo-nextest cargo-deny
SLOWEST := 10

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: toolchain ## Build the program and install it where cargo keeps programs (~/.cargo/bin)
	$(CARGO) install --path crates/cli --locked

run: toolchain ## Build the program and examine this repository with it; on a terminal you decide at the gate
	@$(CARGO) build --release -p windlass-cli
	@WINDLASS=$(TARGET)/release/windlass examples/examine-repository/run.sh

recording: toolchain ## Record a run that is killed and resumed, as the picture in the README
	@$(CARGO) build --release -p windlass-cli -p windlass-tools --bin windlass --bin record
	@PATH="$(abspath $(TARGET))/release:$$PATH" docs/images/record.sh docs/images/run.svg

test: components format-check lint tests deny left-out ## Check everything: format, lints, tests, dependencies

test-foreign: ## Compare with the original programs in a few minutes, and send generated requests to the HTTP API
	@$(MAKE) --no-print-directory differential EXPRESSIONS=20000 DOCUMENTS=2000 WORKFLOWS=50
	@$(MAKE) --no-print-directory schemathesis

schemathesis: toolchain $(SCHEMATHESIS)/installed ## Send generated requests to every route of the HTTP API, as each role (SEED, EXAMPLES)
	@$(CARGO) build --release -p windlass-cli
	@crates/tools/http/schemathesis.sh $(TARGET)/release/windlass $(SCHEMATHESIS)/bin/schemathesis $(EXAMPLES)

$(SCHEMATHESIS)/installed:
	@command -v python3 >/dev/null || { echo 'python3 (3.11 or newer) is missing' >&2; exit 1; }
	python3 -m venv $(SCHEMATHESIS)
	$(SCHEMATHESIS)/bin/pip install --quiet schemathesis==4.32.5
	@touch $@

bench: toolchain ## Measure running beside the limits of this machine, in less than 3 minutes
	@$(CARGO) build --release -p windlass-cli -p windlass-bench
	@$(TARGET)/release/windlass-bench

bench-json: toolchain ## The plain figures as one line of JSON; sizes from SEQ, RUNS, FAN, LAT, MEMRUNS
	@$(CARGO) build --quiet --release -p windlass-cli -p windlass-bench
	@$(TARGET)/release/windlass-bench --json

bench-parts: toolchain ## Measure reading, the core and the store, each beside its own limit
	$(CARGO) build --release -p windlass-cli -p windlass-tools -p windlass-sim -p windlass-bench --bins --examples
	$(TARGET)/release/load_bench
	$(TARGET)/release/examples/core_bench
	$(TARGET)/release/windlass-bench store

conformance: toolchain ## Execute every behavior case of every dialect with the built program, and print how many agree
	@$(CARGO) build --release -p windlass-cli -p windlass-tools --bin windlass --bin conformance
	@$(TARGET)/release/conformance

differential: toolchain $(ORACLES)/installed ## Try random expressions and workflows in Windlass and in the programs its dialects come from
	@$(CARGO) build --release -p windlass-cli -p windlass-tools --bin windlass --bin differential
	@$(TARGET)/release/differential --python $(ORACLES)/bin/python --seed $(SEED) \
		--expressions $(EXPRESSIONS) --documents $(DOCUMENTS) --workflows $(WORKFLOWS)

$(ORACLES)/installed:
	@command -v python3 >/dev/null || { echo 'python3 (3.11 or newer) is missing' >&2; exit 1; }
	python3 -m venv $(ORACLES)
	$(ORACLES)/bin/pip install --quiet specify-cli==1.2.3 dcc-mcp-core==0.20.49
	@touch $@

simulate: toolchain ## Simulate runs (SEEDS, 0..100000), the coordinator and processes (PROCESS_SEEDS, 0..200000) in a hostile world
	$(CARGO) run --release -p windlass-sim -- --seeds $(SEEDS)
	$(CARGO) run --release -p windlass-sim -- --coordinator --seeds $(SEEDS)
	$(CARGO) run --release -p windlass-sim -- --runs --seeds $(PROCESS_SEEDS)

instructions: toolchain ## Count the instructions of the core with callgrind
	$(CARGO) build --profile profiling -p windlass-sim --example core_bench
	@command -v valgrind >/dev/null || { echo 'valgrind is missing; on Debian: sudo apt-get install valgrind' >&2; exit 1; }
	for part in chain graph items loops; do \
		printf '%s: ' "$$part"; \
		valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='core_bench::live' \
			$(TARGET)/profiling/examples/core_bench "$$part" 2>&1 | sed -n 's/.*Collected : //p'; \
	done

crash-test: toolchain ## Kill runs KILLS (500) times, cut the power as often, and check that each resumes where it was
	$(CARGO) build --release -p windlass-cli -p windlass-tools --bin windlass --bin crash_test
	$(TARGET)/release/crash_test --kills $(KILLS)

fmt: components ## Format the code
	$(CARGO) fmt --all

# The fuzz targets are checked without the fuzzer itself, which needs a C++ compiler.
lint: components ## Run clippy, warnings are errors
	$(CARGO) clippy --workspace --exclude windlass-fuzz --all-targets -- -D warnings
	$(CARGO) clippy -p windlass-fuzz --no-default-features -- -D warnings

fuzz: toolchain ## Fuzz each target for FUZZ_SECONDS (120)
	@command -v cargo-fuzz >/dev/null || \
		{ echo 'cargo-fuzz is missing; install it with: cargo install cargo-fuzz --locked' >&2; exit 1; }
	@command -v c++ >/dev/null || { echo 'c++ is missing; on Debian: sudo apt-get install g++' >&2; exit 1; }
	for target in $$($(CARGO) fuzz list); do \
		RUSTC_BOOTSTRAP=1 CARGO_PROFILE_RELEASE_STRIP=none $(CARGO) fuzz run "$$target" -- -max_total_time=$(FUZZ_SECONDS); \
	done

clean: ## Remove what was built
	$(CARGO) clean
	rm -rf fuzz/target

setup: ## Install what a build and `make test` need, and the check of commit messages
	@if command -v cc >/dev/null; then \
		echo 'C compiler: present'; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update && apt-get install --yes gcc libc6-dev; \
	else \
		echo 'cc is missing; on Debian install it with: sudo apt-get install gcc libc6-dev' >&2; exit 1; \
	fi
	@$(MAKE) --no-print-directory components hooks
	@echo 'Rust toolchain: ready'
	@$(MAKE) --no-print-directory checkers

# A relative path holds for every worktree.
hooks:
	@if git rev-parse --git-dir >/dev/null 2>&1; then \
		git config core.hooksPath .githooks; \
		echo 'Commit messages: checked by .githooks/commit-msg'; \
	fi

# Each takes a few minutes to build, so `make test` works without them and says what it left out.
checkers: toolchain
	@for checker in $(CHECKERS); do \
		if command -v "$$checker" >/dev/null; then \
			echo "$$checker: present"; \
		else \
			echo "$$checker: building it takes a few minutes"; \
			$(CARGO) install --locked "$$checker"; \
		fi; \
	done

toolchain:
	@command -v $(CARGO) >/dev/null || { echo 'cargo is missing; install Rust from https://rustup.rs' >&2; exit 1; }

components: toolchain
	@$(CARGO) fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@$(CARGO) clippy --version >/dev/null 2>&1 || rustup component add clippy

format-check: components
	$(CARGO) fmt --all --check

# The recipes of the HTTP API are tested as printed.
curl:
	@command -v curl >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update && apt-get install --yes curl; } || \
		{ echo 'curl is missing; on Debian: sudo apt-get install curl' >&2; exit 1; }

# nextest runs no documentation tests, `cargo test` does; both use the dev build of the lints. The fuzz targets have no tests.
tests: toolchain curl
	@if command -v cargo-nextest >/dev/null; then \
		set -x; \
		$(CARGO) nextest run --workspace --exclude windlass-fuzz; \
		$(CARGO) test --workspace --exclude windlass-fuzz --doc; \
		{ set +x; } 2>/dev/null; \
		echo 'The slowest tests, in seconds:'; \
		sed -n 's/.*<testcase name="\([^"]*\)" classname="\([^"]*\)".* time="\([0-9.]*\)".*/\3 \2 \1/p' $(TARGET)/nextest/default/junit.xml \
			| sort -rn | sed -n '1,$(SLOWEST)p'; \
	else \
		set -x; $(CARGO) test --workspace --exclude windlass-fuzz; \
	fi

# The advisory database is on the network; the other checks need only the lock file.
deny: toolchain
	@if command -v cargo-deny >/dev/null; then \
		if $(CARGO) deny fetch db >/dev/null 2>&1; then \
			$(CARGO) deny check; \
		else \
			echo 'LEFT OUT: advisories, because their database is out of reach' >&2; \
			$(CARGO) deny check bans licenses sources; \
		fi; \
	fi

# The last lines of `make test`, so that no one misses them.
left-out:
	@for checker in $(CHECKERS); do \
		command -v "$$checker" >/dev/null || \
			echo "LEFT OUT: $$checker, which is not installed; install it with: make setup" >&2; \
	done
