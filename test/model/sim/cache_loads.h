/* SPDX-License-Identifier: MIT */
/* Takes of all kinds, loaders, and what ends the loads that they keep: part of a cache's case. */
#ifndef SIM_CACHE_LOADS_H
#define SIM_CACHE_LOADS_H

#include "cache_world.h"

/* Draws what concerns loads. */
void loads_draw(void);
/* Before the users begin. */
void loads_open(void);
/* One call, drawn. */
void loads_command(struct user *user);
/* No user runs any more. */
void loads_rest(void);
void loads_check_stats(void);
/* The cache is about to end: the loads that are kept end beside that, or after it. */
void loads_let_go(void);
/* The cache is gone. */
void loads_close(void);
void loads_describe(void);
/* All threads sleep, and no loader or listener. */
void loads_check_idle(void);

#endif
