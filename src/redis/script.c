/* SPDX-License-Identifier: MIT */
/*
 * A script is called by its digest; a server that does not know it (restarted, SCRIPT FLUSH,
 * another node) is sent the text once more (router.c). Redis keeps it compiled, so a call costs its
 * arguments and its work alone.
 */
#include "script.h"

#define SCRIPT_DEFINE(name, keys, repeatable, hints)                                             \
	const struct script script_##name = {script_##name##_digest, script_##name##_text, keys, \
					     repeatable, hints};
SCRIPT_LIST(SCRIPT_DEFINE)
