# Everything runs in a virtual environment that scripts/environment.py makes on first use and clones share.
#   PYTHON=python3.12   the interpreter to make it with (3.11 to 3.13)
#   VENV=folder         where it lies, instead of the user's cache
#   ARGS="..."          passed on: make run ARGS="--help", make test ARGS="tests/pgm -x"

ifndef PYTHON
PYTHON := $(shell for python in python3 python3.12 python3.11 python3.13; do \
	$$python -c 'import sys, ensurepip, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null \
	&& echo $$python && break; done)
endif
ENVIRONMENT = $(PYTHON) scripts/environment.py

.DEFAULT_GOAL := help
.PHONY: help python run test lint clean-env

help:
	@echo "make run        start the page (installs what it needs on first use)"
	@echo "make test       run the tests"
	@echo "make lint       check the code with ruff"
	@echo "make clean-env  remove the virtual environment of this checkout"

python:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 to 3.13 with venv was found: install one\
	 (Debian, Ubuntu: apt-get install python3-venv) or name it with PYTHON=." >&2; exit 1; }

run: python
	@python="$$($(ENVIRONMENT) app)" && exec "$$python" app.py $(ARGS)

test: python
	@python="$$($(ENVIRONMENT) dev)" && $(ENVIRONMENT) browser && exec "$$python" -m pytest $(ARGS)

lint: python
	@python="$$($(ENVIRONMENT) dev)" && exec "$$python" -m ruff check $(ARGS) .

clean-env: python
	@$(ENVIRONMENT) clean
