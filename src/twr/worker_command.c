/* SPDX-License-Identifier: MIT */
/*
 * The worker's threads do the work; this one waits for signals. These are blocked before any thread
 * starts, so that they come here alone.
 *
 * After SIGTERM, SIGINT or SIGHUP nothing is claimed any more, what runs may end within the grace
 * time, and the rest is given back to run elsewhere. A second SIGINT ends the program at once; its
 * leases just expire. A SIGHUP that is ignored at the start, as by nohup, stays ignored.
 */
#include "arguments.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

#include "board.h"
#include "listener.h"
#include "outcome.h"
#include "show.h"

static void take_report(void *context, const struct tw_redis_report *report)
{
	const struct arguments *arguments = context;

	show_report(report, arguments->json, arguments->worker.source_count > 1);
	fflush(stdout);
}

static void tell_connection(void *context, const struct tw_redis_error *error)
{
	(void)context;
	if (error)
		fprintf(stderr, "twr: Redis is unavailable: %s\n", error->text);
	else
		fputs("twr: Redis is available again\n", stderr);
}

static void tell_notice(void *context, const struct tw_redis_error *error)
{
	(void)context;
	fprintf(stderr, "twr: %s: %s\n", tw_status_text(error->status), error->text);
}

static void tell_counts(struct tw_redis_worker *worker)
{
	struct tw_redis_worker_stats stats;

	tw_redis_worker_get_stats(worker, NULL, &stats);
	fputs("twr: ", stderr);
	figures_write(stderr, FIGURES_OF_RUNS, &stats, ", ");
	fputc('\n', stderr);
}

static void block_signals(sigset_t *signals)
{
	struct sigaction hang_up;

	sigemptyset(signals);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGINT);
	sigaction(SIGHUP, NULL, &hang_up);
	if (hang_up.sa_handler != SIG_IGN)
		sigaddset(signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, signals, NULL);
}

/* Allows the program as many descriptors as it may have. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* These are the pages, if they are asked for. */
struct pages {
	struct listener *listener;
	struct board *board;
};

static int pages_serve(struct pages *pages, struct tw_redis_worker *worker,
		       const struct arguments *arguments)
{
	struct tw_redis_error error = {0};
	enum tw_status status;

	if (!pages->listener)
		return EXIT_DONE;
	status = board_start(&pages->board, worker, &arguments->redis, &arguments->worker, &error);
	if (status != TW_OK)
		return outcome(status, &error);
	listener_serve(pages->listener, pages->board);
	fprintf(stderr, "twr: listens on http://%s/\n", listener_name(pages->listener));
	return EXIT_DONE;
}

static void pages_end(struct pages *pages)
{
	listener_close(pages->listener);
	board_stop(pages->board);
}

static void stop(struct tw_redis_worker *worker, const struct arguments *arguments,
		 struct pages *pages)
{
	sigset_t interrupt;

	fputs("twr: finishing the running tasks\n", stderr);
	if (pages->board)
		atomic_store_explicit(&pages->board->stopping, true, memory_order_relaxed);
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	pthread_sigmask(SIG_UNBLOCK, &interrupt, NULL);
	/* It has no handlers that could run on. */
	tw_redis_worker_stop(worker, arguments->grace);
	pages_end(pages);
	tell_counts(worker);
	tw_redis_worker_destroy(worker);
	fputs("twr: the worker has stopped\n", stderr);
}

/* Runs the worker with the pages open, if they are asked for. */
static int worker_run(struct arguments *arguments, struct pages *pages, const sigset_t *signals)
{
	struct tw_redis_worker_options *options = &arguments->worker;
	struct tw_redis_error error = {0};
	struct tw_redis_worker *worker;
	enum tw_status status;
	int exit_code;

	options->context = arguments;
	options->report = arguments->verbose ? take_report : NULL;
	options->connection = tell_connection;
	options->notice = tell_notice;
	status = tw_redis_worker_start(&worker, &arguments->redis, options, &error);
	exit_code = outcome(status, &error);
	if (exit_code == EXIT_DONE)
		exit_code = pages_serve(pages, worker, arguments);
	if (exit_code != EXIT_DONE) {
		pages_end(pages);
		tw_redis_worker_destroy(worker);
		return exit_code;
	}
	fputs("twr: the worker runs\n", stderr);
	while (sigwaitinfo(signals, NULL) < 0)
		continue;
	stop(worker, arguments, pages);
	return EXIT_DONE;
}

int command_worker(struct tw_redis *redis, struct arguments *arguments)
{
	struct pages pages = {0};
	sigset_t signals;

	(void)redis;
	block_signals(&signals);
	raise_descriptors();
	if (arguments->listen.address) {
		pages.listener = listener_open(&arguments->listen);
		if (!pages.listener)
			return EXIT_SYSTEM;
	}
	return worker_run(arguments, &pages, &signals);
}
