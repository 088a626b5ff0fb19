/* SPDX-License-Identifier: MIT */
/* The tests of test_pins.c, with a library compiled with test/support/yields in front. */
#include "test_pins.c"
