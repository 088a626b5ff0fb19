/* SPDX-License-Identifier: MIT */
#include "cores.h"

#include "process.h"

cpu_set_t cores_all(void)
{
	cpu_set_t cores;

	if (sched_getaffinity(0, sizeof(cores), &cores) != 0)
		process_fail("the system doesn't report its cores");
	return cores;
}

void cores_stay_on(const cpu_set_t *cores, size_t number)
{
	size_t passed = number % (size_t)CPU_COUNT(cores);
	cpu_set_t own;
	int core = 0;

	while (!CPU_ISSET(core, cores) || passed-- > 0)
		core++;
	CPU_ZERO(&own);
	CPU_SET(core, &own);
	sched_setaffinity(0, sizeof(own), &own);
}
