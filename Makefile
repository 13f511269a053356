# SPDX-License-Identifier: GPL-2.0-only
#
# The user's commands. The kernel's build reads Kbuild and the Makefiles below, never this one.

KERNEL ?= 7.3
ARCH ?= arm64
LANE ?=
SUITE ?=
PART ?=
CHANGED ?=
CONVERSIONS ?=
FIRST ?=

flavour := $(if $(filter stock,$(KERNEL)),stock-$(ARCH),$(if $(filter 7.3,$(KERNEL)),$(ARCH)))
check-flavour = $(if $(flavour),,$(error KERNEL=$(KERNEL): there are 7.3 and stock))

# what the scripts are told through the environment
export KSRC LANE SUITE CHANGED PMU PART CONVERSIONS FIRST

help:
	@echo 'make run       boot a VM in which kernel code counts cycles, show the table'
	@echo 'make shell     a shell in that VM, with our modules, pmuk and perf'
	@echo 'make test      all tests; LANE=name one lane, SUITE=name one suite'
	@echo '               CHANGED=commit what the changes since then can break'
	@echo 'make test-long what takes hours: more torture, more load, all broken variants'
	@echo 'make check     what needs no boot: style, sparse, documentation, builds'
	@echo 'make bench     what a read, a record, a switch cost, beside perf: build/bench.json;'
	@echo '               of arm64 and x86_64, or of one: ARCH=name; all parts, or some: PART=reads,'
	@echo '               records, aux, switch, contexts, watchdog; x86: all parts of x86_64'
	@echo 'make modules   KDIR=dir: modules for the kernel whose headers are there'
	@echo 'make install   the tool pmuk and its man page, in $${prefix:-/usr/local}; DESTDIR='
	@echo 'make series    the patches to mail, against KSRC=dir or Linux 7.3; CONVERSIONS=y: also those'
	@echo '               that put pmuk under three tests of Linux; FIRST=y: a small first series of'
	@echo '               its own, and those that stand on it'
	@echo 'make clean     remove build/; kernels stay in $${PMUK_CACHE:-~/.cache/pmuk}'
	@echo
	@echo 'run and shell: KERNEL=7.3 (default) or stock (Debian 6.12, no kernel to build)'
	@echo '               ARCH=arm64 (default) or x86_64; there, PMU=intel (default) or amd'
	@echo 'LANE=host tests this machine: its own kernel and counters; see README first'
	@echo 'KSRC=dir takes Linux 7.3 from there, without touching it, and not from Debian'

run:
	$(check-flavour)@vm/run $(flavour)

shell:
	$(check-flavour)@vm/perf $(ARCH) >/dev/null
	@vm/kernel $(flavour)
	@vm/boot $(flavour) --append 'quiet kunit.autorun=0' --add $$(vm/tool $(ARCH))

test check bench series:
	@vm/$@

test-long:
	@LONG=y vm/test

modules:
	@vm/modules '$(KDIR)'

# Root's make install leaves no files in build/: the next make of the user could not write there.
install:
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && $(MAKE) -s -C tools/pmuk O="$$dir" install

clean:
	rm -rf build

.PHONY: help run shell test test-long check bench series modules install clean
