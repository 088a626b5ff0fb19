# SPDX-License-Identifier: MIT
#
# `make bench-peers`: the library beside its peers, which `make deps-bench` installs. Part of the
# Makefile.

PEERS := $(BUILD)/bench/peers
PEERS_TIMERS := $(addprefix $(PEERS)/,timingwheel libuv libevent libev asio)
PEERS_CACHES := $(addprefix $(PEERS)/,cache uthash glib)

-include $(wildcard $(PEERS)/*.d)

$(PEERS_TIMERS): $(PEERS)/timers.o
$(PEERS_CACHES): $(PEERS)/caches.o
$(PEERS_TIMERS) $(PEERS_CACHES): $(PEERS)/%: $(PEERS)/%.o $(BENCH_SUPPORT) $(LIB_OBJECTS)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ $(PEERS_LIBS) -lm

$(PEERS)/libuv: PEERS_LIBS = -luv
$(PEERS)/libevent: PEERS_LIBS = -levent -levent_pthreads
$(PEERS)/libev: PEERS_LIBS = -lev
$(PEERS)/asio: PEERS_LIBS = -lstdc++
$(PEERS)/glib: PEERS_LIBS = $(shell pkg-config --libs glib-2.0)
$(PEERS)/glib.o: EXTRA += $(shell pkg-config --cflags glib-2.0)

$(PEERS)/asio.o: bench/peers/asio.cpp bench/peers/timers.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 -Wall -Wextra -pthread -O2 -g -Ibench -c -o $@ $<

# The compiler of Java is the JVM's own.
$(PEERS)/netty: JARS = /usr/share/java/netty-common.jar
$(PEERS)/caffeine: JARS = /usr/share/java/caffeine.jar
$(PEERS)/netty $(PEERS)/caffeine: $(PEERS)/%: bench/peers/%.java
	@mkdir -p $(@D) && command -v java >/dev/null
	@printf '#!/bin/sh\nexec java -cp $(JARS) $(CURDIR)/$< "$$@"\n' >$@
	@chmod +x $@

$(PEERS)/go $(PEERS)/ristretto: $(PEERS)/%: bench/peers/%.go
	@mkdir -p $(@D)
	$(Q)GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$(CURDIR)/$(PEERS)/go-cache \
		go build -o $@ $<

.PHONY: bench-peers deps-bench
bench-peers: ## run the library's timers and caches beside its peers; ARGS=--quick or --update
	@bench/run.sh peers $(ARGS)

deps-bench: deps ## install also the peers of bench-peers
deps-bench: PACKAGES += libuv1-dev libevent-dev libev-dev libasio-dev libnetty-java golang-go \
	libcaffeine-java golang-github-dgraph-io-ristretto-dev libglib2.0-dev default-jdk-headless
