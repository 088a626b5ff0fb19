/* SPDX-License-Identifier: MIT */
/* data reads a callback's body, which --data gives. */
#ifndef TWR_DATA_H
#define TWR_DATA_H

#include "arguments.h"

/*
 * Reads what --data names, "@-" from standard input, into the task's body, which is then the
 * caller's to free. A callback's body must be JSON, if no header Content-Type says otherwise.
 * Returns EXIT_DONE, or another code after a message on stderr.
 */
int data_read(struct arguments *arguments, char **body);

#endif
