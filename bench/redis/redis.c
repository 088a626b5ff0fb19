/* SPDX-License-Identifier: MIT */
/*
 * What does one Redis do for the tasks in it? Each question has a file in support/:
 * - rates: how many tasks a second does it take, and give out again?
 * - lateness: how late do they run when thousands are due each second?
 * - fairness: how fair are the turns of groups?
 * - durable: what does it cost to have each add on the disk before the call returns?
 * - pending: what do ten million of them cost?
 *
 * Each run is a process of its own with a redis-server of its own, and has its baseline beside it.
 */
#include "support/asks.h"

#include "support/machine.h"
#include "support/stopwatch.h"

static void (*const asks[])(const struct settings *settings) = {
	ask_rates, ask_lateness, ask_fairness, ask_durable, ask_pending};

int main(int argc, char **argv)
{
	struct settings settings = {.runs = 3,
				    .count = 100000,
				    .pending = 10000000,
				    .flood = 1000000,
				    .handlers = 10000,
				    .callbacks = 5000,
				    .seconds = 5 * NANOSECONDS_PER_SECOND,
				    .shards = 1,
				    .body = 64};
	const char *csv_path = NULL;
	int only = 0;
	const struct program_option options[] = {
		{"ask", OPTION_CHOICE, &only,
		 .choices = "all,rates,lateness,fairness,durable,pending", .help = "what"},
		{"count", OPTION_COUNT, &settings.count, BATCH, 10000000,
		 .help = "tasks of a rate"},
		{"pending", OPTION_COUNT, &settings.pending, BATCH, 100000000,
		 .help = "tasks that wait"},
		{"flood", OPTION_COUNT, &settings.flood, BATCH, 100000000,
		 .help = "due tasks of one group"},
		{"handlers", OPTION_COUNT, &settings.handlers, 1, 1000000,
		 .help = "tasks a second whose lateness is measured"},
		{"callbacks", OPTION_COUNT, &settings.callbacks, 1, 1000000,
		 .help = "callbacks a second whose lateness is measured"},
		{"seconds", OPTION_SECONDS, &settings.seconds, NANOSECONDS_PER_SECOND / 10, TW_HOUR,
		 .help = "how long tasks are due, or are added"},
		{"shards", OPTION_COUNT, &settings.shards, 1, TW_REDIS_SHARDS_MAX,
		 .help = "of the namespace"},
		{"body", OPTION_COUNT, &settings.body, 0, TW_REDIS_BODY_MAX,
		 .help = "bytes of a task"},
		FIGURES_OPTIONS(&settings.runs, &csv_path),
		{0},
	};

	options_parse(argc, argv, "What does one Redis do for the tasks in it?", options);
	figures_open(csv_path);
	machine_print();
	for (int i = 0; i < (int)(sizeof(asks) / sizeof(asks[0])); i++) {
		if (only == 0 || only == i + 1)
			asks[i](&settings);
	}
	figures_close();
	return 0;
}
