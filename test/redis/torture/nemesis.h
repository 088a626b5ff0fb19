/* SPDX-License-Identifier: MIT */
/* The nemesis harms processes, connections and the server, by a schedule that its seed gives. */
#ifndef TORTURE_NEMESIS_H
#define TORTURE_NEMESIS_H

#include <stdbool.h>
#include <stdint.h>

#include "children.h"
#include "servers.h"
#include "support/seed.h"

/* Each target has at most one deed at a time. */
enum target_kind { TARGET_WORKER, TARGET_PROXY, TARGET_SERVER, TARGET_KINDS };

struct harm {
	const struct deed_kind *deed; /* may be NULL */
	int64_t heals_at;
};

struct nemesis {
	struct children *children;
	struct servers *servers;
	struct random random;
	struct harm harms[TARGET_KINDS][CHILDREN];
};

void nemesis_init(struct nemesis *nemesis, struct children *children, struct servers *servers,
		  uint64_t seed);
/* Does harm for that long, and heals all. Returns false if a process has ended by itself. */
bool nemesis_run(struct nemesis *nemesis, int64_t duration);

#endif
