/* SPDX-License-Identifier: MIT */
/* dump writes all pending timers of a wheel as text: one line each, with the bytes of a key that
 * are no printable ASCII as \xHH. */
#include <inttypes.h>
#include <stdio.h>
#include <timingwheel/timingwheel.h>

struct dump {
	FILE *file;
	tw_duration now;
};

static void write_key(FILE *file, const unsigned char *key, size_t size)
{
	for (size_t i = 0; i < size; i++)
		fprintf(file, key[i] >= ' ' && key[i] <= '~' ? "%c" : "\\x%02x", key[i]);
}

/* Writes a timer's line. It ends the visits when the file fails. */
static int write_timer(void *context, const struct tw_pending_timer *timer)
{
	const struct dump *dump = context;

	if (timer->key)
		write_key(dump->file, timer->key, timer->key_size);
	else
		fprintf(dump->file, "timer %" PRIu64, timer->timer.id);
	return fprintf(dump->file, ": value %p, in %" PRId64 " ns\n", timer->value,
		       timer->deadline - dump->now) > 0;
}

static void ignore(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
}

int main(void)
{
	struct tw_wheel *wheel;
	struct dump dump = {.file = stdout};
	int failed;

	if (tw_create(&wheel, TW_MILLISECOND, 512, ignore, NULL) != TW_OK)
		return 1;
	dump.now = tw_now(wheel);
	failed = tw_set_timer(wheel, "session\n42", 10, NULL, TW_SECOND) != TW_OK ||
		 tw_each(wheel, write_timer, &dump) != TW_OK || fflush(stdout) != 0;
	tw_destroy(wheel);
	return failed;
}
