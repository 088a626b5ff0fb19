/* SPDX-License-Identifier: MIT */
/*
 * A question is a command whose maker waits for the answer: it lies on the maker's stack, and is
 * the owner's from its publication, or its service in the maker's own thread, until the answer.
 */
#ifndef QUESTION_H
#define QUESTION_H

#include <stdatomic.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "base/list.h"
#include "base/waiting.h"
#include "walk.h"
#include "wheel/timer.h"

enum question_kind {
	QUESTION_FLUSH, /* whether all before it is applied */
	QUESTION_CONTAINS,
	QUESTION_TAKE,
	QUESTION_WALK,
	QUESTION_ADD,
	QUESTION_TAKE_OUT, /* an alarm that is being destroyed */
	QUESTION_ADVANCE   /* answered when it has ended */
};

struct question {
	enum question_kind kind;
	struct list link; /* advance: in the owner's list */
	union {
		struct {
			const void *bytes;
			size_t size;
			uint32_t hash;
		} key;                     /* contains, take */
		struct keyed_timer *timer; /* add: becomes the owner's on TW_OK */
		struct walk *walk;         /* walk: the owner's for a step */
		struct alarm *alarm;       /* take out */
		tw_duration time;          /* advance: by how much, once begun its end */
	};
	bool begun; /* advance: it is under way */
	/* The answer. */
	union {
		tw_duration deadline; /* contains */
		void *value;          /* take */
	};
	enum tw_status status;
	_Atomic uint64_t answers; /* 1 once it is answered */
};

/* Owner: from here on the question is its maker's. */
static inline void question_answer(struct question *question, enum tw_status status,
				   struct waiting *waiting)
{
	question->status = status;
	/* seq_cst: publishes the answer, before waiting_tell(); pairs with moment_has_come(). */
	atomic_store_explicit(&question->answers, 1, memory_order_seq_cst);
	waiting_tell(waiting);
}

/* What a caller waits for has come once the count, which only rises, is above the number. */
struct moment {
	const _Atomic uint64_t *count;
	uint64_t number;
};

static inline bool moment_has_come(const struct moment *moment)
{
	/* seq_cst: after waiting_begin(); sees what came before; pairs with the stores in
	 * question_answer() and owner_end_idle(). */
	return atomic_load_explicit(moment->count, memory_order_seq_cst) > moment->number;
}

#endif
