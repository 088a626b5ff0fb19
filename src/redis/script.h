/* SPDX-License-Identifier: MIT */
/* The scripts that run in Redis. Their texts are the .lua files, put into C by embed.sh. */
#ifndef TIMINGWHEEL_REDIS_SCRIPT_H
#define TIMINGWHEEL_REDIS_SCRIPT_H

#include <stdbool.h>

struct script {
	const char *digest; /* SHA-1 of the text, in hexadecimal: its name in Redis */
	const char *text;
	unsigned keys; /* how many of a shard's keys it is given, in the order of space.h */
	/* To run it again after a lost reply would do no more than to run it once: it changes
	 * nothing, or sets the same again. */
	bool repeatable;
	bool hints; /* its last arguments are the channel for hints and the shard */
};

/* X(name, keys, repeatable, hints) */
#define SCRIPT_LIST(X)                \
	X(add, 3, false, true)        \
	X(cancel, 3, false, false)    \
	X(move, 3, false, true)       \
	X(claim, 5, false, false)     \
	X(ack, 3, false, false)       \
	X(extend, 3, true, false)     \
	X(fail, 5, false, true)       \
	X(release, 3, false, true)    \
	X(get, 3, true, false)        \
	X(list, 3, true, false)       \
	X(count, 5, true, false)      \
	X(dead_list, 5, true, false)  \
	X(dead_retry, 5, false, true) \
	X(dead_drop, 5, false, false)

#define SCRIPT_DECLARE(name, keys, repeatable, hints) \
	extern const char script_##name##_digest[];   \
	extern const char script_##name##_text[];     \
	extern const struct script script_##name;
SCRIPT_LIST(SCRIPT_DECLARE)
#undef SCRIPT_DECLARE

#endif
