/* SPDX-License-Identifier: MIT */
/*
 * script.c is the table of the scripts. A connection's first call of a script sends the text, and
 * all others send the digest (router.c). Redis keeps the script compiled.
 */
#include "script.h"

#define SCRIPT_NUMBER(of, ...) NUMBER_##of,
enum { SCRIPT_LIST(SCRIPT_NUMBER) SCRIPTS };
_Static_assert(SCRIPTS <= 64, "a bit for each in connection.scripts");

#define SCRIPT_DEFINE(of, ...)                                         \
	const struct script script_##of = {#of,                        \
					   UINT64_C(1) << NUMBER_##of, \
					   script_##of##_digest,       \
					   script_##of##_full_digest,  \
					   script_##of##_text,         \
					   __VA_ARGS__};
SCRIPT_LIST(SCRIPT_DEFINE)
