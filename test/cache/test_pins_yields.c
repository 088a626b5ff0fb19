/* SPDX-License-Identifier: MIT */
/* These are the tests of test_pins.c, with a library that yields (test/support/yields). */
#include "test_pins.c"
