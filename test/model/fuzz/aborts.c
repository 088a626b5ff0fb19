/* SPDX-License-Identifier: MIT */
/* cmocka's asserts end a test; a fuzz target has none, and they end the program. */
#include <stdlib.h>

__attribute__((constructor)) static void abort_at_asserts(void)
{
	setenv("CMOCKA_TEST_ABORT", "1", 1);
}
