/* SPDX-License-Identifier: MIT */
/* What a torture was, in numbers. */
#ifndef TORTURE_SUMMARY_H
#define TORTURE_SUMMARY_H

#include <stdio.h>

#include "checker.h"

/* Writes it as Markdown. */
void summary_write(FILE *file, const struct story *story, const struct faults *faults);

#endif
