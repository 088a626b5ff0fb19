/* SPDX-License-Identifier: MIT */
/* This is a user's program that waits for one timer. */
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <timingwheel/timingwheel.h>

static void execute(void *context, const struct tw_task *task)
{
	(void)context;
	sem_post(task->value);
}

int main(void)
{
	struct tw_wheel *wheel;
	enum tw_status status;
	sem_t expired;

	sem_init(&expired, 0, 0);
	status = tw_create(&wheel, TW_MILLISECOND, 64, execute, NULL);
	if (status == TW_OK)
		status = tw_set_timer(wheel, "key", 3, &expired, 2 * TW_MILLISECOND);
	if (status != TW_OK) {
		fprintf(stderr, "%s\n", tw_status_text(status));
		return 1;
	}
	sem_wait(&expired);
	tw_destroy(wheel);
	/* This status is in redis.h, and its library is not linked. */
	return strcmp(tw_status_name((enum tw_status)64), "TW_UNKNOWN") ||
	       strcmp(tw_status_text((enum tw_status)64), "unknown status");
}
