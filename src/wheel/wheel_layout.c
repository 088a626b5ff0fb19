/* SPDX-License-Identifier: MIT */
#include "wheel_layout.h"

void wheel_init(struct wheel *wheel, const struct wheel_layout *layout, bool ordered)
{
	wheel->layout = layout;
	wheel->ordered = ordered;
	wheel->early_from = UINT64_MAX;
	wheel->expired_late = false;
	wheel->now = 0;
	wheel->sequence = 0;
	wheel->count = 0;
	list_init(&wheel->due);
	list_init(&wheel->late);
	wheel_sort_init(&wheel->sort);
	wheel->coming_used = 0;
	for (int level = 0; level < WHEEL_MAX_LEVELS; level++)
		list_init(&wheel->coming[level]);
}

void wheel_take_coming(struct wheel *wheel, int level, struct list *slot)
{
	list_append_all(&wheel->coming[level], slot);
	wheel->coming_used |= (uint64_t)1 << level;
}

void wheel_take_due(struct wheel *wheel, struct list *slot)
{
	if (wheel->ordered)
		wheel_take_coming(wheel, 0, slot);
	else
		list_append_all(&wheel->due, slot);
}
