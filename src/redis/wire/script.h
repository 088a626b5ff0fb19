/* SPDX-License-Identifier: MIT */
/* These are the scripts that run in Redis. embed.sh puts their texts, the .lua files, into C. */
#ifndef REDIS_WIRE_SCRIPT_H
#define REDIS_WIRE_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

struct script {
	const char *name;
	uint64_t bit;            /* no other script has this bit */
	const char *digest;      /* SHA-1 of the text, in hexadecimal: its name in Redis */
	const char *full_digest; /* SHA-1 of SCRIPT_AT_FULL_MEMORY and the text */
	const char *text;
	/* The rest is in SCRIPT_LIST, in this order. */
	unsigned keys; /* the number of the shard's keys it has, in the order of space.h */
	/* A second run after a lost reply changes no more than one run. */
	bool repeatable;
	/* Its changes are waited for where durability is asked for. Other scripts change nothing,
	 * or what is found out again after a loss: leases. */
	bool lasting;
	bool hints; /* its last arguments are the channel for hints and the shard */
	/* The script only marks or removes tasks, so it may run while the memory is full. */
	bool at_full_memory;
	const char *shape; /* the reply's shape (shape.h) */
};

/* This line precedes the text of a script that runs at full memory, for Redis 7 and later. */
#define SCRIPT_AT_FULL_MEMORY "#!lua flags=allow-oom\n"

/* The list calls X(name, keys, repeatable, lasting, hints, at_full_memory, shape) for each. */
#define SCRIPT_LIST(X)                                               \
	X(add, 12, false, true, true, false, "[*i]")                 \
	X(cancel, 12, false, true, true, false, "i")                 \
	X(claim, 12, false, false, false, true, "[din[*s][*s][*s]]") \
	X(extend, 9, true, false, false, true, "a")                  \
	X(finish, 12, false, true, true, true, "a")                  \
	X(list, 9, true, false, false, false, "[nn*sssss]")          \
	X(count, 12, true, false, false, false, "[nnnnninnn]")       \
	X(groups, 11, true, false, false, false, "[*snnn]")          \
	X(scan, 7, true, false, false, false, "[id[*ss]n]")          \
	X(dead_drop, 8, false, true, false, false, "i")              \
	X(limit, 12, true, true, true, true, "n")                    \
	X(rule, 6, true, false, false, false, "s")                   \
	X(layout, 1, true, false, false, false, "s")                 \
	X(present, 3, true, false, false, true, "n")                 \
	X(workers, 3, true, false, false, false, "[*is]")            \
	X(delete, 12, true, true, false, true, "i")                  \
	X(group_drain, 12, false, true, false, true, "n")

#define SCRIPT_DECLARE(name, keys, repeatable, lasting, hints, at_full_memory, shape) \
	extern const char script_##name##_digest[];                                   \
	extern const char script_##name##_text[];                                     \
	extern const char script_##name##_full_digest[];                              \
	extern const struct script script_##name;
SCRIPT_LIST(SCRIPT_DECLARE)
#undef SCRIPT_DECLARE

#endif
