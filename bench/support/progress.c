/* SPDX-License-Identifier: MIT */
#include "progress.h"

#include "stopwatch.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int terminal_columns(FILE *stream)
{
	const char *kind = getenv("TERM");
	struct winsize size;

	if (!isatty(fileno(stream)) || !kind || !strcmp(kind, "dumb"))
		return 0;
	if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
		return size.ws_col;
	return 80;
}

struct progress progress_start(FILE *stream, bool quiet)
{
	int columns = terminal_columns(stream);

	return (struct progress){
		.stream = stream,
		.quiet = quiet,
		.columns = columns,
		.interval = columns ? NANOSECONDS_PER_SECOND / 10 : NANOSECONDS_PER_SECOND,
		.next = stopwatch_now(),
	};
}

bool progress_is_due(struct progress *progress)
{
	int64_t now = stopwatch_now();

	if (progress->quiet || now < progress->next)
		return false;
	progress->next = now + progress->interval;
	return true;
}

void progress_show(struct progress *progress, const char *format, ...)
{
	char line[512];
	va_list arguments;

	if (progress->quiet)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	/* Earlier output comes first, also where both streams go to one file. */
	fflush(stdout);
	/* The line is erased to its end: the one before may have been longer. */
	if (progress->columns)
		fprintf(progress->stream, "\r%.*s\033[K", progress->columns - 1, line);
	else
		fprintf(progress->stream, "%s\n", line);
	fflush(progress->stream);
}

void progress_wipe(struct progress *progress)
{
	if (progress->columns && !progress->quiet)
		fputs("\r\033[K", progress->stream);
}
