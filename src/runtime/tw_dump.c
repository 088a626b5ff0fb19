/* SPDX-License-Identifier: MIT */
/* The public calls that write all that is pending as text: one that walks, and one for a debugger,
 * which reads the pending timers where they are, for no thread can answer. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "ask.h"
#include "base/text_page.h"
#include "walk.h"

struct dump {
	struct text_page page;
	tw_duration now;
	FILE *file;     /* or NULL */
	int descriptor; /* then */
	bool failed;
};

static void dump_write(void *context, const char *text, size_t size)
{
	struct dump *dump = context;

	if (dump->file) {
		dump->failed |= fwrite(text, 1, size, dump->file) != size;
		return;
	}
	while (size > 0 && !dump->failed) {
		ssize_t written = write(dump->descriptor, text, size);

		if (written > 0) {
			text += written;
			size -= (size_t)written;
		}
		dump->failed = written < 0 && errno != EINTR;
	}
}

static void dump_begin(struct dump *dump, struct tw_wheel *wheel)
{
	struct owner *owner = &wheel->owner;

	dump->page.write = dump_write;
	dump->page.context = dump;
	dump->now = clock_now(&owner->clock);
	text_page_print(&dump->page,
			"wheel %p: interval %" PRId64 ", %s of %zu slots, now %" PRId64
			", pending %" PRIu64 ", queued %zu%s\n",
			(void *)wheel, owner->clock.ticks.interval,
			wheel_layout_name(owner->plan.layout), owner->plan.slots, dump->now,
			counter_read(&owner->pending_count),
			(size_t)command_queue_count(&owner->queue),
			wheel_state(wheel) == TW_OK ? "" : ", stopped");
}

static enum tw_status dump_end(struct dump *dump)
{
	text_page_give(&dump->page);
	if (dump->file && fflush(dump->file) != 0)
		dump->failed = true;
	return dump->failed ? TW_SYSTEM : TW_OK;
}

/* Writes the key as a string of C. A byte that is no printable ASCII stands by its number. */
static void dump_key(struct dump *dump, const unsigned char *key, size_t size)
{
	enum { BYTES_A_LINE = 64, LONGEST_BYTE = 4 };
	char text[BYTES_A_LINE * LONGEST_BYTE + 1];
	size_t length = 0;

	text_page_print(&dump->page, "key \"");
	for (size_t i = 0; i < size; i++) {
		bool is_plain = key[i] >= ' ' && key[i] <= '~' && key[i] != '"' && key[i] != '\\';

		length += (size_t)snprintf(text + length, sizeof(text) - length,
					   is_plain ? "%c" : "\\x%02x", key[i]);
		if (i % BYTES_A_LINE == BYTES_A_LINE - 1 || i == size - 1) {
			text_page_print(&dump->page, "%s", text);
			length = 0;
		}
	}
	text_page_print(&dump->page, "\"");
}

static void dump_timer(void *context, const struct tw_pending_timer *timer)
{
	struct dump *dump = context;

	if (timer->key)
		dump_key(dump, timer->key, timer->key_size);
	else
		text_page_print(&dump->page, "timer %" PRIu64 " run 0x%" PRIxPTR, timer->timer.id,
				(uintptr_t)timer->run);
	text_page_print(&dump->page, " value 0x%" PRIxPTR, (uintptr_t)timer->value);
	if (timer->deadline == TW_FOREVER)
		text_page_print(&dump->page, " deadline never");
	else
		text_page_print(&dump->page, " deadline %" PRId64 " in %" PRId64, timer->deadline,
				timer->deadline - dump->now);
	if (timer->period > 0)
		text_page_print(&dump->page, " period %" PRId64, timer->period);
	text_page_print(&dump->page, "\n");
}

static int dump_visit(void *context, const struct tw_pending_timer *timer)
{
	struct dump *dump = context;

	dump_timer(dump, timer);
	return !dump->failed;
}

enum tw_status tw_dump(struct tw_wheel *wheel, FILE *file)
{
	struct dump dump = {.file = file};
	enum tw_status status = wheel_state(wheel);
	enum tw_status written;

	if (status != TW_OK)
		return status;
	if (!file)
		return TW_INVALID;
	dump_begin(&dump, wheel);
	status = tw_each(wheel, dump_visit, &dump);
	written = dump_end(&dump);
	return status == TW_OK ? written : status;
}

enum tw_status tw_dump_stopped(struct tw_wheel *wheel, int descriptor)
{
	struct dump dump = {.descriptor = descriptor};
	struct owner *owner;

	if (!wheel)
		return TW_INVALID;
	owner = &wheel->owner;
	dump_begin(&dump, wheel);
	if (!owner->is_stopped)
		walk_all(&owner->pending, &owner->out.handles, dump_timer, &dump);
	return dump_end(&dump);
}
