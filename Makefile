# Targets for people who work on brine. Everything needs Go only, except `interop` and `bench`, which fetch stock
# Salt, and `openstack` and `demo-heat`, which install Debian's OpenStack.

GO          ?= go
BIN         ?= bin
PROGRAMS    := brine-minion brine-master brine-update
PLATFORMS   := linux/amd64 linux/arm64 linux/arm freebsd/amd64 darwin/arm64 windows/amd64
# The version of programs and packages: make packages VERSION=1.2.3. Without one, programs say from which commit they are.
VERSION     ?=
RELEASE      = $(patsubst v%,%,$(VERSION))
stamp        = $(if $(RELEASE),s|^-ldflags=.*|& -X github.com/brine-salt/brine/internal/version.release=$(RELEASE)|;)
# Flags of released programs, each in quotes; make build TAGS=custom,modules.test adds build tags.
BUILDFLAGS   = $(shell sed "$(stamp) s/^-tags=.*/&$(if $(TAGS),$(comma)$(TAGS))/; s/.*/'&'/" internal/buildflags/flags)
comma       := ,
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    ?= 10s

# Everything but the race detector builds as the release does, so that all targets share what is compiled.
export CGO_ENABLED := 0
export GOFLAGS     := $(shell $(GO) env GOFLAGS) -trimpath

.PHONY: all agent demo demo-heat build cross vet lint test test-again test-32 test-openstack openstack openstack-python openstack-scale openstack-trove interop saltgui answers packages packages-test container release release-test bench paired scale soak chaos guards seal-proof rule-proof budgets sizes coverage compat shims new-module prose fuzz-short clean

all: build

# A master and three minions on loopback, shown at work. `make demo ARGS=--stay` keeps them running.
demo:
	$(GO) run ./cmd/brine-master demo $(ARGS)

build:
	@mkdir -p $(BIN)
	@set -e; for p in $(PROGRAMS); do \
		echo "$(BIN)/$$p"; \
		$(GO) build $(BUILDFLAGS) -o $(BIN)/$$p ./cmd/$$p; \
	done

# The programs for every platform of the release, by one command for each, so that they are linked side by side.
cross:
	@set -e; for pl in $(PLATFORMS); do \
		os=$${pl%/*}; arch=$${pl#*/}; dir=$(BIN)/$$os-$$arch; mkdir -p $$dir; \
		GOOS=$$os GOARCH=$$arch GOARM=6 $(GO) build $(BUILDFLAGS) -o $$dir/ $(PROGRAMS:%=./cmd/%); \
		ls $$dir/*; \
	done

# deb, rpm and apk for three architectures, and the wheel: make packages VERSION=1.2.3; they are in bin/packages/out. Without a version it is
# that of a development build, older than every release. make packages PACKAGE_ARCHES='arm64 riscv64' builds for these.
PACKAGE_ARCHES := amd64 arm64 armv7
PACKAGES       := $(BIN)/packages
packages: RELEASE = $(or $(patsubst v%,%,$(VERSION)),0.0.0-dev)
packages:
	@{ command -v libdeflate-gzip && command -v xz; } >/dev/null || sh interop/install-tools.sh pkg/build-packages.txt
	@set -e; for a in $(PACKAGE_ARCHES); do \
		mkdir -p $(PACKAGES)/linux-$$a; \
		export GOOS=linux GOARCH=$$(echo $$a | sed s/armv7/arm/) GOARM=7; \
		$(GO) build $(BUILDFLAGS) -o $(PACKAGES)/linux-$$a/ $(PROGRAMS:%=./cmd/%); \
		(cd openstack && $(GO) build $(BUILDFLAGS) -o $(abspath $(PACKAGES))/linux-$$a/ ./cmd/heat-minion ./cmd/trove-minion); \
	done
	$(GO) run ./cmd/internal/packages -version $(RELEASE) -arch '$(PACKAGE_ARCHES)' -programs $(PACKAGES) -out $(PACKAGES)/out $(ARGS)
	@ls -l $(PACKAGES)/out

# The packages under the tools of their formats and on booted Debian 12 machines, beside packages of stock Salt: installed, upgraded,
# removed, purged; those of other processors under an emulator. As root. PACKAGE_TESTS=TestDeb runs some.
PACKAGE_TESTS := .
packages-test:
	sh interop/install-tools.sh pkg/debian-packages.txt
	$(MAKE) --no-print-directory packages VERSION=0.1.0 PACKAGE_ARCHES='$(PACKAGE_ARCHES) riscv64'
	$(MAKE) --no-print-directory packages VERSION=0.2.0 PACKAGES=$(PACKAGES)/second PACKAGE_ARCHES=amd64 ARGS='-formats deb,rpm'
	$(MAKE) --no-print-directory container
	@set -e; env=$$(sh interop/fetch-salt.sh); eval "$$env"; \
	cd openstack && $(GO) test -count=1 -vet=off -timeout 40m -tags packages -run '$(PACKAGE_TESTS)' -v ./interop/packages

# The image localhost/brine, as docker load and podman load read it: bin/container/brine.tar. buildah needs no daemon, and no registry is asked, for it
# begins with nothing. docs/install.md says how it is run.
CONTAINER := $(BIN)/container
container:
	rm -rf $(CONTAINER)
	mkdir -p $(CONTAINER)
	cp pkg/container/Containerfile $(CONTAINER)
	@set -e; cd $(CONTAINER); umask 022; mkdir -p root/usr/bin root/etc/salt/master.d root/etc/salt/minion.d root/srv/salt root/srv/pillar \
		root/var/cache root/var/run root/var/log \
		state/cache state/run state/log state/tmp state/etc; mkdir -m 700 state/etc/pki; \
		printf 'root:x:0:0:root:/:/usr/bin/brine-minion\nsalt:x:10001:10001:salt:/var/cache/salt:/usr/bin/brine-master\n' >root/etc/passwd; \
		printf 'root:x:0:\nsalt:x:10001:\n' >root/etc/group
	cp pkg/container/master $(CONTAINER)/root/etc/salt/master
	GOOS=linux $(GO) build $(BUILDFLAGS) -o $(CONTAINER)/root/usr/bin/ ./cmd/brine-master ./cmd/brine-minion
	buildah --storage-driver vfs bud --isolation chroot --quiet -t localhost/brine:$(or $(RELEASE),latest) $(CONTAINER)
	buildah --storage-driver vfs push --quiet localhost/brine:$(or $(RELEASE),latest) docker-archive:$(CONTAINER)/brine.tar:localhost/brine:$(or $(RELEASE),latest)
	@ls -l $(CONTAINER)/brine.tar

# Everything of a release in bin/release/VERSION, signed: make release KEY=~/release.key on a commit with a tag, with PASSWORD_FILE= if that key
# has a password, or AGENT_KEY=~/.ssh/id_ed25519.pub in place of KEY. Without a tag, VERSION= makes a release for trying out. docs/release.md has the rest.
RELEASE_DIR := $(BIN)/release
release: VERSION := $(or $(VERSION),$(shell git describe --tags --exact-match --match 'v*' 2>/dev/null))
release:
	@test -n "$(VERSION)" || { echo "make release: the commit has no tag v1.2.3, and there is no VERSION="; exit 1; }
	rm -rf $(RELEASE_DIR)/programs $(RELEASE_DIR)/packages
	$(MAKE) --no-print-directory cross VERSION=$(VERSION) BIN=$(RELEASE_DIR)/programs
	$(MAKE) --no-print-directory packages VERSION=$(VERSION) PACKAGES=$(RELEASE_DIR)/packages
	$(GO) run ./cmd/internal/release -version $(VERSION) -programs $(RELEASE_DIR)/programs -packages $(RELEASE_DIR)/packages \
		-out $(RELEASE_DIR)/$(patsubst v%,%,$(VERSION)) $(if $(KEY),-key $(KEY)) $(if $(PASSWORD_FILE),-password-file $(PASSWORD_FILE)) \
		$(if $(AGENT_KEY),-agent-key $(AGENT_KEY))

# Two releases of the last commit, from two clones in directories of different names, with a key for the occasion: every byte is the same, and
# the minion that was built verifies them.
release-test:
	sh interop/install-tools.sh pkg/release-packages.txt
	BRINE_RELEASE=full $(GO) test -count=1 ./cmd/internal/release
	sh cmd/internal/release/twice.sh

# Every package that has tests against stock Salt or real servers; those that take longest come first.
INTEROP := $(shell grep -rl "^//go:build interop" --include="*_test.go" . | xargs -n 1 dirname | sort -u)
LONGEST := ./interop ./modules ./states
INTEROP := $(LONGEST) $(filter-out $(LONGEST),$(INTEROP))

vet:
	$(GO) vet ./...
	$(GO) vet -tags interop $(INTEROP)
	$(GO) vet -tags chaos ./interop

# The packages whose lines all fit: 100 columns of code, 120 of a comment.
SHORT_LINES := ./cmd/brine-minion ./cmd/brine-swarm ./cmd/internal/guards \
	./cmd/internal/coverage ./cmd/internal/localmaster ./cmd/internal/outside \
	./cmd/internal/paired ./cmd/internal/prose \
	./master ./master/announced ./master/audit ./master/cache ./master/client ./master/clones \
	./master/cluster ./master/eauth ./master/fileserver ./master/internal/... \
	./master/network ./master/orders ./master/pillar ./master/requests/... \
	./master/restapi/... ./master/runner/host ./master/runner/orchestrate \
	./master/runner/wheel ./master/sessions ./master/store ./master/store/sqlstore \
	./master/store/storetest ./master/subscribers ./master/targets ./master/tenants \
	./master/tools ./master/upkeep ./minion ./minion/check ./minion/program \
	./minion/standard

lint: vet
	@fmt=$$(gofmt -l .); if [ -n "$$fmt" ]; then echo "not formatted:"; echo "$$fmt"; exit 1; fi
	$(GO) run $(STATICCHECK) ./...
	$(GO) run ./cmd/internal/prose -long $(SHORT_LINES)

# Everything that needs no stock Salt. The race detector needs a C compiler; without one the tests run without it, and say so.
RACE := $(if $(shell command -v $(shell $(GO) env CC) 2>/dev/null),-race)
test: vet
	@test -n "$(RACE)" || echo "no C compiler: the race detector is off"
	CGO_ENABLED=$(if $(RACE),1,0) $(GO) test $(RACE) -vet=off -p 3 -timeout 20m ./...

# The core's tests three times without the race detector: what happens faster than under it, what one run leaves behind for the next, and
# what the kernel does to all threads of a seal's process, which needs a program without cgo.
# Those that take longest come first. make test-again COUNT=2 runs them twice.
COUNT ?= 3
test-again:
	$(GO) test -vet=off -count=$(COUNT) -p 2 -timeout 20m ./master ./master/restapi ./internal/confine ./protocol/... ./minion/... ./master/...

# What reads what others send, on a processor of 32 bits as armv7 is: a length may not fit into an int there. Every amd64 runs these.
test-32:
	GOARCH=386 $(GO) test -vet=off -p 2 -timeout 10m ./protocol/... ./master/requests/... ./internal/signed ./internal/python/... ./minion/journal ./minion/spool

# Real Salt of three lines against ours. The first run downloads Salt from the Python package index (needs python3 with venv).
# make interop SHARE=2/3 compares the last third of the cases of modules and states only, and everything else.
interop:
	@set -e; env=$$(sh interop/fetch-salt.sh); eval "$$env"; \
	BRINE_SHARE=$(SHARE) $(GO) test -count=1 -vet=off -timeout 60m -p 3 -parallel 6 -tags interop $(INTEROP)

# Stock's answers to the cases of modules and states, kept beside them, so that anybody replays them with Go alone: asks stock
# again, and marks what cannot be replayed on another machine. As root; look at the difference before you commit it. make answers ARGS=-missing
# asks only for what is not kept, as ARGS='-stock ^git/' does for the cases of a file.
answers:
	@set -e; env=$$(sh interop/fetch-salt.sh); eval "$$env"; \
	$(GO) test -count=1 -vet=off -timeout 60m -tags interop -run '^TestStock$$' ./modules -update $(ARGS); \
	$(GO) test -count=1 -vet=off -timeout 60m -tags interop -run '^TestStock(States|Trees)$$' ./states -update $(ARGS); \
	$(GO) test -count=1 -vet=off -tags interop -run '^TestStock(Filters|Trees)$$' ./states/render ./states/render/pillar -update $(ARGS); \
	$(GO) test -count=1 -vet=off -tags interop -run '^Test(Redis|MySQL|Postgres|SQLite)$$' ./modules/returners -update $(ARGS); \
	GO=$(GO) sh interop/oracle/elsewhere.sh modules states states/render states/render/pillar modules/returners

# What openstack/ has of tests that need neither root nor OpenStack: Go's and Python's. It is a Go module of its own.
test-openstack:
	cd openstack && $(GO) vet ./... && $(GO) vet -tags openstack ./... && $(GO) vet -tags packages ./interop/packages && \
		$(GO) vet -tags openstack,trove ./interop/trove
	cd openstack && CGO_ENABLED=$(if $(RACE),1,0) $(GO) test $(RACE) -vet=off -timeout 10m ./...
	@if ls openstack/python/tests/test_*.py >/dev/null 2>&1; then \
		cd openstack/python && for s in tests trove_tests sahara_tests; do $(PYTHON) -m unittest discover -b -s $$s -t . || exit 1; done; \
	fi

# Real OpenStack services of Debian 12 against ours, on loopback, as root. The first run installs the packages.
# make openstack SHARE=2/3 runs the last third of the tests with a real Heat only, and everything else.
PYTHON := $(firstword $(wildcard /usr/bin/python3) python3)
OPENSTACK := $(GO) test -count=1 -vet=off -timeout 35m -p 2 -parallel 6 -tags openstack
openstack:
	sh interop/install-tools.sh openstack/lab/debian-packages.txt
	@set -e; env=$$(sh interop/fetch-salt.sh); eval "$$env"; cd openstack; \
	$(OPENSTACK) $$($(GO) list -tags openstack ./... | grep -v '/openstack/interop$$'); \
	sh interop/heat.sh $(SHARE)
	@$(MAKE) --no-print-directory openstack-python

# The plugin for Heat and the driver for Sahara with the classes of Debian's and of the newest ones, the parts for Trove with Debian's, and
# the sidecar with the real programs.
openstack-python: build
	$(GO) build -o $(BIN)/ ./cmd/brine-swarm
	@set -e; cd openstack/python; export BRINE_OPENSTACK=1 BRINE_MASTER_PROGRAM=$(abspath $(BIN))/brine-master \
		BRINE_MINION_PROGRAM=$(abspath $(BIN))/brine-minion BRINE_SWARM_PROGRAM=$(abspath $(BIN))/brine-swarm; \
		for s in tests trove_tests sahara_tests; do $(PYTHON) -m unittest discover -b -s $$s -t .; done
	@set -e; newest=$$(sh openstack/python/tests/fetch-heat.sh); cd openstack/python; \
	"$$newest" -m unittest discover -b -s tests -t .
	@set -e; newest=$$(sh openstack/python/sahara_tests/fetch-sahara.sh); cd openstack/python; \
	"$$newest" -m unittest discover -b -s sahara_tests -t .

# The table of costs over five minutes of idling, 500 servers through one engine, the plugin in the newest Heat, all templates beside the
# original agents, a machine with cloud-init, and a file of 1 GiB to and from an instance of Sahara.
openstack-scale:
	sh interop/install-tools.sh openstack/lab/debian-packages.txt
	@set -e; env=$$(sh interop/fetch-salt.sh); eval "$$env"; \
	cd openstack && BRINE_OPENSTACK=full $(GO) test -count=1 -timeout 90m -v -tags openstack -run 'TestCost|TestHeatH9|TestHeatNewest|TestModeABeside|TestHeatTenant' ./interop
	$(MAKE) --no-print-directory build
	$(GO) build -o $(BIN)/ ./cmd/brine-swarm
	cd openstack/python; BRINE_SAHARA_MIB=1024 BRINE_OPENSTACK=1 BRINE_MASTER_PROGRAM=$(abspath $(BIN))/brine-master \
		BRINE_MINION_PROGRAM=$(abspath $(BIN))/brine-minion BRINE_SWARM_PROGRAM=$(abspath $(BIN))/brine-swarm \
		$(PYTHON) -m unittest -b sahara_tests.test_real.Large

# A real Trove whose guests are minions, Trove's own managers beside ours, and its parts with the classes of the newest Trove. Prints the table of
# costs and the counts of calls.
openstack-trove:
	sh interop/install-tools.sh openstack/lab/debian-packages.txt
	sh interop/install-tools.sh openstack/interop/trove/debian-packages.txt
	cd openstack && $(OPENSTACK),trove -v ./interop/trove
	cd openstack && $(OPENSTACK) -v -run '^TestTroveT[12]|^TestReplayCounts$$' ./trove
	@set -e; newest=$$(sh openstack/python/trove_tests/fetch-trove.sh); \
	(cd openstack && BRINE_NEWEST_TROVE="$$newest" $(OPENSTACK),trove -run '^TestTroveT1Newest$$' ./trove); \
	cd openstack/python && "$$newest" -m unittest discover -b -s trove_tests -t .

# A real Heat with a stack of three servers and an ordered deployment, shown at work and cleaned up. Debian 12, root.
demo-heat:
	sh interop/install-tools.sh openstack/lab/debian-packages.txt
	cd openstack && $(GO) run ./lab/cmd/demo-heat $(ARGS)

# SaltGUI's pages in a headless Chromium against our master: make saltgui SALTGUI=directory, with a copy of SaltGUI's repository, which
# no package index has. Needs chromium and chromedriver (Debian: chromium, chromium-driver).
saltgui:
	@set -e; env=$$(sh interop/fetch-salt.sh); eval "$$env"; \
	SALTGUI="$(abspath $(SALTGUI))" $(GO) test -count=1 -timeout 20m -tags interop,saltgui -run TestSaltGUI ./interop

# Ours beside stock Salt: memory, start, round trips, file transfer, sizes, and how costs grow with the work. TestGrowth has a process of its own,
# because a program that a large process starts seems to have had its memory.
bench:
	@set -e; env=$$(sh interop/fetch-salt.sh); eval "$$env"; \
	$(GO) test -count=1 -timeout 60m -tags bench -run TestGrowth -v ./interop; \
	$(GO) test -count=1 -timeout 90m -tags bench -run 'TestMeasure|TestSwarm|TestCommands|TestListeners' -v ./interop
	$(GO) test -count=1 -timeout 60m -tags bench -run 'TestCapacity|TestTenThousandSubscribers' -v ./master

# Whole commands of the working tree beside those of an old commit, in alternating pairs: a table of processor time and wall time, and what became
# worse by more than 5 %. make paired COMMIT=main ARGS='-run files -n 10' takes some commands, of 10 pairs each. Ten minutes for all, 20 at most.
paired:
	@test -n "$(COMMIT)" || { echo "make paired: it needs COMMIT="; exit 1; }
	$(GO) run ./cmd/internal/paired -commit $(COMMIT) $(ARGS)

# N minions over 2 to 12 masters with one database, with a table of what they cost and its bars. An hour and a quarter at most.
# make scale N=30000 DB=mariadb takes MariaDB in place of PostgreSQL.
N ?= 10000
scale:
	BRINE_SCALE=$(N) BRINE_SCALE_DB=$(DB) $(GO) test -count=1 -timeout 75m -tags bench -run TestScale -v ./interop

# Five masters over one database, 500 minions, whole ones of ours and stock's beside them, and 10,000 jobs while masters are killed and
# replaced and the database restarts; with PostgreSQL and with MariaDB. And 9,000 minions under three masters, none of which may be missing from
# an answer without a word.
soak:
	@set -e; env=$$(sh interop/fetch-salt.sh); eval "$$env"; \
	BRINE_HA=full $(GO) test -count=1 -timeout 90m -tags interop -v ./interop/ha
	BRINE_HA=full $(GO) test -count=1 -timeout 30m -tags interop -v -run TestNobodyIsMissed ./interop

# Faults on purpose, with one table for each part: make chaos PART=kills, links, host or strangers, of at most 25 minutes each. Without a part, a
# short form of all, of at most 90 seconds.
chaos:
	sh interop/install-tools.sh
	$(if $(filter host,$(PART)),sh interop/install-tools.sh interop/vm/debian-packages.txt)
	@set -e; env=$$(sh interop/fetch-salt.sh); eval "$$env"; \
	BRINE_CHAOS=$(if $(PART),full,) $(GO) test -count=1 -timeout $(if $(PART),28m,5m) -parallel $(if $(PART),8,4) -tags chaos -v -run '(?i)^TestChaos$(PART)' ./interop

# What the minion may cost: sizes of the programs, memory and wake-ups of an idle minion, time to connect; and the memory of a master.
# Without the race detector, on Linux. And 1,000 minions that follow a master to its new key, and lists of 100,000 keys.
budgets:
	$(GO) test -count=1 -timeout 10m -tags budgets -run 'TestSizes|TestSmallMaster|TestUnlistedCode|TestIdle|TestSmallMemory|TestFewDescriptors' -v ./cmd/brine-minion
	$(GO) test -count=1 -timeout 10m -run 'TestMemoryBudget|TestMinionsFollow' -v ./master
	$(GO) test -count=1 -timeout 10m -tags budgets -run TestBudgetOfLists -v ./master/keys
	$(GO) test -count=1 -timeout 10m -tags budgets -run TestSize -v ./cmd/brine-update
	cd openstack && $(GO) test -count=1 -timeout 10m -tags budgets -run TestBudgets -v ./cmd/heat-minion ./cmd/trove-minion

# Sizes of stripped static programs: everything, the smallest brine-minion, and an agent of one's own.
CORE_TAGS := custom,modules.sys,modules.test,modules.saltutil
sizes:
	@mkdir -p $(BIN)
	@set -e; one() { \
		(cd $$2 && $(GO) build $(BUILDFLAGS) $${3:+-tags "$$3"} -o $(abspath $(BIN))/size.tmp $$4); \
		printf '%-28s %6.2f MB\n' "$$1" $$(wc -c <$(BIN)/size.tmp | awk '{print $$1 / 1048576}'); rm -f $(BIN)/size.tmp; \
	}; \
	one "brine-minion, full" . "" ./cmd/brine-minion; \
	one "brine-minion, core" . "$(CORE_TAGS)" ./cmd/brine-minion; \
	one "brine-master" . "" ./cmd/brine-master; \
	one "brine-master, small" . "custom" ./cmd/brine-master; \
	one "examples/tiny-agent" examples/tiny-agent "" .

# A million made-up requests at sealed minions, as root: strace shows that nothing was started or changed that the seals do not name. About an hour.
seal-proof:
	BRINE_SEAL_PROOF=1000000 CGO_ENABLED=0 $(GO) test -count=1 -timeout 3h -run TestSealProof -v ./minion/program

# A million random targets, each published as the rule saw it (T23). About two minutes.
rule-proof:
	BRINE_RULE_PROOF=1000000 $(GO) test -count=1 -timeout 30m -run TestT23RandomTargets -v ./master/requests

# Removes each guard that is marked in the code, by itself, and fails when a test that its mark names does not notice; docs/security-flaws.md
# is the list. ARGS='-run CVE-2016-1866' takes some, ARGS='-since main' those that changed; about five minutes for all.
guards:
	nice $(GO) run ./cmd/internal/guards $(ARGS)

# docs/compatibility.md from stock's inventory and our programs, and what follows from internal/conf/options.yaml: the Go tables of options,
# their pages, and pkg/etc.
compat: build
	$(GO) run ./cmd/internal/compat

# How much of modules/... and states/... the tests cover with Go alone, by package, without Python: it fails if all packages together are below
# COVERED, or one is below 50 % without a reason (mayBeLower in cmd/internal/coverage). As root, since cases that change the host count as well.
# make coverage ARGS='-profiles DIRECTORY' keeps the profiles, with -count -missing modules/file as well it lists what they miss of a package.
# It counts 79.9 % now.
COVERED := 78
coverage:
	$(GO) run ./cmd/internal/coverage -least $(COVERED) $(ARGS)

# The imports of modules/all, states/all and modules/returners/all, from the packages that are there, and the compressed documentation of functions
# from each docs.txt.
shims:
	$(GO) run ./cmd/internal/shims

# An agent from a list of modules, and what it weighs: make agent NAME=web-minion MODULES="sys test cmd openstack/trove". ARGS=-each prints what
# each module adds, ARGS=-print its main.go.
agent:
	@$(GO) run ./cmd/internal/agent -name "$(NAME)" -dir $(BIN) $(if $(TAGS),-tags $(TAGS)) $(ARGS) $(MODULES)

# Begins a module that stock has and ours does not, with the functions that it declares: make new-module NAME=modules/rvm, or NAME=states/rvm.
new-module:
	@set -e; env=$$(sh interop/fetch-salt.sh); eval "$$env"; \
	$(GO) run ./cmd/internal/shims -new $(NAME) -salt "$$(echo $$BRINE_SALT_3007/lib/python3*/site-packages/salt)"

# How the core is written: density of comments, one-word names, long lines. make prose ARGS='-sample 40 -seed 1 ./states' prints comments,
# ARGS=./modules/... counts other packages.
prose:
	@$(GO) run ./cmd/internal/prose $(or $(ARGS),./protocol/... ./minion/... ./master/... ./states ./states/render/...)

# Every fuzz target for FUZZTIME each. One that makes fewer than FUZZLEAST executions in it goes on for FUZZMORE, once. A target that has not made them
# then, or finds something, fails. Interesting inputs are not minimised, which can take a target's whole time.
# Before 1.27 Go sometimes reports the end of the time as a failure (golang.org/issue/75804): if no failing input is named, it is not counted.
FUZZLEAST ?= 10000
FUZZMORE  ?= 50s
# The directories of the modules that have targets.
FUZZMODULES := . openstack
fuzz-short:
	@set -e; out=$$(mktemp); trap 'rm -f "$$out"' EXIT; \
	for dir in $$(for m in $(FUZZMODULES); do (cd $$m && $(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./...); done); do \
		for f in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go 2>/dev/null | sed 's/^func //' | sort -u); do \
			echo "== $${dir#$(CURDIR)/} $$f"; n=0; \
			for time in $(FUZZTIME) $(FUZZMORE); do \
				[ "$$n" -lt $(FUZZLEAST) ] || break; \
				(cd $$dir && $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $$time -fuzzminimizetime 1x .) >"$$out" 2>&1 || \
					{ grep -q '^    context deadline exceeded$$' "$$out" && ! grep -q 'Failing input\|panic' "$$out"; } || { cat "$$out"; exit 1; }; \
				made=$$(sed -n 's/.*execs: \([0-9]*\).*/\1/p' "$$out" | tail -n 1); \
				n=$$((n + $${made:-0})); \
			done; \
			echo "   $$n executions"; \
			[ "$$n" -ge $(FUZZLEAST) ] || { echo "fewer than $(FUZZLEAST)"; exit 1; }; \
		done; \
	done

clean:
	rm -rf $(BIN)
