# `make run` and `make test` are the two main commands. Both do all set-up.

CARGO ?= cargo
CLAUDE_DIR ?= $(or $(CLAUDE_CONFIG_DIR),$(HOME)/.claude)
TARGET := $(or $(CARGO_TARGET_DIR),target)
QUIPU := $(TARGET)/quick/quipu

LIBRARIES := message conversation files transcript render index api otlp engine sdk trace server

.PHONY: run test build web test-web lint deny package fuzz bench crash interop clean

# Serves the page on your own sessions, or on the bundled ones if you have none, until Ctrl-C.
run: build
	@if [ -z "$$(ls '$(CLAUDE_DIR)'/projects/*/*.jsonl 2>/dev/null | head -1)" ]; then \
		echo "No sessions in $(CLAUDE_DIR); these are the bundled ones." >&2; set -- --demo; fi; \
	exec $(QUIPU) --claude-dir '$(CLAUDE_DIR)' serve "$$@"

# The page, which is compiled into the program. Without Node the program has a page that explains this.
PAGE := crates/server/dist/index.html
PAGE_SOURCES := $(shell find web/src web/public web/index.html web/*.ts web/*.js -type f 2>/dev/null)

web:
	@if command -v npm >/dev/null 2>&1; then $(MAKE) --no-print-directory $(PAGE); \
		else echo "Node is not installed: the program is built without its page"; fi

web/node_modules/.package-lock.json: web/package-lock.json
	cd web && npm ci --no-audit --no-fund
	@touch $@

$(PAGE): web/node_modules/.package-lock.json $(PAGE_SOURCES)
	cd web && npm run --silent build
	@rm -rf crates/server/dist/assets && cp -R web/dist/. crates/server/dist

# Checks and tests of the page: types, style, components, and all of it in Chromium. A debug build
# reads the page from its folder, so the program of the other tests serves it.
test-web: web
	@$(CARGO) build --quiet -p quipu --bin quipu --bin quipu-agent
	@if command -v npm >/dev/null 2>&1; then cd web && npm run --silent check && npm run --silent test && \
		QUIPU='$(abspath $(TARGET)/debug/quipu)' npm run --silent test:browser; \
		else echo "Node is not installed: THE PAGE IS NOT TESTED"; fi

build: web
	@$(CARGO) build --profile quick -p quipu --bins

# All checks: formatting, lints, documentation, tests, licences.
test: lint
	@if $(CARGO) nextest --version >/dev/null 2>&1; \
		then $(CARGO) nextest run --workspace --no-fail-fast; \
		else $(CARGO) test --workspace --no-fail-fast --lib --bins --tests --examples; fi
	$(CARGO) test --workspace --doc
	@$(MAKE) --no-print-directory test-web
	@$(MAKE) --no-print-directory deny

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --quiet
	$(CARGO) package --quiet --allow-dirty --no-verify --offline $(LIBRARIES:%=-p quipu-%)

deny:
	@if $(CARGO) deny --version >/dev/null 2>&1; \
		then $(CARGO) deny --offline check licenses bans sources; \
		else echo "cargo deny is not installed: licences, bans and sources were not checked"; fi

# Checks that every library can be published: each is built from its package.
package:
	$(CARGO) package --quiet --allow-dirty $(LIBRARIES:%=-p quipu-%)

# Long runs, on request.
fuzz:
	for target in line block stream context; do fuzz/run $$target $(or $(SECONDS),600) || exit 1; done

bench:
	bench/run

crash:
	QUIPU_CRASH_KILLS=$(or $(KILLS),2000) $(CARGO) test -p quipu-transcript --test it crash::no_ack -- --nocapture
	QUIPU_KILLS=$(or $(KILLS),200) $(CARGO) test -p quipu --test it agent::kill -- --nocapture
	QUIPU_KILLS=$(or $(KILLS),200) $(CARGO) test -p quipu --test it capture::a_killed -- --nocapture

# Runs published programs on our files: needs Python, a package registry and ../shared/interop.
interop:
	interop/run

clean:
	$(CARGO) clean
