/* SPDX-License-Identifier: MIT */
/* The histories of test_histories.c, with a library compiled with test/support/yields in front. */
#include "test_histories.c"
