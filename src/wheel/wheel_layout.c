/* SPDX-License-Identifier: MIT */
#include "wheel_layout.h"

#include <assert.h>

void wheel_take_coming(struct wheel *wheel, struct list *slot)
{
	int free = WHEEL_COMING - 1;

	if (wheel_slot_is_empty(slot))
		return;
	if (wheel->coming_used != UINT64_MAX)
		free = __builtin_ctzll(~wheel->coming_used);
	list_append_all(&wheel->coming[free], slot);
	wheel->coming_used |= (uint64_t)1 << free;
}

void wheel_take_due(struct wheel *wheel, struct list *slot)
{
	if (wheel->ordered)
		wheel_take_coming(wheel, slot);
	else if (!wheel_slot_is_empty(slot))
		list_append_all(&wheel->due, slot);
}

size_t wheel_check_list(const struct wheel *wheel, const struct list *list, uint64_t first)
{
	size_t count = 0;

	if (!list->next)
		return 0;
	for (struct list *link = list->next; link != list; link = link->next, count++) {
		assert(link->next->previous == link);
		assert(first == 0 ||
		       (timer_of_link(link)->by_tick
				? timer_of_link(link)->tick
				: tick_after(&wheel->ticks, timer_of_link(link)->deadline)) >=
			       first);
	}
	(void)wheel;
	(void)first;
	return count;
}
