/* SPDX-License-Identifier: MIT */
/*
 * A list is circular and doubly linked, with its links inside the elements. An empty list points to
 * itself, so linking and unlinking have no special case and never fail.
 */
#ifndef LIST_H
#define LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next;
	struct list *previous;
};

#define list_entry(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

static inline void list_init(struct list *list)
{
	list->next = list;
	list->previous = list;
}

static inline bool list_is_empty(const struct list *list)
{
	return list->next == list;
}

static inline void list_append(struct list *list, struct list *link)
{
	struct list *last = list->previous;

	link->next = list;
	link->previous = last;
	last->next = link;
	list->previous = link;
}

static inline void list_remove(struct list *link)
{
	link->previous->next = link->next;
	link->next->previous = link->previous;
}

/* Takes the first element out and returns it, or NULL if there is none. */
static inline struct list *list_take_first(struct list *list)
{
	struct list *first = list->next;

	if (first == list)
		return NULL;
	list_remove(first);
	return first;
}

/* Moves all elements of `from`, in order, behind the last one of `list`, in constant time. */
static inline void list_append_all(struct list *list, struct list *from)
{
	if (list_is_empty(from))
		return;
	from->next->previous = list->previous;
	from->previous->next = list;
	list->previous->next = from->next;
	list->previous = from->previous;
	list_init(from);
}

#endif
