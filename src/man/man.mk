# SPDX-License-Identifier: MIT
#
# The manual: section 3 is made of the public headers' comments, the other pages stand beside this
# file. Part of the Makefile.

MANDIR ?= $(PREFIX)/share/man
MAN_BUILD := $(BUILD)/man
MAN_GENERATOR := src/man/pages.awk
MAN_HEADERS := $(PUBLIC_HEADERS) $(if $(REDIS_FOUND),include/timingwheel/redis.h)
# What is about the part on Redis goes with it.
MAN_BY_HAND := $(wildcard src/man/*.1 src/man/*.3 src/man/*.5 src/man/*.7)
MAN_BY_HAND := $(if $(REDIS_FOUND),$(MAN_BY_HAND),$(foreach page,$(MAN_BY_HAND),$(if \
	$(findstring twr,$(notdir $(page)))$(findstring redis,$(notdir $(page))),,$(page))))
# The newest release has the first heading with a day: "## 1.0.0 (2026-11-28)".
man_date = $(shell sed -n '/^\#\# .* (.*)/{s/.*(\(.*\))/\1/p;q;}' src/CHANGES.md)

.PHONY: man install-man uninstall-man

man: $(MAN_BUILD)/made ## make the manual's pages, in build/man

$(MAN_BUILD)/made: src/man $(MAN_GENERATOR) src/CHANGES.md $(MAN_HEADERS) $(MAN_BY_HAND) \
		$(BUILD)/flags
	$(call say,MAN,$(MAN_BUILD))
	$(Q)rm -rf $(MAN_BUILD) && mkdir -p $(MAN_BUILD)/man3
	$(Q)LC_ALL=C awk -f $(MAN_GENERATOR) -v folder=$(MAN_BUILD)/man3 \
		-v date=$(man_date) -v release=$(VERSION) -v beside="$(MAN_BY_HAND)" $(MAN_HEADERS)
	$(Q)for page in $(MAN_BY_HAND); do \
		install -D -m 644 $$page $(MAN_BUILD)/man$${page##*.}/$${page##*/} || exit 1; \
	done
	$(Q)touch $@

install: install-man
uninstall: uninstall-man

install-man: man
	$(Q)for page in $(MAN_BUILD)/man?/*; do \
		to=$(root)$(MANDIR)/$${page#$(MAN_BUILD)/}; \
		install -d "$${to%/*}" || exit 1; \
		if test -h $$page; then cp -Pf $$page "$$to"; \
		else install -m 644 $$page "$$to"; fi || exit 1; \
	done

uninstall-man: man
	$(Q)for page in $(MAN_BUILD)/man?/*; do \
		rm -f $(root)$(MANDIR)/$${page#$(MAN_BUILD)/} || exit 1; \
	done
