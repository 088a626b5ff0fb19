/* SPDX-License-Identifier: MIT */
/*
 * run.c is lists of runs, and the mailbox. A runner makes a system call only if the mailbox was
 * empty: otherwise the main thread has been woken already.
 */
#include "run.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

void run_list_init(struct run_list *list)
{
	list_init(&list->runs);
	list->count = 0;
}

void run_list_add(struct run_list *list, struct run *run)
{
	list_append(&list->runs, &run->link);
	list->count++;
}

struct run *run_list_take(struct run_list *list)
{
	struct list *first = list_take_first(&list->runs);

	if (!first)
		return NULL;
	list->count--;
	return list_entry(first, struct run, link);
}

void run_list_move(struct run_list *to, struct run_list *from)
{
	list_append_all(&to->runs, &from->runs);
	to->count += from->count;
	from->count = 0;
}

bool run_may_begin(struct run *run, tw_duration now)
{
	if (now > run->late_at)
		run->fate = FATE_LATE;
	else if (now >= atomic_load_explicit(&run->batch->leased_until, memory_order_relaxed))
		run->put_off = TW_MILLISECOND;
	else
		return true;
	return false;
}

void run_begin(struct run *run, tw_duration now)
{
	run->begun = true;
	run->job->lateness += now - run->claimed;
}

void run_judge(struct run *run, enum tw_redis_outcome outcome, const char *format, ...)
{
	va_list values;

	run->outcome = outcome;
	va_start(values, format);
	vsnprintf(run->verdict.reason, sizeof(run->verdict.reason), format, values);
	va_end(values);
}

enum tw_status mailbox_init(struct mailbox *mailbox)
{
	run_list_init(&mailbox->runs);
	mailbox->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (mailbox->descriptor < 0)
		return TW_SYSTEM;
	pthread_mutex_init(&mailbox->lock, NULL);
	return TW_OK;
}

void mailbox_destroy(struct mailbox *mailbox)
{
	close(mailbox->descriptor);
	pthread_mutex_destroy(&mailbox->lock);
}

void mailbox_ring(struct mailbox *mailbox)
{
	/* A counter that is full rings already. */
	(void)eventfd_write(mailbox->descriptor, 1);
}

static void mailbox_put(struct mailbox *mailbox, struct run *run)
{
	bool first;

	pthread_mutex_lock(&mailbox->lock);
	first = !mailbox->runs.count;
	run_list_add(&mailbox->runs, run);
	pthread_mutex_unlock(&mailbox->lock);
	if (first)
		mailbox_ring(mailbox);
}

void mailbox_take(struct mailbox *mailbox, struct run_list *runs)
{
	eventfd_t rings;

	/* The descriptor becomes quiet first, so a run put there from now on rings again. */
	(void)eventfd_read(mailbox->descriptor, &rings);
	pthread_mutex_lock(&mailbox->lock);
	run_list_move(runs, &mailbox->runs);
	pthread_mutex_unlock(&mailbox->lock);
}

void runner_init(struct runner *runner, struct mailbox *mailbox)
{
	*runner = (struct runner){.mailbox = mailbox};
	pthread_mutex_init(&runner->lock, NULL);
	run_list_init(&runner->waiting);
}

void runner_destroy(struct runner *runner)
{
	pthread_mutex_destroy(&runner->lock);
}

size_t runner_give(struct runner *runner, struct run_list *runs)
{
	size_t count = runs->count;

	if (!count)
		return 0;
	pthread_mutex_lock(&runner->lock);
	run_list_move(&runner->waiting, runs);
	pthread_mutex_unlock(&runner->lock);
	return count;
}

void run_count(struct run *run)
{
	atomic_fetch_add_explicit(run->running, 1, memory_order_relaxed);
}

struct run *runner_take(struct runner *runner)
{
	struct run *run = run_list_take(&runner->waiting);

	if (run)
		run_count(run);
	return run;
}

void runner_return(struct runner *runner, struct run *run)
{
	run->given_back = true;
	mailbox_put(runner->mailbox, run);
}

void runner_end(struct runner *runner, struct run *run)
{
	atomic_fetch_sub_explicit(run->running, 1, memory_order_relaxed);
	mailbox_put(runner->mailbox, run);
}
