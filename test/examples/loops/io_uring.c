/* SPDX-License-Identifier: MIT */
/* This program drives a wheel from a loop of io_uring. timers.h says how, in general. */
#include "timers.h"

#include <liburing.h>
#include <poll.h>

enum { ENTRIES = 64 };

/* Returns an entry for a request. A full queue is submitted first. */
static struct io_uring_sqe *next_entry(struct io_uring *ring)
{
	struct io_uring_sqe *entry;

	while (!(entry = io_uring_get_sqe(ring)))
		io_uring_submit(ring);
	return entry;
}

/* Does what completions of others than the wheel want. Returns whether one is the wheel's, which
 * comes last: a timer may free what another completion of the batch concerns. */
static bool run_completions(struct io_uring *ring)
{
	struct io_uring_cqe *completion;
	bool is_due = false;

	while (io_uring_peek_cqe(ring, &completion) == 0) {
		if (io_uring_cqe_get_data(completion) == wheel)
			is_due = true;
		else
			set_timers();
		io_uring_cqe_seen(ring, completion);
	}
	return is_due;
}

/* The poll completes once. The next one is requested after tw_poll, which makes the descriptor
 * unreadable, and completes at once if the descriptor is readable again. */
static void request_poll(struct io_uring *ring)
{
	struct io_uring_sqe *entry = next_entry(ring);

	io_uring_prep_poll_add(entry, tw_fd(wheel), POLLIN);
	io_uring_sqe_set_data(entry, wheel);
}

static void wait_at_descriptor(struct io_uring *ring)
{
	request_poll(ring);
	while (!is_done) {
		io_uring_submit_and_wait(ring, 1);
		if (run_completions(ring)) {
			tw_poll(wheel, NULL);
			request_poll(ring);
		}
	}
}

static void sleep_until_deadlines(struct io_uring *ring)
{
	struct io_uring_cqe *completion;
	tw_duration left;

	while (tw_poll(wheel, &left) == TW_OK && !is_done) {
		struct __kernel_timespec time = {.tv_sec = left / TW_SECOND,
						 .tv_nsec = left % TW_SECOND};

		io_uring_submit_and_wait_timeout(ring, &completion, 1,
						 left == TW_FOREVER ? NULL : &time, NULL);
		run_completions(ring);
	}
}

static void run(bool with_worker, void (*run_loop)(struct io_uring *ring))
{
	struct io_uring ring;
	struct io_uring_sqe *start;

	check(io_uring_queue_init(ENTRIES, &ring, 0) == 0, "io_uring_queue_init");
	start = next_entry(&ring);
	io_uring_prep_nop(start);
	io_uring_sqe_set_data(start, NULL);
	open_wheel(with_worker);
	run_loop(&ring);
	/* The ring ends its poll of the wheel's descriptor. */
	io_uring_queue_exit(&ring);
	close_wheel();
}

int main(void)
{
	run(true, wait_at_descriptor);
	run(false, sleep_until_deadlines);
	return 0;
}
