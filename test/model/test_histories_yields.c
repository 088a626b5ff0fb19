/* SPDX-License-Identifier: MIT */
/* The histories of test_histories.c run with a library compiled with test/support/yields. */
#include "test_histories.c"
