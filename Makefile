# A thin front: each target is one command of cmake, busted or a script in tools/.

KUBECTL ?= kubectl
IMAGE   ?= moonloop:latest
ARGS    ?=
T       ?=

MAKEFLAGS += --no-print-directory

.DEFAULT_GOAL := help
.PHONY: help deps build asan hostlua demo run test distros faults attacks stress mutants e2e conformance conformance-suite lint bench fuzz kinds yaml-table cron-instants script-api house deploy-manifests install uninstall deploy deploy-scripts undeploy docker-build format clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install what building, testing and linting need (Debian packages, once)
	@tools/deps.sh build test lint

build: ## build build/release/moonloop
	@tools/deps.sh build
	@cmake --preset release >/dev/null
	@cmake --build --preset release

asan:
	@tools/deps.sh build test
	@cmake --preset asan >/dev/null
	@cmake --build --preset asan

hostlua:
	@cmake --build --preset release --target hostlua

demo: build ## a cluster on this machine: an At becomes a pod that says YAY, and the script is edited
	@tools/demo.sh

run: build ## run the operator from the checkout against your kubeconfig
	build/release/moonloop run --scripts reconcilers/ --allow-http https://accounts.example.com --log-format text $(ARGS)

ifeq ($(T),)
test: asan ## C units, specs, reconciler tests and the fault bench under ASan and UBSan; no cluster needed (T=F23 for a part)
	@tools/test.sh $(ARGS)
else
test:
	@tools/deps.sh build test
	@tools/test-part.sh $(T)
endif

distros: ## the README's commands on a fresh machine: Debian 12 in a root file system of its own (needs root; ARGS="bookworm trixie")
	@tools/distros.sh $(ARGS)

faults: asan ## the fault bench: every row of the fault matrix, and how often it was tried (ARGS="F11 F12" FAULT_SEEDS=1000 FAULT_SEED=17)
	@tools/faults.sh $(ARGS)

attacks: ## the hostile programs of spec/attacks, in the release and the sanitizer build (ARGS="gas/ forged" BUILDS=asan)
	@tools/deps.sh build test
	@tools/attacks.sh $(ARGS)

stress: ## what scripts do, with a collection at every new object of theirs, under ASan
	@tools/deps.sh build test
	@cmake --preset stress >/dev/null
	@cmake --build --preset stress
	@tools/stress.sh

mutants: ## seed each bug of spec/mutants into a copy of the checkout: does the suite see it? (ARGS="half-a-list token-read-once")
	@tools/deps.sh build test
	@tools/mutants.sh $(ARGS)

e2e: asan build hostlua ## spec/e2e on a control plane built for it and on the embedded server, or on $KUBECONFIG
	@tools/deps.sh e2e
	@MOONLOOP=$(CURDIR)/build/asan/moonloop tools/e2e.sh $(ARGS)

conformance: build hostlua ## ask a real control plane and the embedded server the same, and compare (ARGS="watch/ sessions/at")
	@spec/conformance/run.sh $(ARGS)

conformance-suite: build ## Kubernetes' own tests against moonloop dev (ARGS=fast, or parts of names)
	@spec/kubernetes/run.sh $(ARGS)

lint: ## clang-format, cppcheck, luacheck, layers, the script API, shell
	@tools/deps.sh build test lint
	@tools/lint.sh

script-api: ## write the stubs, tables and name lists of the script API out of lua/script_api.lua
	@tools/deps.sh lua
	@lua5.4 tools/script-api.lua --write

house: build ## print the figures of the sources: size, C files that need each other, exports with one user (ARGS=--check)
	@tools/deps.sh lua
	@lua5.4 tools/house.lua $(ARGS)

deploy-manifests: ## write the roles of deploy/ out of the script that it carries
	@tools/deps.sh build test
	@tools/deploy-manifests.sh

bench: build ## print the figures of bench/RESULTS.md, measured now
	@tools/deps.sh test
	@bench/run.sh $(ARGS)

fuzz: ## run each fuzz target (SECONDS_EACH=600, ARGS="NAME…")
	@tools/deps.sh build fuzz
	@tools/fuzz.sh $(ARGS)

kinds: ## write lua/cluster/apiserver/facts anew from the Go modules of Kubernetes (needs Go)
	@tools/kinds/kinds.sh

yaml-table: ## ask kubectl's reader of YAML for the answers in spec/unit/codec/yaml.txt (needs Go)
	@cd tools/yaml && CGO_ENABLED=0 GOTOOLCHAIN=local go run -trimpath -buildvcs=false . ../../spec/unit/codec/yaml.txt

cron-instants: ## ask Kubernetes' reader of schedules for the instants in spec/apiserver/cron_instants.txt (needs Go)
	@cd tools/cron && CGO_ENABLED=0 GOTOOLCHAIN=local go run -trimpath -buildvcs=false . ../../spec/apiserver/cron_instants.txt

install: ## install the CRDs into the cluster
	$(KUBECTL) apply -f crds

uninstall: ## remove the CRDs, and every object of theirs
	$(KUBECTL) delete -f crds

deploy: ## run an image in the cluster, the one that was built and pushed (IMAGE=registry.example/moonloop:0.1); scripts stay as they are
	@KUBECTL="$(KUBECTL)" tools/image.sh deploy "$(IMAGE)"

deploy-scripts: ## put the scripts of reconcilers/ into the cluster, in place of those that run there
	$(KUBECTL) apply -n moonloop-system -k reconcilers

undeploy: ## take it out again
	$(KUBECTL) delete -k deploy

docker-build: ## build the image (docker, podman, or buildah without an engine)
	@tools/image.sh build "$(IMAGE)"

format: ## rewrite the C sources in the house's form
	@tools/deps.sh lint
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean: ## remove build/
	rm -rf build
