/* SPDX-License-Identifier: MIT */
/* As in stdio.h. */
#ifndef PROOF_UNISTD_H
#define PROOF_UNISTD_H

#include_next <unistd.h>

long syscall(long number, ...);

#endif
