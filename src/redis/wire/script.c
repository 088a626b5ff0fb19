/* SPDX-License-Identifier: MIT */
/*
 * script.c is the table of the scripts. A connection's first call of a script sends the text, and
 * all others send the digest (router.c). Redis keeps the script compiled.
 */
#include "script.h"

#define SCRIPT_NUMBER(of, ...) NUMBER_##of,
enum { SCRIPT_LIST(SCRIPT_NUMBER) SCRIPTS };
_Static_assert(SCRIPTS <= 64, "a bit for each in connection.scripts");

#define SCRIPT_DEFINE(of, with_keys, is_repeatable, is_lasting, gives_hints, runs_full, has_shape) \
	const struct script script_##of = {                                                        \
		.name = #of,                                                                       \
		.bit = UINT64_C(1) << NUMBER_##of,                                                 \
		.shape = has_shape,                                                                \
		.digest = script_##of##_digest,                                                    \
		.text = script_##of##_text,                                                        \
		.full_digest = script_##of##_full_digest,                                          \
		.keys = with_keys,                                                                 \
		.lasting = is_lasting,                                                             \
		.repeatable = is_repeatable,                                                       \
		.at_full_memory = runs_full,                                                       \
		.hints = gives_hints,                                                              \
	};
SCRIPT_LIST(SCRIPT_DEFINE)
