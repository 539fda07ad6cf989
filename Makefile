# Everything one needs to work on Windlass. `make` or `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run recording test conformance differential bench bench-json bench-parts simulate instructions crash-test fmt lint fuzz clean setup hooks toolchain components format-check tests deny

CARGO ?= cargo
FUZZ_SECONDS ?= 120
SEEDS ?= 0..100000
PROCESS_SEEDS ?= 0..200000
# Of the differential test: what its random numbers come from, and how much it tries.
SEED ?= 1
EXPRESSIONS ?= 200000
DOCUMENTS ?= 20000
WORKFLOWS ?= 500
ORACLES := target/differential
FUZZ_TARGETS := convert dagnats dcc dcc_expressions expressions format schedules speckit speckit_expressions yaml_reader

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: toolchain ## Build the program and run the flagship live; at a terminal you decide at its gate
	@$(CARGO) build --release -p windlass-cli
	@WINDLASS=target/release/windlass examples/ship-a-feature/run.sh

recording: toolchain ## Record what `make run` shows as the picture in the README
	@$(CARGO) build --release -p windlass-cli --bin windlass --example record
	@data=$$(mktemp -d); trap 'rm -rf "$$data"' EXIT; \
	WINDLASS_DATA="$$data" PATH="target/release:$$PATH" target/release/examples/record docs/images/run.svg \
		--when 'a approve' a --when 'why?' 'looks good\r' -- examples/ship-a-feature/run.sh

test: components format-check lint tests deny ## Check everything: format, lints, tests, dependencies

bench: toolchain ## Measure running beside the limits of this machine, in less than 3 minutes
	@$(CARGO) build --release -p windlass-cli -p windlass-bench
	@target/release/windlass-bench

bench-json: toolchain ## The plain figures as one line of JSON; sizes from SEQ, RUNS, FAN, LAT, MEMRUNS
	@$(CARGO) build --quiet --release -p windlass-cli -p windlass-bench
	@target/release/windlass-bench --json

bench-parts: toolchain ## Measure reading, the core and the store, each beside its own limit
	$(CARGO) build --release -p windlass-cli -p windlass-sim -p windlass-bench --bins --examples
	target/release/examples/bench
	target/release/examples/core_bench
	target/release/windlass-bench store

conformance: toolchain ## Live every behaviour case of every dialect with the built program, and print how many agree
	@$(CARGO) build --release -p windlass-cli --bin windlass --example conformance
	@target/release/examples/conformance

differential: toolchain $(ORACLES)/installed ## Try random expressions and workflows in Windlass and in the programs its dialects come from
	@$(CARGO) build --release -p windlass-cli --bin windlass --example differential
	@target/release/examples/differential --python $(ORACLES)/bin/python --seed $(SEED) \
		--expressions $(EXPRESSIONS) --documents $(DOCUMENTS) --workflows $(WORKFLOWS)

$(ORACLES)/installed:
	@command -v python3 >/dev/null || { echo 'python3 (3.11 or newer) is missing' >&2; exit 1; }
	python3 -m venv $(ORACLES)
	$(ORACLES)/bin/pip install --quiet specify-cli==1.2.3 dcc-mcp-core==0.20.49
	@touch $@

simulate: toolchain ## Simulate runs (SEEDS, 0..100000), the coordinator and processes (PROCESS_SEEDS, 0..200000) in a hostile world
	$(CARGO) run --release -p windlass-sim -- --seeds $(SEEDS)
	$(CARGO) run --release -p windlass-sim -- --desk --seeds $(SEEDS)
	$(CARGO) run --release -p windlass-sim -- --runs --seeds $(PROCESS_SEEDS)

instructions: toolchain ## Count the instructions of the core with callgrind
	$(CARGO) build --profile profiling -p windlass-sim --example core_bench
	@command -v valgrind >/dev/null || { echo 'valgrind is missing; on Debian: sudo apt-get install valgrind' >&2; exit 1; }
	for part in chain graph items loops; do \
		printf '%s: ' "$$part"; \
		valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='core_bench::live' \
			target/profiling/examples/core_bench "$$part" 2>&1 | sed -n 's/.*Collected : //p'; \
	done

crash-test: toolchain ## Kill runs of the program 500 times, cut the power 500 times, and see that each goes on where it was
	$(CARGO) build --release -p windlass-cli
	$(CARGO) run --release -p windlass-cli --example crash_test -- --kills 500

fmt: components ## Format the code
	$(CARGO) fmt --all

lint: components ## Run clippy, warnings are errors
	$(CARGO) clippy --workspace --all-targets -- -D warnings

fuzz: toolchain ## Fuzz each target for FUZZ_SECONDS (120)
	@command -v cargo-fuzz >/dev/null || \
		{ echo 'cargo-fuzz is missing; install it with: cargo install cargo-fuzz --locked' >&2; exit 1; }
	for target in $(FUZZ_TARGETS); do \
		RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run "$$target" -- -max_total_time=$(FUZZ_SECONDS); \
	done

clean: ## Remove what was built
	$(CARGO) clean
	rm -rf fuzz/target

setup: ## Install what a build needs and this machine lacks
	@if command -v cc >/dev/null; then \
		echo 'C compiler: present'; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update && apt-get install --yes gcc libc6-dev; \
	else \
		echo 'cc is missing; on Debian install it with: sudo apt-get install gcc libc6-dev' >&2; exit 1; \
	fi
	@$(MAKE) --no-print-directory components hooks
	@echo 'Rust toolchain: ready'

# A relative path holds for every worktree.
hooks:
	@if git rev-parse --git-dir >/dev/null 2>&1; then \
		git config core.hooksPath .githooks; \
		echo 'Commit messages: checked by .githooks/commit-msg'; \
	fi

toolchain:
	@command -v $(CARGO) >/dev/null || { echo 'cargo is missing; install Rust from https://rustup.rs' >&2; exit 1; }

components: toolchain
	@$(CARGO) fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@$(CARGO) clippy --version >/dev/null 2>&1 || rustup component add clippy

format-check: components
	$(CARGO) fmt --all --check

# nextest runs no documentation tests, `cargo test` does; both use the one dev build that clippy's crates lie beside.
tests: toolchain
	@if command -v cargo-nextest >/dev/null; then \
		set -x; $(CARGO) nextest run --workspace; $(CARGO) test --workspace --doc; \
	else \
		set -x; $(CARGO) test --workspace; \
	fi

# The advisory database lives on the network; the other checks need only the lock file.
deny: toolchain
	@if ! command -v cargo-deny >/dev/null; then \
		echo 'Left out: cargo deny, which is not installed (cargo install cargo-deny --locked)'; \
	elif $(CARGO) deny fetch db >/dev/null 2>&1; then \
		$(CARGO) deny check; \
	else \
		echo 'Left out: advisories, whose database is out of reach'; \
		$(CARGO) deny check bans licenses sources; \
	fi
