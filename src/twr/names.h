/* SPDX-License-Identifier: MIT */
/* names has the names of enumerators, as options and JSON have them. Each list ends with NULL. */
#ifndef TWR_NAMES_H
#define TWR_NAMES_H

#include <stdbool.h>

extern const char *const state_names[];  /* enum tw_redis_state */
extern const char *const missed_names[]; /* enum tw_redis_missed */
extern const char *const method_names[]; /* enum tw_redis_method */
extern const char *const end_names[];    /* enum tw_redis_end */

/* Sets *value to the place of the name in the list. Returns false if the name, which may be NULL,
 * is not there. */
bool name_read(const char *name, const char *const *names, unsigned *value);

#endif
