/* SPDX-License-Identifier: MIT */
#include "members.h"

#include "support/process.h"

void thread_start_or_fail(pthread_t *thread, void *(*run)(void *), void *argument)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 512 << 10);
	if (pthread_create(thread, &attributes, run, argument) != 0)
		process_fail("a thread could not be started");
	pthread_attr_destroy(&attributes);
}

static void *member_run(void *argument)
{
	struct member *member = argument;

	member->run(member->argument);
	atomic_store(&member->has_ended, true);
	return NULL;
}

void members_tend(struct member *members, int count)
{
	for (int i = 0; i < count; i++) {
		struct member *member = &members[i];

		if (member->is_started && !atomic_load(&member->has_ended))
			continue;
		if (member->is_started)
			pthread_join(member->thread, NULL);
		atomic_store(&member->has_ended, false);
		member->is_started = true;
		thread_start_or_fail(&member->thread, member_run, member);
	}
}

void members_join(struct member *members, int count)
{
	for (int i = 0; i < count; i++) {
		if (members[i].is_started)
			pthread_join(members[i].thread, NULL);
		members[i].is_started = false;
	}
}
