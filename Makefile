# Everything a developer or CI types. `make help` lists it; CONTRIBUTING.md gives each suite its minutes.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export UV_SYSTEM_CERTS := 1

# Tests share 2 cores with a real API server: more workers than cores only makes them wait for it.
WORKERS ?= 2
PYTEST ?= pytest -n $(WORKERS) --dist worksteal
SOAK_SECONDS ?= 3600
FUZZ_COUNT ?= 100000
# `make lock LOCK=` keeps the pins that are there and adds only what is missing.
LOCK ?= --upgrade

.PHONY: help setup demo test full lint unit integration e2e conformance bench profile fuzz soak chaos generate image docs clean lock drift coverage

help:  ## Show this list.
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

setup:  ## Make .venv and the Kubernetes programs; quick when nothing changed.
	@tools/setup.sh

demo: setup  ## A real Kubernetes on this machine with the operator on it, and a first RayCluster.
	@tools/demo.sh

test: setup lint drift docs  ## Everything CI runs.
	kuberay-op local setup
	@# Two workers and several API servers share two cores; what fails then gets one more chance, alone.
	$(PYTEST) -m "not slow and not real_node" || \
	  { echo "once more, alone, what failed:"; pytest --last-failed --last-failed-no-failures=none -m "not slow and not real_node"; }

coverage: setup  ## The tests again, with branch coverage (slower: every line is traced).
	kuberay-op local setup
	$(PYTEST) -m "not slow and not real_node" --cov --cov-report=term:skip-covered

full: test  ## `make test`, then the long forms of its tests.
	$(PYTEST) -m "slow and not real_node" --timeout 3600
	$(MAKE) fuzz soak SOAK_SECONDS=600

lint: setup  ## Format, lint, types and layers; changes nothing.
	ruff format --check .
	ruff check .
	mypy
	lint-imports --verbose

unit: setup  ## Tests that need no control plane.
	$(PYTEST) -m "not slow and not apiserver and not real_node"

integration: setup  ## Tests on a real API server.
	kuberay-op local setup
	$(PYTEST) -m "apiserver and not slow and not real_node"

bench: setup  ## Measure; writes bench/results and the tables in docs/benchmarks.md.
	kuberay-op local setup
	kuberay-op bench all

profile: setup  ## Where the operator spends time and memory while 200 RayClusters are made.
	kuberay-op local setup
	kuberay-op bench profile
	kuberay-op bench profile --what memory

fuzz: setup  ## 100,000 mutated manifests through validate, 1,000 of them against a real API server.
	kuberay-op local setup
	FUZZ_COUNT=$(FUZZ_COUNT) pytest tests/fuzz -m slow --timeout 7200

soak: setup  ## The engine behind a faulty network for an hour (SOAK_SECONDS); jobs while the operator is killed.
	kuberay-op local setup
	SOAK_SECONDS=$(SOAK_SECONDS) pytest tests/apiserver/engine -m slow --timeout 7200
	pytest tests/apiserver/rayjob/test_killed.py -m slow --timeout 3600

generate: setup  ## Write everything that is made from our types: CRDs, schemas, reference pages.
	@tools/generate.sh

drift: setup  ## Fail when `make generate` would change something.
	@tools/drift.sh

docs: setup  ## Build the documentation; a warning is an error.
	sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

lock:  ## Pin third-party packages anew, by version and hash.
	uv pip compile -q pyproject.toml $(wildcard */pyproject.toml */*/pyproject.toml) --group dev $(LOCK) \
	  --python-version 3.11 --universal --generate-hashes --no-emit-index-url --no-annotate \
	  --no-emit-package kuberay-op -o requirements.lock

e2e: setup  ## Real Ray on a real node of this machine: as root; installs Debian packages, builds images.
	kuberay-op local setup --node real
	pytest -m real_node --timeout 1800 local/tests/real tests/e2e

image: setup  ## Build the images of the operator and the submitter: as root, without Docker.
	kuberay-op local build operator
	kuberay-op local build submitter

conformance: setup  ## The reference's own suites, unmodified, against this operator on a real node: as root; hours.
	kuberay-op local setup --node real
	tools/conformance.sh ours

chaos:  ## Not here yet: it comes with the next version.
	@echo "make $@: not available yet; it needs a part of the operator that this version does not have." >&2
	@exit 2

clean:  ## Remove what building and testing left in this folder (caches outside stay).
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage* docs/_build
	find . -name __pycache__ -prune -exec rm -rf {} +
