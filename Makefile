# Two commands: `make run` builds and starts the server, `make test` installs what the tests need and runs them all.

VERSION ?= $(shell git describe --tags --always 2>/dev/null || echo 0.1.0)
BIN     := bin/hermes-mobile

.PHONY: run build test quick lint unit sdk sdk-docs e2e web web-build screens conformance bench profile chaos fuzz clean

run: build
	@./$(BIN) serve

build:
	@CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o $(BIN) ./cmd/hermes-mobile

test:
	@bash scripts/test.sh

quick:
	@bash scripts/quick.sh

lint:
	@bash scripts/lint.sh

unit:
	@bash scripts/unit.sh

sdk: build
	@bash scripts/sdk.sh

sdk-docs: sdk
	@echo sdk/ts/docs/index.html

e2e: build
	@bash scripts/e2e.sh

web: build
	@bash scripts/web.sh

web-build:
	@cd web && npm ci --silent --no-progress && node build.mjs

screens: build
	@cd web && node test/bundled.mjs screens

conformance: build
	@bash scripts/conformance.sh

bench: build
	@bash scripts/bench.sh

profile:
	@bash scripts/profile.sh

chaos:
	@bash scripts/chaos.sh

fuzz:
	@bash scripts/fuzz.sh

clean:
	@rm -rf bin .cache
