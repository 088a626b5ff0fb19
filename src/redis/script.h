/* SPDX-License-Identifier: MIT */
/* The scripts that run in Redis. Their texts are the .lua files, put into C by embed.sh. */
#ifndef TIMINGWHEEL_REDIS_SCRIPT_H
#define TIMINGWHEEL_REDIS_SCRIPT_H

#include <stdbool.h>

struct script {
	const char *name;
	const char *shape;  /* of its reply (shape.h) */
	const char *digest; /* SHA-1 of the text, in hexadecimal: its name in Redis */
	const char *text;
	const char *full_digest; /* that of SCRIPT_AT_FULL_MEMORY and the text */
	unsigned keys; /* how many of a shard's keys it is given, in the order of space.h */
	/* To run it again after a lost reply would do no more than to run it once: it changes
	 * nothing, or sets the same again. */
	bool repeatable;
	/* It only marks tasks or takes them away, and so may run while the memory is full. */
	bool at_full_memory;
	bool hints; /* its last arguments are the channel for hints and the shard */
};

/* What Redis 7 and later are given before the text of a script that runs at full memory. */
#define SCRIPT_AT_FULL_MEMORY "#!lua flags=allow-oom\n"

/* X(name, keys, repeatable, hints, at_full_memory, shape) */
#define SCRIPT_LIST(X)                                         \
	X(add, 3, false, true, false, "[*i]")                  \
	X(add_many, 1, false, false, false, "[*i]")            \
	X(cancel, 3, false, false, false, "i")                 \
	X(move, 3, false, true, false, "i")                    \
	X(claim, 5, false, false, true, "[dinn[*ss][*s][*n]]") \
	X(ack, 3, false, false, false, "a")                    \
	X(extend, 3, true, false, true, "a")                   \
	X(fail, 6, false, true, true, "a")                     \
	X(release, 3, false, true, true, "a")                  \
	X(get, 3, true, false, false, "[*isss]")               \
	X(list, 3, true, false, false, "[i*ssss]")             \
	X(count, 5, true, false, false, "[nnnnni]")            \
	X(dead_list, 5, true, false, false, "[id[*ss]]")       \
	X(dead_add, 6, false, false, false, "i")               \
	X(dead_retry, 6, false, true, false, "i")              \
	X(dead_drop, 6, false, false, false, "i")              \
	X(dead_sweep, 6, true, false, true, "[nnd]")           \
	X(look, 1, true, false, false, "[*i]")

#define SCRIPT_DECLARE(name, keys, repeatable, hints, at_full_memory, shape) \
	extern const char script_##name##_digest[];                          \
	extern const char script_##name##_text[];                            \
	extern const char script_##name##_full_digest[];                     \
	extern const struct script script_##name;
SCRIPT_LIST(SCRIPT_DECLARE)
#undef SCRIPT_DECLARE

#endif
