/* SPDX-License-Identifier: MIT */
#include "waiting.h"

#include "thread.h"

void waiting_init(struct waiting *waiting)
{
	atomic_init(&waiting->waiters, 0);
	pthread_mutex_init(&waiting->lock, NULL);
	condition_init(&waiting->done);
}

void waiting_destroy(struct waiting *waiting)
{
	pthread_cond_destroy(&waiting->done);
	pthread_mutex_destroy(&waiting->lock);
}

void waiting_begin(struct waiting *waiting)
{
	pthread_mutex_lock(&waiting->lock);
	/* seq_cst: announces, before the look; pairs with the load in waiting_tell(). */
	atomic_fetch_add_explicit(&waiting->waiters, 1, memory_order_seq_cst);
}

bool waiting_pause(struct waiting *waiting, const struct clock *clock, tw_duration deadline)
{
	return clock_wait(clock, &waiting->done, &waiting->lock, deadline);
}

void waiting_end(struct waiting *waiting)
{
	/* relaxed: a wake too many does no harm. */
	atomic_fetch_sub_explicit(&waiting->waiters, 1, memory_order_relaxed);
	pthread_mutex_unlock(&waiting->lock);
}

void waiting_wake(struct waiting *waiting)
{
	pthread_mutex_lock(&waiting->lock);
	pthread_cond_broadcast(&waiting->done);
	pthread_mutex_unlock(&waiting->lock);
}
