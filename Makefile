# Each target installs the packages that it needs, and calls cmake or a script of tools/.

KUBECTL ?= kubectl
IMAGE   ?= moonloop:latest
ARGS    ?=
T        =

MAKEFLAGS += --no-print-directory
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc)

.DEFAULT_GOAL := help
.PHONY: help deps build asan hostlua demo run test distros faults attacks stress mutants e2e conformance conformance-suite controller-runtime operators lint bench fuzz kinds yaml-table cron-instants regex-matches script-api house deploy-manifests install uninstall deploy deploy-scripts undeploy docker-build format clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install the Debian packages for building, testing and linting (once)
	@tools/deps.sh build test lint

build: ## build build/release/moonloop
	@tools/deps.sh build
	@cmake --preset release >/dev/null
	@cmake --build --preset release

asan:
	@tools/deps.sh build test
	@cmake --preset asan >/dev/null
	@cmake --build --preset asan

hostlua: build
	@cmake --build --preset release --target hostlua

demo: build ## run a cluster on this machine: an At becomes a pod that prints YAY, and the script is edited
	@tools/demo.sh

run: build ## run the operator from the checkout against your kubeconfig
	build/release/moonloop run --scripts reconcilers/ --allow-http https://accounts.example.com --log-format text $(ARGS)

ifeq ($(T),)
test: asan ## run the tests that need no cluster, under ASan and UBSan (T=circuit for a part, T=F23, T=cluster/spec/apiserver/quota_spec.lua)
	@tools/test.sh $(ARGS)
else
test:
	@tools/deps.sh build test
	@tools/test-part.sh $(T)
endif

distros: ## run the README's commands on a fresh machine: Debian 12 in a root file system of its own (needs root; ARGS="bookworm trixie")
	@tools/distros.sh $(ARGS)

faults: asan ## run the fault bench: every row of the fault matrix, with the number of tries (ARGS="F11 F12" FAULT_SEEDS=1000 FAULT_SEED=17)
	@tools/faults.sh $(ARGS)

attacks: ## run the hostile programs of spec/attacks, in the release and the sanitizer build (ARGS="gas/ forged" BUILDS=asan)
	@tools/deps.sh build test
	@tools/attacks.sh $(ARGS)

stress: ## run the script layer with a full collection at every new object, under ASan
	@tools/deps.sh build test
	@cmake --preset stress >/dev/null
	@cmake --build --preset stress
	@tools/stress.sh

mutants: ## put each bug of spec/mutants into a copy of the checkout, and see that the suite detects it (ARGS="half-a-list token-read-once")
	@tools/deps.sh build test
	@tools/mutants.sh $(ARGS)

e2e: asan hostlua ## run spec/e2e on a control plane built for it and on the embedded server, or on $KUBECONFIG
	@tools/deps.sh e2e kubernetes
	@MOONLOOP=$(CURDIR)/build/asan/moonloop tools/e2e.sh $(ARGS)

conformance: hostlua ## send a real control plane and the embedded server the same requests, and compare the answers (ARGS="watch/ sessions/at")
	@tools/deps.sh e2e
	@cluster/spec/conformance/run.sh $(ARGS)

conformance-suite: build ## run Kubernetes' own tests against moonloop dev (ARGS=fast, or parts of names)
	@tools/deps.sh lua kubernetes
	@cluster/spec/kubernetes/run.sh $(ARGS)

controller-runtime: build ## run controller-runtime's own tests against moonloop dev --controllers none (ARGS="client cache")
	@tools/deps.sh lua
	@cluster/spec/controller-runtime/run.sh $(ARGS)

operators: build ## deploy operators that others made to moonloop dev, and check that they work (ARGS=prometheus-operator)
	@tools/deps.sh e2e
	@cluster/spec/operators/run.sh $(ARGS)

lint: ## run clang-format, cppcheck, luacheck, shellcheck, and the checks of layers and of the script API
	@tools/deps.sh build test lint
	@tools/lint.sh

script-api: ## write the stubs, tables and name lists of the script API from lua/script_api.lua
	@tools/deps.sh lua
	@lua5.4 tools/script-api.lua --write

house: build ## print the figures of the sources: size, C files that need each other, exports with one user (ARGS=--check)
	@tools/deps.sh lua
	@lua5.4 tools/house.lua $(ARGS)

deploy-manifests: ## write the roles of deploy/ from the scripts and flags that need them
	@tools/deps.sh build test
	@tools/deploy-manifests.sh

bench: build ## measure the figures of bench/RESULTS.md again
	@tools/deps.sh test
	@bench/run.sh $(ARGS)

fuzz: ## run each fuzz target (SECONDS_EACH=600, ARGS="NAME…")
	@tools/deps.sh build fuzz
	@tools/fuzz.sh $(ARGS)

kinds: ## write cluster/kinds from the Go modules of Kubernetes (needs Go)
	@tools/kinds/kinds.sh

yaml-table: ## write the answers of kubectl's YAML reader into spec/unit/codec/yaml.txt (needs Go)
	@cd tools/yaml && CGO_ENABLED=0 GOTOOLCHAIN=local go run -trimpath -buildvcs=false . ../../spec/unit/codec/yaml.txt

cron-instants: ## write the instants of Kubernetes' schedule reader and of Go's zones into cron_instants.txt and zone_instants.txt (needs Go)
	@cd tools/cron && CGO_ENABLED=0 GOTOOLCHAIN=local go run -trimpath -buildvcs=false . ../../cluster/spec/apiserver/cron_instants.txt \
		../../spec/lua/zone_instants.txt

regex-matches: ## write the answers of Go's regexp into spec/lua/regex_matches.tsv (needs Go)
	@cd tools/regex && CGO_ENABLED=0 GOTOOLCHAIN=local go run -trimpath -buildvcs=false . ../../spec/lua/regex_matches.tsv

install: ## install the CRDs into the cluster
	$(KUBECTL) apply -f crds

uninstall: ## remove the CRDs and all objects of their kinds
	$(KUBECTL) delete -f crds

deploy: ## run the image that you built and pushed in the cluster (IMAGE=registry.example/moonloop:0.1); the scripts there stay
	@KUBECTL="$(KUBECTL)" tools/image.sh deploy "$(IMAGE)"

deploy-scripts: ## replace the scripts in the cluster with reconcilers/
	$(KUBECTL) apply -n moonloop-system -k reconcilers

undeploy: ## remove the operator from the cluster
	$(KUBECTL) delete -k deploy

docker-build: ## build the image (docker, podman, or buildah without an engine)
	@tools/image.sh build "$(IMAGE)"

format: ## format the C sources with clang-format
	@tools/deps.sh lint
	@git ls-files '*.c' '*.cc' '*.h' | xargs clang-format -i

clean: ## remove build/
	rm -rf build
