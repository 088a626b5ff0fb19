/* SPDX-License-Identifier: MIT */
#include "csv.h"

#include "options.h"
#include "process.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

struct csv csv_open(const char *path, const char *header)
{
	struct csv csv = {NULL};

	if (!path)
		return csv;
	csv.file = fopen(path, "w");
	if (!csv.file)
		options_refuse("%s can't be written: %s", path, strerror(errno));
	fprintf(csv.file, "%s\n", header);
	return csv;
}

void csv_row(struct csv csv, const char *format, ...)
{
	va_list arguments;

	if (!csv.file)
		return;
	va_start(arguments, format);
	vfprintf(csv.file, format, arguments);
	va_end(arguments);
	fputc('\n', csv.file);
}

void csv_close(struct csv csv)
{
	if (csv.file && fclose(csv.file) != 0)
		process_fail("the CSV file could not be written: %s", strerror(errno));
}
