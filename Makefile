.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3.11
BIN := .venv/bin
CNS := $(BIN)/cns
UV_VERSION := 0.13.8
# `profile=NAME` lays NAME.yaml over params.yaml. At the paper's scale, steps are left out that only the mini world has, or that no scale changes.
profile :=
STEPS := world inversion sliders generation filtering evaluation accuracy ranking axes failure line calibration photos report labels oodcv directions ablation corruptions synthetic denoiser controlshift scenarios
MINI := world calibration photos oodcv synthetic scenarios
# These need no hub, and shall not ask one; the paper's scale does.
repro test unit slurm pages book: export HF_HUB_OFFLINE := 1
chain: export HF_HUB_OFFLINE := $(if $(filter paper,$(profile)),,1)
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

repro: data ## restore the heavy steps, run every analysis again, compare with the committed results
	$(CNS) reproduce

test: data ## run all tests; the first of them is the whole chain at smoke size
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

unit: data ## run the tests that are not marked slow
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

chain: $(if $(filter paper,$(profile)),env,data) ## run every step without DVC: profile=smoke (4 minutes), benchmark (hours) or paper (a GPU); continues if killed
	$(if $(filter paper,$(profile)),$(CNS) gate --ready --overlay paper.yaml)
	$(if $(filter smoke,$(profile)),LOKY_MAX_CPU_COUNT=1) $(CNS) run $(if $(filter smoke,$(profile)),--together) \
	  $(if $(profile),--overlay $(profile).yaml) $(filter-out $(if $(filter paper,$(profile)),$(MINI)),$(STEPS))

# The tests of SLURM skip without it, and compare with what the chain at smoke size left.
slurm: data ## run work over a SLURM of this machine, and install it before (Debian's slurm-wlm and munge; needs root)
	@[ "$$(id -u)" = 0 ] && [ -n "$$(command -v apt-get)" ] || { echo "make slurm needs root and Debian's apt-get"; exit 1; }
	[ -n "$$(command -v slurmctld)" -a -n "$$(command -v munged)" ] || { apt-get update && apt-get install --yes --no-install-recommends slurm-wlm munge; }
	[ -e build/smoke/metrics/evaluation.json ] || $(MAKE) chain profile=smoke
	$(BIN)/python -m pytest tests/whole/test_slurm.py

lint: env ## check style of code and notebooks, types, and code for what opens doors
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive cnslib
	$(BIN)/nbstripout --verify --keep-id notebooks/*.ipynb notebooks/world/*.ipynb notebooks/course/*.ipynb

pages: data ## write the notebooks with their results as docs/read/*.md, after `make repro`
	$(BIN)/python docs/read/pages.py

book: data ## set notebooks (with the results of `make repro`), pages and figures as a site, build/book/README.html
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --conf-dir docs/book . build/book

lab: data ## open JupyterLab on the notebooks
	$(CNS) lab

# A training gives other weights on another machine anyway; with all instructions of this one it takes half the time.
world: export MKL_CBWR := AUTO
world: export ONEDNN_MAX_CPU_ISA := DEFAULT
world: export ATEN_CPU_CAPABILITY := $(if $(shell grep -m1 -o amx_bf16 /proc/cpuinfo),avx512,avx2)
world: env ## rebuild the base models (hours on two cores, minutes on a GPU; continues if killed)
	[ -e data/fashion-mnist ] || $(MAKE) data  # DVC would not pull over the models that a killed run has left
	$(BIN)/python -m cnslib.world.install
	$(CNS) run --params world.yaml autoencoder diffusion redrawing contrastive selfsupervised oracle fidelity zoo augmentation pretraining dit

lock: env ## compile requirements.lock from requirements.in
	$(BIN)/uv pip compile --quiet --python-version 3.11.2 --no-annotate --custom-compile-command "make lock" requirements.in --output-file requirements.lock

.PHONY: help env data repro test unit chain slurm lint pages book lab world lock
