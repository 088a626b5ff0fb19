/* SPDX-License-Identifier: MIT */
/*
 * What is asked of the owner beside the commands: rare, mostly waited for. A request takes effect
 * between the commands that were given before and after it; it needs no room in the queue, so it
 * can't fail. Any thread adds and waits; the owner takes and answers.
 */
#ifndef REQUEST_H
#define REQUEST_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "base/clock.h"
#include "base/list.h"
#include "walk.h"
#include "wheel/timer.h"

enum request_kind {
	REQUEST_FLUSH,
	REQUEST_IDLE,
	REQUEST_CONTAINS,
	REQUEST_TAKE,
	REQUEST_REMAINING,
	REQUEST_WALK,
	REQUEST_ADD,
	REQUEST_TAKE_OUT, /* an alarm that is being destroyed */
	REQUEST_ADVANCE,
	REQUEST_DRAIN, /* not answered */
	REQUEST_STOP   /* not answered */
};

struct request {
	enum request_kind kind;
	uint64_t position; /* that of the first command that comes after it */
	struct list link;
	union {
		struct {
			const void *bytes;
			size_t size;
			uint32_t hash;
		} key;                     /* contains, take */
		uint64_t id;               /* remaining: of a handle */
		struct keyed_timer *timer; /* add: becomes the owner's on TW_OK */
		struct walk *walk;         /* walk: the owner's for a step */
		struct alarm *alarm;       /* take out */
		/* advance: by how much, once begun the time where it ends; idle: when it came */
		tw_duration time;
	};
	bool is_here; /* its maker is the owner, and waits for no other thread; constant */
	bool begun;   /* advance: it is under way */
	/* The answer. */
	union {
		tw_duration deadline; /* contains, remaining */
		void *value;          /* take */
	};
	enum tw_status status;
	atomic_bool answered;
	bool abandoned; /* its maker waits no more, so the answer frees it; under the lock */
};

struct requests {
	pthread_mutex_t lock;
	pthread_cond_t answer;
	struct list waiting;             /* in order of position; under the lock */
	_Atomic uint64_t first_position; /* that of the first of them, or REQUESTS_NONE */
};

#define REQUESTS_NONE UINT64_MAX

void requests_init(struct requests *requests);
void requests_destroy(struct requests *requests);

/* `tail` is the command queue's; read under the lock, so that positions rise. */
void requests_add(struct requests *requests, struct request *request, _Atomic uint64_t *tail);
/* Owner: the position of the first request, or REQUESTS_NONE. */
static inline uint64_t requests_first_position(const struct requests *requests)
{
	/* seq_cst: the second look of an owner that goes to sleep; pairs with the store in
	 * requests_publish_first(). */
	return atomic_load_explicit(&requests->first_position, memory_order_seq_cst);
}
/* Owner: takes the first one; there must be one. */
struct request *requests_take(struct requests *requests);
/* Owner: from here on the request is its maker's again, or freed. */
void requests_answer(struct requests *requests, struct request *request, enum tw_status status);
bool request_is_answered(struct request *request);
enum tw_status requests_wait(struct requests *requests, struct request *request);
/*
 * Waits for the answer until `deadline` of the clock, which may be TW_FOREVER. Returns TW_TIMED_OUT
 * if there is no answer by then: the request, which malloc made, then belongs to the owner.
 */
enum tw_status requests_wait_until(struct requests *requests, struct request *request,
				   const struct clock *clock, tw_duration deadline);

#endif
