# SPDX-License-Identifier: MIT
# The short way in: everything here is a thin wrapper over meson and scripts/. To build by hand:
# meson setup build && ninja -C build
#
#   make            build into build/
#   make help       show this list
#   make demo       install what is missing, build, trace two programs and show what was recorded
#   make demo-fleet   trace a slow request through eight hosts of this machine: nats-server, a minute at most
#   make check      install what the tests need, build in several ways, run every test; also: make test
#   make soak       kill, fork and fail much longer than make check does
#   make bench      install the peers from Debian and measure against them; ARGS=--quick, --write, --list, names of rows
#   make compat     recompile programs that were written for LTTng-UST and compare traces: sources from Debian, most of an hour
#   make dist       the sources that are committed, as kymo-VERSION.tar.gz
#   make packages-check   build the Debian packages, install, boot, upgrade and remove them in a system of their own (root)
#   make install    DESTDIR= PREFIX= (default /usr/local)
#   make uninstall  remove what make install has installed last
#   make deps       install what building and running needs (Debian; root or sudo)
#   make format     clang-format over the tree
#   make clean      remove build/, build-check/, build-bench/, build-compat/ and build-packages/

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=

all: $(BUILD)/build.ninja
	@ninja -C '$(BUILD)'

$(BUILD)/build.ninja:
	@command -v meson >/dev/null || { echo "kymo: meson is missing: run 'make deps' first" >&2; exit 1; }
	@meson setup '$(BUILD)' --prefix='$(PREFIX)'

help:
	@sed -n 's/^#   make/make/p' Makefile

deps:
	@scripts/deps

demo:
	@scripts/deps --demo
	@echo "kymo: building in $(BUILD)/"
	@log=$$(mktemp) && { $(MAKE) --no-print-directory all >$$log 2>&1 || { tail -n 30 $$log; rm -f $$log; exit 1; }; } && rm -f $$log
	@scripts/demo '$(BUILD)'

demo-fleet:
	@scripts/deps --fleet
	@$(MAKE) --no-print-directory all
	@scripts/demo-fleet '$(BUILD)'

check test:
	@scripts/deps --test
	@scripts/check

soak:
	@scripts/deps --test
	@$(MAKE) --no-print-directory all
	@for name in killed processes failures scribble random recover consumer-dies fleet endurance; do \
		KYMO_TEST_BUILD='$(abspath $(BUILD))' KYMO_TEST_BUDGET=120 KYMO_TEST_POINTS=1 KYMO_TEST_FORKS=16000 KYMO_TEST_ALL=1 KYMO_TEST_STORES=20000000 KYMO_TEST_EVENTS=1000000000 \
			python3 test/integration/test-$$name.py || exit 1; \
	done
	@KYMO_TEST_BUILD='$(abspath $(BUILD))' KYMO_TEST_WRITES=100000 python3 test/integration/test-kernel.py test_order || [ $$? -eq 77 ]

compat:
	@scripts/deps --compat
	@test/compat/oracle.py
	@test/compat/real.py $(ARGS)

bench:
	@scripts/deps --bench
	@[ -f build-bench/build.ninja ] || meson setup build-bench -Dbench=true -Dtests=disabled >/dev/null
	@ninja --quiet -C build-bench
	@bench/bench.py $(ARGS)
	@[ -n "$(ARGS)" ] || bench/kernel.py
	@[ -n "$(ARGS)" ] || bench/page.py
	@[ -n "$(ARGS)" ] || bench/fleet.py

DIST ?= .
dist:
	@version=$$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build) && \
		git archive --format=tar.gz --prefix=kymo-$$version/ -o '$(DIST)'/kymo-$$version.tar.gz HEAD && echo '$(DIST)'/kymo-$$version.tar.gz

packages-check:
	@scripts/deps --packages
	@scripts/check-packages $(STEPS)

# The prefix is compiled in (where the daemons are found), so another one means another build.
install: $(BUILD)/build.ninja
	@scripts/set-prefix '$(BUILD)' '$(PREFIX)'
	@ninja -C '$(BUILD)'
	@dir='$(DESTDIR)'; case $$dir in ""|/*) ;; *) dir=$$PWD/$$dir ;; esac; \
		DESTDIR=$$dir meson install -C '$(BUILD)' --no-rebuild
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

uninstall:
	@ninja -C '$(BUILD)' uninstall

format:
	@scripts/format

clean:
	@rm -rf '$(BUILD)' build-check build-bench build-compat build-packages

.PHONY: all help deps demo demo-fleet check test soak compat bench dist packages-check install uninstall format clean
