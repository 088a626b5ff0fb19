/* SPDX-License-Identifier: MIT */
/* The histories of test_histories.c, with a library that was compiled with test/yields in front. */
#include "test_histories.c"
