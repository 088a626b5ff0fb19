# SPDX-License-Identifier: MIT
#
# The site: the README, the other pages in Markdown and the manual, as HTML. Part of the Makefile.

SITE := $(BUILD)/site
SITE_SOURCES := $(wildcard src/site/*)
# The README is first: it becomes index.html.
SITE_PAGES := README.md src/CHANGES.md src/UPGRADE.md src/README.md src/redis/README.md \
	$(wildcard bench/results/*.md)

.PHONY: site

deps-ci: PACKAGES += lowdown

site: $(SITE)/index.html ## make a site of the manual and the README, in build/site

ifeq ($(REDIS_FOUND),yes)
$(SITE)/index.html: $(MAN_BUILD)/made $(SITE_SOURCES) $(SITE_PAGES)
	$(call say,SITE,$(SITE))
	$(Q)src/site/site.sh $(SITE) $(MAN_BUILD) $(VERSION) $(SITE_PAGES)
else
$(SITE)/index.html:
	@echo "the site needs the part on Redis: try 'make deps', and not REDIS=no" >&2; false
endif
