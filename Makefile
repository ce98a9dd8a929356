# The targets that README names. Nothing here needs more than Go and make;
# servers that tests would like to have are found or reported.

GO ?= go
LINT_VERSION := v2.15.0
VULN_VERSION := v1.3.0
ACTIONLINT_VERSION := v1.7.12
GORELEASER_VERSION := v2.15.1
SBOM_VERSION := v1.10.0
APIDIFF_VERSION := v0.0.0-20261113113407-e3970619a1a4
BIN := $(CURDIR)/bin

# Each module is built as its users build it: go.work is for editors.
export GOWORK := off

# Tests make thousands of small ledgers and sync every commit. Where memory is a file
# system with room, they do so there: no test needs files to outlive the machine. make
# check has its ledgers on the disk.
MEMORY := $(shell awk '$$2 == "/dev/shm" && $$4 !~ /noexec/' /proc/mounts 2>/dev/null | grep -q . && df -Pk /dev/shm | awk 'NR == 2 && $$4 > 6000000 {print $$6}')
test race: export TMPDIR := $(or $(TMPDIR),$(MEMORY))

# Many tests wait, for servers and for times that are their subject: four packages at once
# keep two cores busy.
PACKAGES := -p 4

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

.PHONY: build
build: ## the command, into bin/readback
	$(GO) build -trimpath -buildmode=pie -o $(BIN)/readback ./cmd/readback

.PHONY: demo
demo: ## three ways to write 100 orders, counted by the destination
	@$(GO) run ./cmd/readback demo

.PHONY: run
run: ## a server to try out, with a destination that loses answers; RUN="--listen 127.0.0.1:8090"
	@mkdir -p $(BIN) && $(GO) build -o $(BIN)/readback ./cmd/readback && cd $(BIN) && exec ./readback dev $(RUN)

.PHONY: cross
cross: ## builds for every system that is released, without cgo, and compiles the tests for each
	@for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do \
	  echo "$$target"; CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) build -trimpath -o /dev/null ./cmd/readback || exit 1; \
	done
	@for system in darwin windows; do echo "tests for $$system"; CGO_ENABLED=0 GOOS=$$system $(GO) vet ./... || exit 1; done

.PHONY: notices
notices: ## the licences of what is linked, into bin/NOTICE, as releases have them
	$(GO) run ./internal/notices -out $(BIN)/NOTICE

.PHONY: test
test: ## tests of everything, with a part of each long suite; READBACK_STRICT=1 makes a missing server a failure
	$(GO) test $(PACKAGES) -short -timeout 20m ./...

.PHONY: check
check: export READBACK_STRICT = 1
check: ## every test whole, with every server, and the race detector
	$(GO) vet ./...
	$(GO) test $(PACKAGES) -timeout 30m ./...
	$(MAKE) dispatch race

.PHONY: dispatch
dispatch: ## the suites of writes and sagas, with workers that hand their work over to another scheduler
	$(GO) test -short ./engine -engine.dispatch
	$(GO) test -short ./saga -saga.dispatch
	$(GO) test -short ./internal/sagamatrix -sagamatrix.dispatch
	$(GO) test -short ./internal/soak -run TestUnderFire -soak.dispatch

# The packages with goroutines or shared state of their own. The tests of the
# others would repeat under the race detector what make check has shown, at ten
# times the cost, and so would every case of a long suite: hence -short. The same
# holds of RACE_SKIP: tests of these packages in which one
# goroutine does one thing after another, or which run the suite of another test on
# a second clock or server.
RACED := ./audit ./command ./connectors/imap ./connectors/mcp ./connectors/sql ./engine ./guards ./internal/access \
	./internal/httpapi/... ./internal/mcpapi/... ./internal/mcpgate ./internal/metrics ./internal/service ./internal/otel \
	./internal/replays ./internal/server ./internal/soak ./internal/webhooks ./lag ./ledger/... ./telemetry ./verify/... ./gate ./saga
RACE_SKIP := ^(TestDistributed|TestLedgerOnPostgreSQL|TestWhatWasHeldForDaysIsTried|TestTextsOfAHostile.*|TestModel|TestModelOfALine|TestARefusedLoginHoldsTheQueue|TestUndoSurvivesEveryCrash|TestRecheckThatCannotBeMade.*|TestARepeatIsOneAlsoWithoutAWait|TestInBubble|TestDamage|TestDamagedRows|TestAudit.*|TestProbing|TestSQLite|TestConformanceDovecot|TestCanaries|TestTampering|TestSealedForgeriesAreDetected|TestCanonicalInOneGo|TestTypeScriptClient|TestFilesystem|TestExecModes|TestRulesThatRunTooLong|TestEveryRouteAsEverybody|TestNoDecisionIsSmuggled.*|TestNoBoundCostsNothing|TestWritesOfARemovedDestinationWait)$$|^(TestLedger|TestMemory)$$/^(round_trip|document_model|model|search_page|search|history|damage)$$

.PHONY: race
race: ## the tests of what runs concurrently, under the race detector
	$(GO) test -race -short -timeout 30m -skip '$(RACE_SKIP)' $(RACED)
	$(GO) test -race -short -timeout 20m ./internal/reviewui -run 'Update|Decision'

# Each adapter is a module of its own, so that the core needs none of the engines.
ADAPTERS := $(patsubst adapters/%/go.mod,%,$(wildcard adapters/*/go.mod))

.PHONY: adapters
adapters: $(ADAPTERS:%=adapter-%) ## go vet and the tests of every adapter of a workflow engine; make adapter-river of one

.PHONY: $(ADAPTERS:%=adapter-%)
$(ADAPTERS:%=adapter-%): adapter-%:
	cd adapters/$* && $(GO) vet ./... && $(GO) test -timeout 20m ./...

adapter-temporal: $(BIN)/temporalserver

# Temporal's server, which takes minutes to compile.
$(BIN)/temporalserver: $(wildcard bench/temporalserver/*)
	cd bench/temporalserver && $(GO) build -trimpath -o $@ .

.PHONY: clients
clients: clients-typescript clients-python ## build and test the packages for TypeScript and Python, against bin/readback

.PHONY: clients-typescript
clients-typescript: build clients/typescript/node_modules/.package-lock.json
	cd clients/typescript && npm run --silent build && npm test --silent && npm run --silent frameworks

clients/%/node_modules/.package-lock.json: clients/%/package-lock.json
	cd clients/$* && npm ci --ignore-scripts --no-audit --no-fund --prefer-offline
	@touch $@

.PHONY: clients-python
clients-python: build clients/python/node_modules/.package-lock.json
	cd clients/python && python3 -m unittest discover -s tests

.PHONY: drill
drill: ## 10,000 writes for each class of destination, restored to the middle; a failover; and the suite of ledgers on three partitions
	$(GO) test ./internal/soak -run 'TestRestoreDrill|TestFailoverDrill' -count=1 -v -timeout 30m -soak.drill=10000
	$(GO) test ./ledger/shards -run TestLedgerOnPostgreSQL -count=1 -timeout 30m -shards.whole

.PHONY: soak
soak: ## 20,000 writes under fire, for some minutes; SOAK="-soak.seed=7" repeats a run
	$(GO) test ./internal/soak -run TestUnderFire -count=1 -v -timeout 20m -soak.full $(SOAK)

.PHONY: simulate
simulate: ## 100,000 simulated worlds with other actors, and a report; SIMULATE="-simulation.from=100001" runs others; and the explorer within larger bounds
	$(GO) test ./internal/simulation -run TestSimulation -count=1 -v -timeout 120m -simulation.seeds=100000 $(SIMULATE)
	$(GO) test ./internal/explorer -run 'TestExplore$$' -count=1 -v -timeout 120m -explorer.far

.PHONY: load
load: ## 256 clients for 30 s, and memory over 200,000 writes; LOAD="-load.for=1m" changes it
	$(GO) test ./internal/load -count=1 -v -timeout 30m -load.for=30s -load.writes=200000 $(LOAD)

.PHONY: sagamatrix
sagamatrix: ## every crash point, every vice and every failing step of a saga; long
	$(GO) test -timeout 120m ./internal/sagamatrix -run TestMatrix -whole -v

.PHONY: campaign
campaign: ## 1,000 creates of each included declaration under faults, and the table of docs/guide/destinations.md; CAMPAIGN=-update renders it
	$(GO) test ./connectors/rest -run TestCampaign -count=1 -v -timeout 60m -campaign.whole $(CAMPAIGN)

.PHONY: bench
bench: ## benchmarks; see docs/operate/deploy.md (READBACK_BENCH_ROWS=1000000 for long histories)
	$(GO) test -run '^$$' -bench . -benchmem ./verify ./lag ./ledger/... ./engine ./internal/storebench ./internal/eval ./internal/reviewui
	@for a in dbos river; do (cd adapters/$$a && $(GO) test -run '^$$' -bench . -benchtime 2000x .) || exit 1; done

.PHONY: bench-peers
bench-peers: ## readback beside DBOS, River, Temporal and Restate, and the chart of docs/performance.md; BENCH="-dir /mnt/disk -for 5s"
	$(MAKE) $(BIN)/temporalserver || echo "Temporal's server could not be built"
	cd bench && $(GO) run . -temporal $(BIN)/temporalserver -out ../docs/performance.svg $(BENCH)

.PHONY: bench-engines
bench-engines: ## workflow engines alone and with readback, under faults, and their tables in docs/performance.md; under twelve minutes
	$(MAKE) $(BIN)/temporalserver || echo "Temporal's server could not be built"
	cd bench && $(GO) build -trimpath -o $(BIN)/bench . && $(BIN)/bench -engines -page ../docs/performance.md -temporal $(BIN)/temporalserver -rounds 3 -for 1500ms $(BENCH)

.PHONY: mutants
mutants: ## break each rule once and see its test fail
	$(GO) run ./internal/mutants

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (default 20s)
	@grep -rnoE '^func Fuzz[A-Za-z]+' --include='*_test.go' . | sed -E 's|/[^/]*:[0-9]+:func | |' | sort -u | while read -r pkg target; do \
	  echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $${FUZZTIME:-20s} $$pkg || exit 1; \
	done

# govulncheck asks a database on the network, which was never reached while the adapters were
# made: only the core is checked. In an adapter: GOWORK=off ../../bin/govulncheck ./...
.PHONY: lint
lint: tools ## golangci-lint, of the adapters too, actionlint, and govulncheck of the core
	@test -z "$$(gofmt -l .)" || { echo "not gofmt-ed:"; gofmt -l .; exit 1; }
	$(BIN)/golangci-lint run ./...
	@for a in $(ADAPTERS); do echo "adapters/$$a"; (cd adapters/$$a && $(BIN)/golangci-lint run ./...) || exit 1; done
	$(BIN)/actionlint -shellcheck= -pyflakes= .github/workflows/*.yaml
	@rm -f $(BIN)/unchecked
	$(BIN)/govulncheck ./... || { test $$? -ne 3 && echo "warning: govulncheck could not ask its database: known vulnerabilities are not checked" | tee $(BIN)/unchecked; }

.PHONY: tools
tools: $(BIN)/golangci-lint-$(LINT_VERSION) $(BIN)/govulncheck-$(VULN_VERSION) $(BIN)/actionlint-$(ACTIONLINT_VERSION)

$(BIN)/golangci-lint-$(LINT_VERSION):
	GOBIN=$(BIN) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@touch $@

$(BIN)/govulncheck-$(VULN_VERSION):
	GOBIN=$(BIN) $(GO) install golang.org/x/vuln/cmd/govulncheck@$(VULN_VERSION)
	@touch $@

# The archives first, from the sources of the tag; the packages have the programs of the archives.
.PHONY: release
release: build clients/typescript/node_modules/.package-lock.json $(BIN)/goreleaser-$(GORELEASER_VERSION) $(BIN)/cyclonedx-gomod-$(SBOM_VERSION) ## at a tag: everything that is published, into dist; .github/workflows/release.yaml runs it
	cd clients/typescript && npm run --silent build
	PATH=$(BIN):$$PATH $(BIN)/goreleaser release --clean $(SNAPSHOT)
	$(GO) run ./internal/release -programs dist -out dist/packages
	cd clients/python && python3 -m pip wheel --quiet --no-index --no-deps --wheel-dir $(CURDIR)/dist/packages/pypi .

.PHONY: snapshot
snapshot: ## the same of the current commit, signed with a key of the moment; it publishes nothing
	@mkdir -p $(BIN) && openssl genpkey -algorithm ed25519 -out $(BIN)/snapshot.pem
	SIGNING_KEY=$(BIN)/snapshot.pem $(MAKE) release SNAPSHOT=--snapshot

.PHONY: first-write
first-write: ## the time from an empty folder to a first verified write in each language, with the packages in dist
	clients/first-write.sh

# The released API is in the repository's own history: a release is compared with no copy of it.
.PHONY: api
api: $(BIN)/apidiff-$(APIDIFF_VERSION) ## incompatible changes of public packages since the commit or tag in api.txt, which lists those that are meant
	@set -e; old=$$(mktemp -d); trap 'rm -rf "$$old"' EXIT; \
	base=$$(sed -n 's/^base //p' api.txt); \
	git cat-file -e "$$base^{commit}" || { echo "api.txt compares with $$base, which this clone lacks: git fetch --unshallow --tags"; exit 1; }; \
	git archive "$$base" | tar -x -C "$$old"; \
	sed -n '/^base /q; p' api.txt >$(BIN)/api.txt; echo "base $$base" >>$(BIN)/api.txt; \
	for m in . $(ADAPTERS:%=adapters/%); do test -d "$$old/$$m" || continue; \
	  (cd "$$old/$$m" && $(BIN)/apidiff -m -w "$$old/export" "$$($(GO) list -m)") 2>"$$old/log" || { grep -v "^Ignoring" "$$old/log"; exit 1; }; \
	  (cd $$m && $(BIN)/apidiff -m -incompatible "$$old/export" "$$($(GO) list -m)") 2>"$$old/log" >"$$old/changes" || { grep -v "^Ignoring" "$$old/log"; exit 1; }; \
	  if [ -s "$$old/changes" ]; then (echo; echo "$$m"; cat "$$old/changes") >>$(BIN)/api.txt; fi; done; \
	diff -u api.txt $(BIN)/api.txt || { echo "The public API differs from what api.txt lists. If that is meant: cp bin/api.txt api.txt, and write it into CHANGELOG.md."; exit 1; }

$(BIN)/actionlint-$(ACTIONLINT_VERSION):
	GOBIN=$(BIN) $(GO) install github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION)
	@touch $@

$(BIN)/goreleaser-$(GORELEASER_VERSION):
	GOBIN=$(BIN) $(GO) install github.com/goreleaser/goreleaser/v2@$(GORELEASER_VERSION)
	@touch $@

$(BIN)/cyclonedx-gomod-$(SBOM_VERSION):
	GOBIN=$(BIN) $(GO) install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(SBOM_VERSION)
	@touch $@

$(BIN)/apidiff-$(APIDIFF_VERSION):
	GOBIN=$(BIN) $(GO) install golang.org/x/exp/cmd/apidiff@$(APIDIFF_VERSION)
	@touch $@

.PHONY: site
site: .vitepress/node_modules/.package-lock.json ## the documentation as a site, into bin/site; SITE_BASE=/path/ if it is served below a path
	.vitepress/node_modules/.bin/vitepress build .
	@echo "$(BIN)/site: any web server serves it, such as .vitepress/node_modules/.bin/vitepress preview ."

.vitepress/node_modules/.package-lock.json: .vitepress/package-lock.json
	cd .vitepress && npm ci --ignore-scripts --no-audit --no-fund --prefer-offline
	@touch $@

.PHONY: docs
docs: ## render the documents that tests hold against the code
	$(GO) test ./internal/matrix -update
	$(GO) test ./internal/simulation -run TestGrid -update
	$(GO) test ./internal/catalog -update
	$(GO) test ./internal/metrics -update
	$(GO) test ./internal/access -run TestDocument -update
	$(GO) test ./internal/httpapi/v1 -run TestPageIsUpToDate -update
