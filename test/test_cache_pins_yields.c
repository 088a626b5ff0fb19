/* SPDX-License-Identifier: MIT */
/* The tests of test_cache_pins.c, with a library that was compiled with test/yields in front. */
#include "test_cache_pins.c"
