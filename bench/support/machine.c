/* SPDX-License-Identifier: MIT */
#include "machine.h"

#include "format.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define LINE_MOST 80 /* columns */

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown compiler"
#endif

static void read_processor(char *name, size_t size)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256];

	snprintf(name, size, "unknown processor");
	while (file && fgets(line, sizeof(line), file)) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) != 0 || !colon)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(name, size, "%s", colon + 2);
		break;
	}
	if (file)
		fclose(file);
}

/* Writes ", 32 MiB L3", or nothing where the system doesn't report it. */
static void read_cache(char *cache, size_t size)
{
	FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");
	long kibibytes;

	cache[0] = '\0';
	if (file && fscanf(file, "%ldK", &kibibytes) == 1)
		snprintf(cache, size, ", %s L3", format_bytes(kibibytes * 1024).characters);
	if (file)
		fclose(file);
}

const char *machine_description(void)
{
	static char description[512];
	char processor[128], cache[64];
	struct utsname kernel;
	int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);

	uname(&kernel);
	/* The version ends at the dash; the distribution's follows. */
	kernel.release[strcspn(kernel.release, "-")] = '\0';
	read_processor(processor, sizeof(processor));
	read_cache(cache, sizeof(cache));
	snprintf(description, sizeof(description), "%s, %ld cores%s, %s memory, %s %s %s, %s",
		 processor, sysconf(_SC_NPROCESSORS_ONLN), cache, format_bytes(memory).characters,
		 kernel.sysname, kernel.release, kernel.machine, COMPILER);
	return description;
}

void machine_print(void)
{
	const char *part = machine_description();
	size_t column = 0;

	while (*part) {
		size_t length = strcspn(part, ",") + (strchr(part, ',') != NULL);
		bool breaks = column > 0 && column + 1 + length > LINE_MOST;

		if (column > 0)
			putchar(breaks ? '\n' : ' ');
		printf("%.*s", (int)length, part);
		column = (breaks || column == 0 ? 0 : column + 1) + length;
		part += length;
		part += strspn(part, " ");
	}
	putchar('\n');
}
