/* SPDX-License-Identifier: MIT */
/* libFuzzer, or run_inputs.c, calls a fuzz target with one input after the other. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#ifdef NDEBUG
#error "the fuzz targets need assert(): build them without NDEBUG"
#endif

/* Returns 0; a fault ends the program. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
