/* SPDX-License-Identifier: MIT */
/*
 * In this harness there is a question among commands: producer 0 gives a command, asks, waits for
 * the answer, and gives another command, as wheel_ask() does. The owner takes one after the other,
 * announces its sleep, looks for an asker and at the queue's count, and sleeps, as owner_sleep()
 * does.
 *
 * The question is answered between the two commands, and sees what its maker wrote; the maker sees
 * the answer. NAPS: the owner naps through half a ring of commands, but no nap delays a question:
 * the nap's time comes only when all producers have ended.
 * EXTRA=1: the maker gives no command after it. Other producers give one command each.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.c"
#include "base/thread.c"
#include "base/event_count.c"
#include "runtime/command_queue.c"

#define EACH 1
#ifndef EXTRA
#define EXTRA 2
#endif
#ifndef CAPACITY
#define CAPACITY 4
#endif
#include "proof_queue.h"
#include "proof_sleep.h"

enum { QUESTION = 7, ANSWER = 8 };

static struct waiting waiting;

static void producer_give(struct producer *producer)
{
	uint64_t position;
	struct command_cell *cell = command_queue_claim(&queue, &position);

	assert(cell);
	producer_fill(producer, cell);
	cell->command.kind = COMMAND_SET;
	command_queue_publish(cell, position);
	event_count_notify(&event, EVENT_COUNT_SLEEPING);
}

static struct command_cell *asker_claim(uint64_t *position)
{
	struct command_cell *cell;

	while (!(cell = command_queue_claim_first(&queue, position)))
		event_count_notify(&event, EVENT_COUNT_NAPPING);
	return cell;
}

static void asker_run(struct producer *producer)
{
	static struct question question;
	const struct moment answered = {&question.answers, 0};
	struct command_cell *cell;
	uint64_t position;

	question.deadline = QUESTION;
	producer_give(producer);
	cell = asker_claim(&position);
	producer_fill(producer, cell);
	cell->command.kind = COMMAND_ASK;
	cell->command.value = &question;
	command_queue_publish(cell, position);
	event_count_hurry(&event);
	if (!moment_has_come(&answered)) {
		waiting_begin(&waiting);
		while (!moment_has_come(&answered))
			(void)waiting_pause(&waiting, NULL, TW_FOREVER);
		waiting_end(&waiting);
	}
	assert(question.deadline == ANSWER && question.status == TW_OK);
	if (EXTRA == 2)
		producer_give(producer);
}

static void *producer_run(void *argument)
{
	struct producer *producer = argument;

	if (producer->number == 0)
		asker_run(producer);
	else
		producer_give(producer);
	return NULL;
}

/* Returns whether there was a command. */
static bool owner_step(void)
{
	const struct command *command = command_queue_at(&queue, 0);
	struct question *question = NULL;

	if (command_queue_peek(&queue, 1) == 0)
		return false;
	if (command->kind == COMMAND_ASK)
		question = command->value;
	(void)consumer_take(1);
	if (!question)
		return true;
	assert(producers[0].taken == 2 && question->deadline == QUESTION);
	question->deadline = ANSWER;
	question_answer(question, TW_OK, &waiting);
	return true;
}

static bool owner_must_stay_awake(void)
{
	size_t tolerated = STATE == EVENT_COUNT_NAPPING ? CAPACITY / 2 : 0;

	return event_count_is_hurried(&event) || command_queue_count(&queue) > tolerated;
}

static void *owner_run(void *argument)
{
	(void)argument;
	for (int taken = 0; taken < ALL_GIVEN;) {
		event_count_calm(&event);
		if (owner_step()) {
			taken++;
			continue;
		}
		event_count_prepare(&event, STATE, UNTIL);
		if (owner_must_stay_awake()) {
			event_count_cancel(&event);
			/* This skips turns in which a command is claimed and not yet published. */
			while (command_queue_peek(&queue, 1) == 0)
				continue;
			continue;
		}
		event_count_wait(&event, UNTIL);
#ifdef NAPS
		if (proof_is_time(UNTIL))
			while (command_queue_peek(&queue, 1) == 0)
				continue;
#endif
	}
	return NULL;
}

int main(void)
{
	pthread_t owner;

	event_open();
	waiting_init(&waiting);
	queue_open(CAPACITY);
	pthread_create(&owner, NULL, owner_run, NULL);
	producers_start(producer_run);
	producers_join();
#ifdef NAPS
	proof_pass_time(UNTIL);
#endif
	pthread_join(owner, NULL);
	consumer_check_all();
	return 0;
}
