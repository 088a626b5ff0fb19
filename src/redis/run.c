/* SPDX-License-Identifier: MIT */
/*
 * The mailbox makes a system call only when it was empty: while the main thread is behind, runners
 * lay their runs beside those that lie there.
 */
#include "run.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

void run_list_add(struct run_list *list, struct run *run)
{
	run->next = NULL;
	if (list->tail)
		list->tail->next = run;
	else
		list->head = run;
	list->tail = run;
	list->count++;
}

struct run *run_list_take(struct run_list *list)
{
	struct run *run = list->head;

	if (!run)
		return NULL;
	list->head = run->next;
	if (!list->head)
		list->tail = NULL;
	list->count--;
	return run;
}

void run_list_move(struct run_list *to, struct run_list *from)
{
	if (!from->head)
		return;
	if (to->tail)
		to->tail->next = from->head;
	else
		to->head = from->head;
	to->tail = from->tail;
	to->count += from->count;
	memset(from, 0, sizeof(*from));
}

void run_begin(struct run *run, tw_duration now)
{
	run->begun = true;
	run->job->lateness += now - run->claimed;
}

enum tw_status mailbox_init(struct mailbox *mailbox)
{
	memset(mailbox, 0, sizeof(*mailbox));
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
	/* Full means that it rings already. */
	while (eventfd_write(mailbox->descriptor, 1) < 0 && errno == EINTR)
		;
}

void mailbox_put(struct mailbox *mailbox, struct run *run)
{
	bool first;

	pthread_mutex_lock(&mailbox->lock);
	first = !mailbox->runs.head;
	run_list_add(&mailbox->runs, run);
	pthread_mutex_unlock(&mailbox->lock);
	if (first)
		mailbox_ring(mailbox);
}

void mailbox_take(struct mailbox *mailbox, struct run_list *runs)
{
	eventfd_t rings;

	/* Quiet first: who puts something from here on rings again. */
	(void)eventfd_read(mailbox->descriptor, &rings);
	pthread_mutex_lock(&mailbox->lock);
	run_list_move(runs, &mailbox->runs);
	pthread_mutex_unlock(&mailbox->lock);
}
