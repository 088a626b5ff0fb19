/* SPDX-License-Identifier: MIT */
/*
 * The owner's loop. A turn applies commands, expires what is due, hands on what was retired,
 * answers requests; with a pool each of these does a bounded number of steps, so that a turn takes
 * well under a millisecond whatever there is to do, and the next turn goes on. (One step is as
 * large as the wheel: a drained wheel's slots are freed at once.)
 *
 * With a pool, jobs are gathered into batches and submitted together. Inline, they are run in the
 * order of events: timers expire one at a time, and after each job the commands that it gave are
 * applied, so a task can still stop another one of the same tick.
 *
 * Sleep. After a turn that found commands the owner naps: for 50 µs only a request or a half full
 * queue wakes it, so busy producers don't pay a system call for each command. A turn that found
 * nothing is followed by sleep until the next deadline or command.
 *
 * A crowd that is due in one tick takes many turns. On a real clock with a pool, the ticks that
 * come up meanwhile overtake it (wheel.c), one a turn. On a manual clock, and inline, everything is
 * done in order: a tick is finished before the next begins.
 *
 * Where the pool's backlog has a limit, timers that are due stay in the wheel until the pool has
 * room, and no tick begins or overtakes meanwhile. All else goes on; the pool wakes the owner.
 */
#include "owner.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/thread.h"
#include "base/trace.h"

enum {
	COMMANDS_A_TURN = 1024,
	CHANGES_A_TURN = 1024,
	TIMERS_A_TURN = 1024, /* looked at: expired or re-filed */
	RETIRED_A_TURN = 512,
	JOBS_A_SUBMISSION = 256
};

static const tw_duration nap = 50 * TW_MICROSECOND;
/* What a crowd in one tick may take to be worked off: well over a million timers. */
static const tw_duration patience = TW_SECOND / 2;

#ifdef TW_DEBUG
static const bool owner_checks = true;
#else
static const bool owner_checks = false;
#endif

static void owner_init_lists(struct owner *owner)
{
	list_init(&owner->round);
	list_init(&owner->jobs);
	list_init(&owner->next_jobs);
	list_init(&owner->next_timers);
	list_init(&owner->retirements);
	list_init(&owner->advances);
	list_init(&owner->idlers);
	list_init(&owner->parked);
}

static void owner_init_target(struct owner *owner, const struct owner_settings *settings)
{
	owner->target.clock = &owner->clock;
	owner->target.store = &owner->store;
	owner->target.handles = &owner->handles;
	owner->target.alarms = &owner->alarms;
	owner->target.owner = &owner->event;
	owner->target.execute = settings->execute;
	owner->target.release = settings->options->release;
	owner->target.context = settings->options->context;
	if (settings->options->slow_task.threshold > 0)
		owner->target.slow_task = settings->options->slow_task;
	owner->seat.bin = &owner->bin;
}

static enum tw_status owner_init_pool(struct owner *owner, const struct tw_options *options)
{
	if (options->workers == TW_WORKERS_INLINE)
		return TW_OK;
	owner->pool_is_limited = options->max_unfinished > 0;
	owner->pool = worker_pool_create(options, &owner->target);
	if (owner->pool)
		return TW_OK;
	return errno == ENOMEM ? TW_NO_MEMORY : TW_SYSTEM;
}

enum tw_status owner_init(struct owner *owner, const struct owner_settings *settings)
{
	const struct tw_options *options = settings->options;
	enum tw_status status = TW_NO_MEMORY;

	owner->plan = (struct shelf_plan){.layout = options->layout,
					  .slots = settings->slots,
					  .ordered = options->workers == TW_WORKERS_INLINE};
	owner->plan.patience = (uint64_t)(patience / settings->interval) + 1;
	owner->max_pending = options->max_pending;
	owner->has_thread = options->drive == TW_DRIVE_THREAD;
	owner_init_lists(owner);
	owner_init_target(owner, settings);
	if (!clock_init(&owner->clock, options->clock, settings->interval))
		return TW_SYSTEM;
	if (!event_count_init(&owner->event, options->clock == TW_CLOCK_BOOTTIME))
		return TW_SYSTEM;
	if (!shelf_init(&owner->shelf, &owner->plan))
		goto no_shelf;
	if (!command_queue_init(&owner->queue, options->queue_capacity))
		goto no_queue;
	if (!handle_table_init(&owner->handles))
		goto no_handles;
	alarm_table_init(&owner->alarms);
	timer_store_init(&owner->store);
	status = owner_init_pool(owner, options);
	if (status != TW_OK)
		goto no_pool;
	requests_init(&owner->requests);
	pthread_mutex_init(&owner->drive, NULL);
	return TW_OK;
no_pool:
	timer_store_destroy(&owner->store);
	alarm_table_destroy(&owner->alarms);
	handle_table_destroy(&owner->handles);
no_handles:
	command_queue_destroy(&owner->queue);
no_queue:
	shelf_destroy(&owner->shelf);
no_shelf:
	event_count_destroy(&owner->event);
	return status;
}

void owner_destroy(struct owner *owner)
{
	if (!owner->is_stopped)
		shelf_destroy(&owner->shelf);
	pthread_mutex_destroy(&owner->drive);
	requests_destroy(&owner->requests);
	if (owner->pool)
		worker_pool_destroy(owner->pool);
	timer_store_flush(&owner->store, &owner->bin);
	timer_store_destroy(&owner->store);
	alarm_table_destroy(&owner->alarms);
	handle_table_destroy(&owner->handles);
	command_queue_destroy(&owner->queue);
	event_count_destroy(&owner->event);
}

bool owner_is_here(struct owner *owner)
{
	/* relaxed: only the calling thread itself can have written its own name. */
	return atomic_load_explicit(&owner->driver, memory_order_relaxed) ==
	       (uintptr_t)pthread_self();
}

/* Inline jobs keep the order of events, so they wait while a retired shelf is being emptied. */
static struct list *owner_jobs_end(struct owner *owner)
{
	if (list_is_empty(&owner->retirements))
		return &owner->jobs;
	return &list_entry(owner->retirements.previous, struct retirement, link)->after;
}

void owner_hand_over(struct owner *owner, struct timer *timer, enum timer_job job)
{
	timer->job = (uint8_t)job;
	if (owner->pool)
		job_batches_add(&owner->batches[JOB_LANE_PROMPT], timer);
	else
		list_append(owner_jobs_end(owner), &timer->link);
}

void owner_release(struct owner *owner, struct timer *timer, enum tw_reason reason)
{
	if (!owner->target.release) {
		timer_free(&owner->store, &owner->bin, timer_keyed(timer));
		return;
	}
	timer->reason = (uint8_t)reason;
	owner_hand_over(owner, timer, TIMER_RELEASE);
}

/* Submits the jobs gathered so far, or runs them. */
static void owner_dispatch(struct owner *owner)
{
	if (!owner->pool) {
		owner_run_jobs(owner);
		return;
	}
	for (int lane = 0; lane < JOB_LANES; lane++)
		worker_pool_submit(owner->pool, (enum job_lane)lane, &owner->batches[lane]);
}

/* Up to which time things are due. */
static tw_duration owner_target_time(struct owner *owner)
{
	if (list_is_empty(&owner->advances))
		return clock_now(&owner->clock);
	return list_entry(owner->advances.next, struct request, link)->time;
}

/* Returns how many of the timers that are counted: not an alarm. */
static size_t owner_hand_over_expired(struct owner *owner, struct timer *timer, bool late)
{
	timer_set_place(timer, TIMER_AWAY);
	if (timer_is_alarm(timer) && !owner_claim_alarm(owner, timer_alarm(timer)))
		return 0;
	timer->job = TIMER_RUN;
	if (owner->pool && late)
		job_batches_add(&owner->batches[JOB_LANE_BULK], timer);
	else
		owner_hand_over(owner, timer, TIMER_RUN);
	return !timer_is_alarm(timer);
}

static bool owner_has_submission(const struct owner *owner)
{
	return owner->batches[JOB_LANE_PROMPT].count + owner->batches[JOB_LANE_BULK].count >=
	       JOBS_A_SUBMISSION;
}

/* Looks at some of the timers whose slot came up; returns how many at most. */
static size_t owner_expire_some(struct owner *owner)
{
	struct timer *expired[SHELF_BATCH];
	size_t most = !owner->pool ? 1 : owner->room < SHELF_BATCH ? owner->room : SHELF_BATCH;
	size_t count = shelf_expire(&owner->shelf, expired, most);
	bool late = wheel_expired_late(owner->shelf.wheel);
	size_t fired = 0;

	owner->room -= count;
	for (size_t i = 0; i < count; i++)
		fired += owner_hand_over_expired(owner, expired[i], late);
	counter_add_ordered(&owner->counts.fired, fired);
	TRACE_EXPIRE(fired);
	owner_unreserve(owner, fired);
	if (!owner->pool)
		owner->rounds = 0;
	if (!owner->pool || owner_has_submission(owner))
		owner_dispatch(owner);
	return most;
}

static void owner_advance_to(struct owner *owner, uint64_t tick)
{
	tw_duration time = clock_tick_time(&owner->clock, tick);

	if (owner->clock.kind == TW_CLOCK_MANUAL && time > clock_now(&owner->clock))
		clock_set_manual(&owner->clock, time);
	wheel_advance(owner->shelf.wheel, tick);
	if (owner_checks)
		wheel_check(owner->shelf.wheel);
}

/* Where the timers of a tick have outlasted a turn, lets the next tick begin all the same. */
static void owner_overtake(struct owner *owner, uint64_t target)
{
	uint64_t next;

	if (!owner->pool || owner->clock.kind == TW_CLOCK_MANUAL || owner->is_stopped ||
	    owner->held_back)
		return;
	next = wheel_next_tick(owner->shelf.wheel);
	if (next <= target && wheel_is_busy(owner->shelf.wheel))
		owner_advance_to(owner, next);
}

/* False: it is a handle that was stopped before. */
static bool owner_claim(struct owner *owner, struct timer *timer)
{
	if (!timer_is_handle(timer) || handle_claim(timer_handle(timer)))
		return true;
	handle_let_go(&owner->handles, &owner->bin.handles, timer_handle(timer));
	return false;
}

/* No function is to be called with it. */
static void owner_free_timer(struct owner *owner, struct timer *timer)
{
	if (timer_is_handle(timer))
		handle_let_go(&owner->handles, &owner->bin.handles, timer_handle(timer));
	else
		timer_free(&owner->store, &owner->bin, timer_keyed(timer));
}

void owner_retire_timer(struct owner *owner, struct timer *timer, struct drain *drain)
{
	timer_set_place(timer, TIMER_AWAY);
	if (timer_is_alarm(timer)) {
		owner_retire_alarm(owner, timer_alarm(timer));
		if (drain)
			drain_release(drain);
		return;
	}
	if (!owner_claim(owner, timer)) {
		counter_add_ordered(&owner->counts.removed, 1);
		if (drain)
			drain_release(drain);
		return;
	}
	counter_add_ordered(drain ? &owner->counts.drained : &owner->counts.stopped, 1);
	timer->job = drain ? TIMER_DRAIN : TIMER_RELEASE;
	timer->reason = TW_STOPPED;
	if (drain)
		timer->drain = drain;
	if (!drain && !owner->target.release)
		owner_free_timer(owner, timer);
	else if (owner->pool)
		job_batches_add(&owner->batches[JOB_LANE_BULK], timer);
	else
		list_append(&owner->jobs, &timer->link);
}

void owner_end_drain(struct owner *owner, struct retirement *retirement)
{
	drain_release(retirement->drain);
	free(list_entry(retirement, struct drain_request, retirement));
	/* relaxed: a count, orders nothing. */
	atomic_fetch_sub_explicit(&owner->drains, 1, memory_order_relaxed);
}

/* All its timers are handed over. */
static void owner_end_retirement(struct owner *owner, struct retirement *retirement)
{
	list_remove(&retirement->link);
	list_append_all(&owner->jobs, &retirement->after);
	wheel_destroy(retirement->shelf.wheel);
	if (retirement->drain)
		owner_end_drain(owner, retirement);
}

static struct retirement *owner_first_retirement(struct owner *owner)
{
	return list_entry(owner->retirements.next, struct retirement, link);
}

void owner_retire_some(struct owner *owner)
{
	struct retirement *retirement = owner_first_retirement(owner);
	struct timer *taken[SHELF_BATCH];
	struct drain *drain = retirement->drain;
	size_t count = wheel_take(retirement->shelf.wheel, taken, SHELF_BATCH);

	if (drain) {
		/* relaxed: the jobs are published by their submission. */
		atomic_fetch_add_explicit(&drain->references, count, memory_order_relaxed);
	}
	for (size_t i = 0; i < count; i++)
		owner_retire_timer(owner, taken[i], drain);
	if (count == 0 && timer_index_discard(&retirement->shelf.index))
		owner_end_retirement(owner, retirement);
}

/* The next tick up to `target` begins; false: there is none. */
static bool owner_begin_tick(struct owner *owner, uint64_t target)
{
	struct wheel *wheel = owner->shelf.wheel;
	uint64_t next = wheel_next_tick(wheel);

	if (next <= target) {
		owner_begin_rounds(owner);
		owner_advance_to(owner, next);
		return true;
	}
	owner_advance_to(owner, target > wheel_now(wheel) ? target : wheel_now(wheel));
	return false;
}

/* Expires what is due by `target`. True: all of it. */
static bool owner_expire(struct owner *owner, uint64_t target)
{
	size_t seen = 0;
	bool settled = false;
	bool next_turn_begun = true;

	owner_overtake(owner, target);
	owner->held_back = false;
	owner->room = owner->pool ? worker_pool_room(owner->pool) : SIZE_MAX;
	if (!owner->resumed)
		owner_begin_next_turn(owner);
	while (!owner->is_stopped && !owner->is_crowded && seen < TIMERS_A_TURN) {
		if (wheel_is_busy(owner->shelf.wheel)) {
			if (owner->room == 0) {
				counter_add_ordered(&owner->counts.held_back, 1);
				owner->held_back = true;
				return false;
			}
			seen += owner_expire_some(owner);
			settled = false;
		} else if (!settled) {
			owner_settle(owner);
			settled = true;
		} else if (!next_turn_begun) {
			/* Each tick is as a turn to the handles that tasks set for now. */
			owner_begin_next_turn(owner);
			next_turn_begun = true;
		} else if (owner_begin_tick(owner, target)) {
			next_turn_begun = false;
			seen++;
		} else {
			return true;
		}
	}
	/* What inline tasks set in the past before the stop is still owed. */
	if (owner->is_stopped)
		owner_settle(owner);
	return owner->is_stopped;
}

/* With a pool. Inline, owner_settle() does it. */
static void owner_retire(struct owner *owner)
{
	for (int i = 0; i < RETIRED_A_TURN / SHELF_BATCH && owner->pool; i++) {
		if (list_is_empty(&owner->retirements))
			break;
		owner_retire_some(owner);
	}
}

static void owner_answer_idlers(struct owner *owner)
{
	struct list *link;

	while ((link = list_take_first(&owner->idlers)))
		requests_answer(&owner->requests, list_entry(link, struct request, link), TW_OK);
}

/* All is done that was due at the end of the first advance, if it had begun. */
static void owner_end_advance(struct owner *owner)
{
	struct request *request = list_entry(owner->advances.next, struct request, link);

	if (!request->begun)
		return;
	list_remove(&request->link);
	if (request->time > clock_now(&owner->clock))
		clock_set_manual(&owner->clock, request->time);
	requests_answer(&owner->requests, request, TW_OK);
}

/* The first advance's end: `time` was by how much. */
static void owner_begin_advances(struct owner *owner)
{
	struct request *request;

	if (list_is_empty(&owner->advances))
		return;
	request = list_entry(owner->advances.next, struct request, link);
	if (request->begun)
		return;
	request->begun = true;
	request->time = time_add(clock_now(&owner->clock), request->time);
}

/* When a turn began: by the clock, and by the processor time that the thread has had. */
struct turn_start {
	tw_duration clock;
	tw_duration work;
};

static struct turn_start turn_start_now(void)
{
	return (struct turn_start){.clock = clock_read_real(CLOCK_MONOTONIC),
				   .work = clock_read_real(CLOCK_THREAD_CPUTIME_ID)};
}

static void owner_publish(struct owner *owner, const struct turn_start *start)
{
	struct turn_start end = turn_start_now();
	tw_duration took = end.clock - start->clock - owner->task_time;
	/* What inline tasks had of the processor is not known, only how long they took. */
	tw_duration work = owner->task_time > 0 ? took : end.work - start->work;

	owner_publish_pending(owner);
	counter_raise(&owner->counts.longest_turn, (uint64_t)work);
	counter_raise(&owner->counts.longest_turn_wall, (uint64_t)took);
	counter_add_ordered(&owner->counts.turns, 1);
}

bool owner_is_busy(struct owner *owner)
{
	return owner->is_crowded || !list_is_empty(&owner->retirements) ||
	       (!owner->is_stopped && wheel_is_busy(owner->shelf.wheel));
}

/* Applies commands; true: there may be more. */
static bool owner_begin_turn(struct owner *owner)
{
	bool more;

	owner->task_time = 0;
	owner->applied = 0;
	more = !owner_see_handles(owner, CHANGES_A_TURN);
	if (owner_resume_turn(owner))
		return true;
	return owner_apply(owner, COMMANDS_A_TURN) || more;
}

bool owner_turn(struct owner *owner)
{
	struct turn_start start = turn_start_now();
	bool more;
	bool done;

	TRACE_TURN_BEGIN();
	more = owner_begin_turn(owner);
	owner_dispatch(owner);
	owner_begin_advances(owner);
	done = owner_expire(owner, clock_tick_before(&owner->clock, owner_target_time(owner)));
	owner_retire(owner);
	owner_dispatch(owner);
	owner_answer_parked(owner);
	owner_publish(owner, &start);
	TRACE_TURN_END(owner->applied);
	if (owner->held_back)
		return more || !list_is_empty(&owner->retirements);
	if (!done || owner_is_busy(owner))
		return true;
	if (!list_is_empty(&owner->advances)) {
		owner_end_advance(owner);
		return true;
	}
	owner_answer_idlers(owner);
	return more;
}

bool owner_has_next_jobs(struct owner *owner)
{
	return owner_has_jobs(owner) || !list_is_empty(&owner->next_timers);
}

tw_duration owner_next_time(struct owner *owner)
{
	if (owner->is_stopped || owner->held_back)
		return TW_FOREVER;
	return clock_tick_time(&owner->clock, wheel_next_tick(owner->shelf.wheel));
}

static bool owner_is_ending(struct owner *owner)
{
	/* seq_cst: the second look before sleep; pairs with the store in owner_end(). */
	return atomic_load_explicit(&owner->ending, memory_order_seq_cst);
}

/* The second look, after the announcement. */
static bool owner_must_stay_awake(struct owner *owner, enum event_count_state sleep)
{
	size_t tolerated = sleep == EVENT_COUNT_NAPPING ? (size_t)owner->queue.capacity / 2 : 0;

	if (requests_first_position(&owner->requests) != REQUESTS_NONE || owner_is_ending(owner))
		return true;
	if (owner->held_back && worker_pool_room(owner->pool) > 0)
		return true;
	if (sleep == EVENT_COUNT_SLEEPING && (handle_table_has_some(&owner->handles) ||
					      handle_queue_has_some(&owner->alarms.changed)))
		return true;
	return command_queue_count(&owner->queue) > tolerated;
}

int owner_descriptor(struct owner *owner)
{
	int descriptor = event_count_descriptor(&owner->event, owner->clock.id);

	if (descriptor >= 0)
		owner_begin_sleep(owner, false);
	return descriptor;
}

void owner_begin_sleep(struct owner *owner, bool more)
{
	if (owner->event.both < 0)
		return;
	event_count_prepare(&owner->event, EVENT_COUNT_SLEEPING);
	if (more || owner_must_stay_awake(owner, EVENT_COUNT_SLEEPING) ||
	    owner_has_next_jobs(owner))
		event_count_wake(&owner->event);
	else if (owner->clock.kind != TW_CLOCK_MANUAL)
		event_count_arm(&owner->event, owner_next_time(owner));
}

void owner_end_sleep(struct owner *owner)
{
	if (owner->event.both >= 0)
		event_count_disarm(&owner->event);
}

static void owner_sleep(struct owner *owner)
{
	enum event_count_state sleep =
		owner->applied > 0 ? EVENT_COUNT_NAPPING : EVENT_COUNT_SLEEPING;
	tw_duration until = TW_FOREVER;

	if (owner->clock.kind != TW_CLOCK_MANUAL)
		until = owner_next_time(owner);
	if (sleep == EVENT_COUNT_NAPPING) {
		tw_duration now = clock_read_real(owner->clock.id);

		until = until < now + nap ? until : now + nap;
	}
	event_count_prepare(&owner->event, sleep);
	if (owner_must_stay_awake(owner, sleep)) {
		event_count_cancel(&owner->event);
		/* A producer may have been descheduled with a command half written. */
		if (command_queue_peek(&owner->queue, 1) == 0)
			thread_back_off(&owner->tries);
		else
			owner->tries = 0;
		return;
	}
	owner->tries = 0;
	job_flush(&owner->target, &owner->bin);
	TRACE_SLEEP(until);
	event_count_wait(&owner->event, until);
	TRACE_WAKE();
	counter_add_ordered(&owner->counts.wakeups, 1);
}

static void *owner_run(void *argument)
{
	struct owner *owner = argument;

	/* relaxed: read by this thread alone. */
	atomic_store_explicit(&owner->driver, (uintptr_t)pthread_self(), memory_order_relaxed);
	thread_be_prompt();
	for (;;) {
		if (owner_turn(owner) || owner_has_next_jobs(owner))
			continue;
		if (owner_is_ending(owner))
			break;
		owner_sleep(owner);
	}
	return NULL;
}

int owner_start(struct owner *owner, const char *name)
{
	return thread_start(&owner->thread, owner_run, owner, name, "owner");
}

void owner_end(struct owner *owner)
{
	if (!owner->has_thread)
		return;
	/* seq_cst: pairs with the load in owner_is_ending(). */
	atomic_store_explicit(&owner->ending, true, memory_order_seq_cst);
	event_count_notify(&owner->event, EVENT_COUNT_NAPPING);
	pthread_join(owner->thread, NULL);
}
