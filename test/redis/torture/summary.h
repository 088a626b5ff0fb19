/* SPDX-License-Identifier: MIT */
/* A summary is the numbers of a torture. */
#ifndef TORTURE_SUMMARY_H
#define TORTURE_SUMMARY_H

#include <stdio.h>

#include "checker.h"

/* Writes the summary as Markdown. */
void summary_write(FILE *file, const struct story *story, const struct faults *faults);

#endif
