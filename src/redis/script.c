/* SPDX-License-Identifier: MIT */
/*
 * A script is called by its digest; a server that does not know it (restarted, SCRIPT FLUSH,
 * another node) is sent the text once more (router.c). Redis keeps it compiled, so a call costs its
 * arguments and its work alone.
 */
#include "script.h"

#define SCRIPT_DEFINE(of, with_keys, is_repeatable, gives_hints, runs_full, has_shape) \
	const struct script script_##of = {                                            \
		.name = #of,                                                           \
		.shape = has_shape,                                                    \
		.digest = script_##of##_digest,                                        \
		.text = script_##of##_text,                                            \
		.full_digest = script_##of##_full_digest,                              \
		.keys = with_keys,                                                     \
		.repeatable = is_repeatable,                                           \
		.at_full_memory = runs_full,                                           \
		.hints = gives_hints,                                                  \
	};
SCRIPT_LIST(SCRIPT_DEFINE)
