/* SPDX-License-Identifier: MIT */
/* The order of links, and the work of a call. All orders of threads are proof/inbox.c's. */
#include "support/test.h"

#include "base/inbox.h"

TEST(once, links_come_in_the_order_of_their_adding_and_are_reversed_in_steps)
{
	static struct inbox_link links[10 * INBOX_STEP];
	const size_t count = sizeof(links) / sizeof(links[0]);
	struct inbox inbox = {.taken = NULL};
	size_t calls = 0;

	for (size_t i = 0; i < count; i++)
		inbox_add(&inbox, &links[i]);
	for (size_t taken = 0; taken < count; calls++) {
		struct inbox_link *link = inbox_take_oldest(&inbox);

		assert_true(link || inbox_is_turning(&inbox));
		if (!link)
			continue;
		assert_ptr_equal(link, &links[taken]);
		taken++;
	}
	/* No call has reversed more than its share. */
	assert_true(calls >= count + count / INBOX_STEP - 1);
	assert_null(inbox_take_oldest(&inbox));
	assert_true(inbox_is_empty(&inbox));
}
