/* SPDX-License-Identifier: MIT */
/* This describes the machine that a figure comes from. */
#ifndef BENCH_SUPPORT_MACHINE_H
#define BENCH_SUPPORT_MACHINE_H

/* Returns a static text: "AMD EPYC, 2 cores, 105 MiB L3, Linux 6.1.0 x86_64, gcc 12.2.0". */
const char *machine_description(void);

/* Prints it, in lines of up to 80 columns. */
void machine_print(void);

#endif
