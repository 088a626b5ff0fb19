/* SPDX-License-Identifier: MIT */
/* Which version is loaded, for a program that was compiled with the header of another. */
#include <timingwheel/timingwheel.h>

int tw_version(void)
{
	return TW_VERSION;
}
