.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3.11
BIN := .venv/bin
CNS := $(BIN)/cns
UV_VERSION := 0.13.8
AUDIT_VERSION := 2.10.1
# `profile=paper` lays paper.yaml over params.yaml. Of its chain are left out what only the mini world has, and what no scale changes.
profile :=
OVERLAY = $(if $(profile),--overlay $(profile).yaml)
STEPS := world inversion sliders generation filtering evaluation accuracy ranking axes failure bisection line calibration photos report plan labels oodcv directions ablation corruptions synthetic denoiser controlshift scenarios segmentation
# These need no hub, and shall not ask one; the paper's scale does.
repro benchmark smoke card test unit slurm matrix book kill soak mutants: export HF_HUB_OFFLINE := 1
# DVC's stages call `cns`.
export PATH := $(CURDIR)/$(BIN):$(PATH)

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-9s %s\n", $$1, $$2}'

env: .venv/.done ## create .venv with the exact versions of requirements.lock

.venv/.done: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --compile-bytecode --requirement requirements.lock
	VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --no-deps --editable .
	touch $@

data: env ## restore data and artifacts from the DVC store
	$(BIN)/dvc pull --quiet || { $(BIN)/dvc pull; exit 1; }  # once more, with the names of the files

repro: data ## restore the heavy steps, run every analysis anew, compare with the committed results
	$(CNS) reproduce

smoke: data ## run the whole chain from scratch at smoke size into build/smoke
	rm -rf build/smoke
	LOKY_MAX_CPU_COUNT=1 $(CNS) run --overlay smoke.yaml --together $(STEPS)

card: build/card.yaml data ## run the chain of make smoke on a GPU into build/card (continues if killed)
	LOKY_MAX_CPU_COUNT=1 $(CNS) run --overlay $< --together $(STEPS)

build/card.yaml: smoke.yaml
	mkdir -p $(@D)
	sed 's|^  out: "build/smoke"$$|  out: "build/card"\n  device: "cuda"|' $< > $@

plan: env ## print what the parameters cost here: units, UNet passes, hours, disk, memory (profile=paper for the paper's scale, workers="8 64" for a cluster)
	$(CNS) plan $(OVERLAY) $(if $(workers),--workers $(workers))

chain: env ## run every step of a profile without DVC: make chain profile=paper (continues if killed)
	$(CNS) run $(OVERLAY) $(if $(filter paper,$(profile)),$(filter-out world calibration photos oodcv synthetic scenarios segmentation,$(STEPS)),$(STEPS))

gate: env ## compare the classifiers of paper.yaml on ImageNet's validation set with their published accuracies
	$(CNS) gate

benchmark: data ## make every slider, image and table from nothing in build/benchmark (hours on two cores; continues if killed)
	$(CNS) run --overlay benchmark.yaml $(STEPS)

official: data ## rebuild the figures of the paper from the authors' answers: make official results=PATH [images=PATH] [without=NAMES]
	$(CNS) official $(results) $(if $(images),--images $(images)) $(if $(without),--without $(without))

export: data ## write images and answers in the authors' layout into build/export
	$(CNS) export build/export

test: data ## run all tests; the first of them is the whole chain at smoke size
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

unit: data ## run the tests that are not marked slow
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

# The tests of SLURM skip without it, and compare with what `make smoke` left.
slurm: data ## run work over a SLURM of this machine, and install it before (Debian's slurm-wlm and munge; needs root)
	@[ "$$(id -u)" = 0 ] && [ -n "$$(command -v apt-get)" ] || { echo "make slurm needs root and Debian's apt-get"; exit 1; }
	[ -n "$$(command -v slurmctld)" -a -n "$$(command -v munged)" ] || { apt-get update && apt-get install --yes --no-install-recommends slurm-wlm munge; }
	[ -e build/smoke/metrics/evaluation.json ] || $(MAKE) smoke
	$(BIN)/python -m pytest tests/whole/test_slurm.py

matrix: data ## reproduce and test under several instruction sets and numbers of threads (an hour; all=--all for every pair)
	$(CNS) matrix $(all)

kill: data ## kill every step of the chain of make smoke, and compare with an undisturbed run, byte by byte (half an hour)
	rm -rf build/kill
	LOKY_MAX_CPU_COUNT=1 $(CNS) kill --overlay smoke.yaml $(STEPS)

soak: data ## draw pictures for an hour in one process, and watch its memory and open files
	$(BIN)/python benchmarks/soak.py

lint: env ## check style of code and notebooks, types, and code for what opens doors
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive cnslib
	$(BIN)/nbstripout --verify --keep-id notebooks/*.ipynb notebooks/world/*.ipynb notebooks/course/*.ipynb

audit: env ## look the locked packages up in the database of known vulnerabilities (needs the network)
	$(BIN)/uv tool run pip-audit==$(AUDIT_VERSION) --requirement requirements.lock --no-deps --disable-pip --strict

mutants: data ## change statistics, filter, sliders, generation and report a little; tests must notice (hours; of="cnslib.stats.failure*" for some)
	mkdir -p mutants && ln -sfn ../data mutants/data
	LOKY_MAX_CPU_COUNT=1 $(BIN)/mutmut run $(of)  # a process of joblib's would go on with the mutant that it was started for
	$(BIN)/mutmut results

book: data ## set all notebooks and a gallery of the figures as a site, build/book/html/index.html; runs chapters that have not been run
	$(CNS) book

lab: data ## open JupyterLab on the notebooks
	$(CNS) lab

# A training gives other weights on another machine anyway; with all instructions of this one it takes half the time.
world: export MKL_CBWR := AUTO
world: export ONEDNN_MAX_CPU_ISA := DEFAULT
world: env ## rebuild the base models (hours on two cores, minutes on a GPU; continues if killed)
	[ -e data/fashion-mnist ] || $(MAKE) data  # DVC would not pull over the models that a killed run has left
	$(BIN)/python -m cnslib.world.install
	$(CNS) run --params world.yaml autoencoder diffusion redrawing contrastive selfsupervised oracle fidelity zoo augmentation pretraining

lock: env ## compile requirements.lock from requirements.in
	$(BIN)/uv pip compile --quiet --python-version 3.11.2 --no-annotate --custom-compile-command "make lock" requirements.in --output-file requirements.lock

.PHONY: help env data repro book smoke card plan chain benchmark test unit slurm matrix kill soak mutants audit lint lab world lock official export gate
