/* SPDX-License-Identifier: MIT */
/* The version of the loaded library may differ from that of the header a program was compiled
 * with. */
#include <timingwheel/timingwheel.h>

int tw_version(void)
{
	return TW_VERSION;
}
