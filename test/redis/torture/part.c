/* SPDX-License-Identifier: MIT */
#include "torture.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char *const plan_names[] = {
	[PLAN_DONE] = "done", [PLAN_RETRY] = "retry", [PLAN_KILL] = "kill", [PLAN_FAIL] = "fail"};

void plan_write(const struct plan *plan, char text[PLAN_TEXT_SIZE])
{
	snprintf(text, PLAN_TEXT_SIZE, "%s %s %d %d", plan->id, plan_names[plan->kind],
		 plan->takes_ms, plan->wait_ms);
}

bool plan_read(struct plan *plan, const void *body, size_t body_size)
{
	char text[PLAN_TEXT_SIZE];
	char kind[16];

	if (body_size >= sizeof(text))
		return false;
	memcpy(text, body, body_size);
	text[body_size] = '\0';
	if (sscanf(text, "%47s %15s %d %d", plan->id, kind, &plan->takes_ms, &plan->wait_ms) != 4)
		return false;
	for (plan->kind = PLAN_DONE; plan->kind <= PLAN_FAIL; plan->kind++)
		if (!strcmp(kind, plan_names[plan->kind]))
			return true;
	return false;
}

bool seed_has_groups(uint64_t seed)
{
	/* The seeds of the processes differ only above the lowest 40 bits (children.c). */
	return seed % 4 != 0;
}

struct tw_redis_options part_options(const struct part *part)
{
	return (struct tw_redis_options){
		.url = part->url,
		.client_name = part->name,
		.name_space = "torture",
		/* This is enough for a server that is busy or restarts: only the nemesis, whose
		 * deeds are in the history, breaks connections. */
		.connect_timeout = 5 * TW_SECOND,
		.reply_timeout = 20 * TW_SECOND,
		.patience = 2 * TW_SECOND,
	};
}

void signal_block(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void signal_await(void)
{
	sigset_t set;
	int got;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	while (sigwait(&set, &got) || got != SIGTERM)
		;
}
