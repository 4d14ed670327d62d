# Every target does its own set-up. Only the first run needs the network.
# PYTHON=… names another interpreter (3.11 or newer), STORE=… another folder for trials.
STORE ?= trials
LAB := .venv/bin/rebalance-lab

.DEFAULT_GOAL := help
.PHONY: help demo test mixed soak coverage mutants images report docs setup pins messages clean

help:
	@echo "make demo     show a group at work and failing in four ways, live and simulated, with verdicts"
	@echo "make test     run all checks: lint, types, rooms, and every tier of tests that can run here"
	@echo "make mixed    run groups of the lab's members and real 0.8.2.2 consumers, TIMES=20 trials; needs Maven"
	@echo "make soak     let confluent-kafka and kafka-python write while brokers fail, MINUTES=10 for each"
	@echo "make coverage measure branch coverage by the default and the slow tier; list what no test reached"
	@echo "make mutants  run mutation testing of the checks (docs/mutants.md); MODULES=\"overlaps churn\" for only these"
	@echo "make images   build the images for --world containers and the compose file; needs a docker engine"
	@echo "make report   write an HTML page of the trials in $(STORE)/"
	@echo "make docs     build the documentation as a site in build/site, which can be read from disk"
	@echo "make setup    only install what is needed: .venv, Java, Chromium"
	@echo "make pins     write constraints.txt from .venv, after a change of dependencies"
	@echo "make messages write the classes of Kafka's messages from Kafka's jars; needs Maven"
	@echo "make clean    remove .venv, caches and builds, but not the trials"

demo:
	@./scripts/setup demo
	@$(LAB) demo --store "$(STORE)"

test:
	@./scripts/setup test
	@./scripts/test

mixed:
	@./scripts/setup demo
	@STORE="$(STORE)" ./scripts/mixed $(or $(TIMES),20)

soak:
	@./scripts/setup test
	@.venv/bin/python scripts/soak.py --minutes $(or $(MINUTES),10) --store "$(STORE)"

coverage:
	@./scripts/setup test
	@mkdir -p .cache/coverage && .venv/bin/coverage erase
	@.venv/bin/coverage run -m pytest -q -n auto --maxprocesses 4 --dist loadfile \
		-m 'not browser and not cluster and not compat and not docker and not kafka'
	@.venv/bin/coverage combine -q
	@.venv/bin/coverage report

mutants:
	@./scripts/setup demo
	@nice -n 19 .venv/bin/python scripts/mutants.py $(MODULES)

images:
	@./scripts/setup demo
	@PYTHON=.venv/bin/python ./scripts/images

report:
	@./scripts/setup demo
	@$(LAB) report --store "$(STORE)"

docs:
	@./scripts/setup docs
	@NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --quiet
	@echo "open build/site/index.html"

setup:
	@./scripts/setup test

pins:
	@.venv/bin/python scripts/pins.py

messages:
	@./scripts/setup demo
	@.venv/bin/python scripts/kafka_messages.py

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .mutants
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
