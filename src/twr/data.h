/* SPDX-License-Identifier: MIT */
/* A callback's body, as --data gives it. */
#ifndef TWR_DATA_H
#define TWR_DATA_H

#include "arguments.h"

/*
 * Reads what --data names, "@-" from standard input, into the task's body, which is then the
 * caller's to free. A callback's body must be JSON, if no header Content-Type says otherwise.
 * EXIT_DONE; else what is wrong has been said on stderr.
 */
int data_read(struct arguments *arguments, char **body);

#endif
