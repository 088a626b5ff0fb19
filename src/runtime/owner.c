/* SPDX-License-Identifier: MIT */
/*
 * The owner's loop. A turn applies commands, expires what is due, and hands on what is stale; with
 * a pool each of these does a bounded number of steps, so that a turn takes well under a
 * millisecond whatever there is to do, and the next turn goes on.
 *
 * With a pool, jobs are gathered into batches and submitted together. Inline, they are run in the
 * order of events: timers expire one at a time, and after each job the commands that it gave are
 * applied, so a task can still stop another one of the same tick.
 *
 * Sleep. After a turn that found commands the owner naps: only a question, a half full queue or
 * what is set for now wakes it, so producers don't pay a system call for each command. A nap takes
 * 50 µs or, where the commands were few, until the end of the tick, but at most 1 ms: nothing that
 * is set meanwhile is due before. A turn that found nothing is followed by sleep until the next
 * deadline or command.
 *
 * A crowd that is due in one tick takes many turns. On a real clock with a pool, the ticks that
 * come up meanwhile overtake it (wheel.c): a turn begins every tick that has come, as long as what
 * is newly due has been handed over, before it goes on with what is left; and what a tick leaves
 * over at the end of its turn is late, and goes to the pool's bulk lane. On a manual clock, and
 * inline, everything is done in order: a tick is finished before the next begins.
 *
 * Invariants, between turns: each timer that is pending by its commands is in the pending set; what
 * left it is in a batch of the outbox, in a list of inline jobs, or handed over. The owner sleeps
 * only where it has looked at queue and inboxes after its announcement.
 */
#include "base/thread.h"
#include "owner_state.h"

enum {
	COMMANDS_A_TURN = 1024,
	CHANGES_A_TURN = 1024,
	CHANGES_A_DRIVE = 1 << 20, /* where callers drive, all that were made before */
	TIMERS_A_TURN = 1024,      /* looked at: expired or re-filed */
	SWEEPS_A_TURN = 8,
	JOBS_A_SUBMISSION = 256,
	FEW_COMMANDS = 64 /* in the turn before a nap */
};

static const tw_duration shortest_nap = 50 * TW_MICROSECOND;
static const tw_duration longest_nap = TW_MILLISECOND;
/* What a crowd in one tick may take to be worked off: well over a million timers. */
static const tw_duration patience = TW_SECOND / 2;

#ifdef TW_DEBUG
static const bool owner_checks = true;
#else
static const bool owner_checks = false;
#endif

enum tw_status owner_init(struct owner *owner, tw_duration interval, size_t slots,
			  tw_execute_fn *execute, const struct tw_options *options)
{
	bool is_ordered = options->workers == TW_WORKERS_INLINE;
	enum tw_status status = TW_NO_MEMORY;

	owner->patience = time_add(patience, interval);
	owner->has_thread = options->drive == TW_DRIVE_THREAD;
	owner->changes_a_turn = owner->has_thread ? CHANGES_A_TURN : CHANGES_A_DRIVE;
	owner->overtakes = !is_ordered && options->clock != TW_CLOCK_MANUAL;
	thread_setup_init(&owner->setup, options);
	owner->out.target.clock = &owner->clock;
	owner->out.target.owner = &owner->event;
	owner->poll_began = TW_FOREVER;
	owner->in.jobs_most = OWNER_JOBS_A_TURN;
	list_init(&owner->in.batch);
	if (!clock_init(&owner->clock, options->clock, interval))
		return TW_SYSTEM;
	if (!event_count_init(&owner->event,
			      options->clock == TW_CLOCK_BOOTTIME && owner->has_thread))
		return TW_SYSTEM;
	if (!pending_init(&owner->pending, slots, &owner->clock.ticks, is_ordered, owner->patience))
		goto no_pending;
	if (!command_queue_init(&owner->queue, options->queue_capacity))
		goto no_queue;
	status = outbox_init(&owner->out, execute, options);
	if (status != TW_OK)
		goto no_outbox;
	pthread_mutex_init(&owner->drive, NULL);
	pthread_mutex_init(&owner->advances, NULL);
	return TW_OK;
no_outbox:
	command_queue_destroy(&owner->queue);
no_queue:
	pending_destroy(&owner->pending);
no_pending:
	event_count_destroy(&owner->event);
	return status;
}

void owner_destroy(struct owner *owner)
{
	pending_destroy(&owner->pending);
	pthread_mutex_destroy(&owner->drive);
	pthread_mutex_destroy(&owner->advances);
	outbox_destroy(&owner->out);
	command_queue_destroy(&owner->queue);
	event_count_destroy(&owner->event);
}

/* Returns how many of the timers have fired, without alarms. */
static size_t owner_hand_over_expired(struct owner *owner, struct timer *timer, bool late)
{
	if (owner->pending.has_stale && owner_hand_over_if_stale(owner, timer))
		return 0;
	if (!timer_has_key(timer) && !owner_claim_alarm(owner, timer_alarm(timer)))
		return 0;
	outbox_run(&owner->out, timer, late ? JOB_LANE_BULK : JOB_LANE_PROMPT);
	return !timer_is_alarm(timer);
}

/* Expires an inline timer, if one look finds it, and runs it, and what it causes. Returns 1. */
static size_t owner_expire_one(struct owner *owner)
{
	struct timer *timer = pending_expire_next(&owner->pending);

	if (timer)
		counter_add_ordered(&owner->out.counts.fired,
				    owner_hand_over_expired(owner, timer, false));
	owner->in.batches = 0;
	owner_run_batch(owner);
	while (owner_has_jobs(owner) && owner_settle(owner))
		continue;
	return 1;
}

/* Looks at some of the timers that have come up; returns how many at most. */
static size_t owner_expire_some(struct owner *owner)
{
	const struct job_batches *batches = owner->out.batches;
	struct timer *expired[PENDING_BATCH];
	size_t count = pending_expire(&owner->pending, expired, PENDING_BATCH);
	bool late = owner->pending.wheel->expired_late;
	size_t fired = 0;

	for (size_t i = 0; i < count; i++)
		fired += owner_hand_over_expired(owner, expired[i], late);
	counter_add_ordered(&owner->out.counts.fired, fired);
	if (batches[JOB_LANE_PROMPT].count + batches[JOB_LANE_BULK].count >= JOBS_A_SUBMISSION)
		outbox_submit(&owner->out);
	return PENDING_BATCH;
}

/* Another tick or turn begins: inline tasks may cause as much again. */
static void owner_begin_batches(struct owner *owner)
{
	owner->in.batches = 0;
	owner->in.held_waits = false;
	owner->idle.is_early &= owner->poll_began != TW_FOREVER;
}

/* Begins the next tick up to `target`. Returns false if there is none; then the wheel is there. */
static inline bool owner_begin_tick(struct owner *owner, uint64_t target)
{
	struct wheel *wheel = owner->pending.wheel;
	uint64_t tick = wheel_next_tick(wheel);
	bool begins = tick <= target;
	tw_duration time;

	if (begins)
		owner_begin_batches(owner);
	else
		tick = target > wheel->now ? target : wheel->now;
	time = tick_time(&owner->clock.ticks, tick);
	if (owner->clock.kind == TW_CLOCK_MANUAL && time > clock_now(&owner->clock))
		clock_set_manual(&owner->clock, time);
	wheel_advance(wheel, tick);
	if (owner_checks)
		(void)wheel_check(wheel);
	return begins;
}

/* Does the next step of what has come up by `target` in a busy wheel. Returns how many timers it
 * has looked at, at most. */
static size_t owner_work_off(struct owner *owner, uint64_t target)
{
	if (!owner->out.pool)
		return owner_expire_one(owner);
	if (owner->overtakes && list_is_empty(&owner->pending.wheel->due) &&
	    owner_begin_tick(owner, target))
		return 1;
	return owner_expire_some(owner);
}

/* Lets expire what tasks have set for now: once a tick or turn, and not in tw_poll. Returns false
 * if there is none. */
static bool owner_release_held(struct owner *owner)
{
	if (owner->in.held_waits || owner->poll_began != TW_FOREVER ||
	    !pending_has_held(&owner->pending))
		return false;
	owner->in.held_waits = true;
	owner->idle.is_early = false;
	pending_release_held(&owner->pending);
	return true;
}

/* Expires what is due by `target`. Returns whether that was all of it. */
static bool owner_expire(struct owner *owner, uint64_t target)
{
	size_t seen = 0;

	/* What commands have caused, or the last turn has left. */
	while (owner_settle(owner))
		continue;
	while (!owner->is_stopped && !owner->in.is_crowded && seen < TIMERS_A_TURN) {
		if (wheel_is_busy(owner->pending.wheel))
			seen += owner_work_off(owner, target);
		else if (owner_settle(owner) || owner_release_held(owner))
			continue;
		else if (owner_begin_tick(owner, target))
			seen++;
		else
			return true;
	}
	/* A tick that has outlasted its turn. */
	if (owner->overtakes && !owner->is_stopped)
		wheel_put_off(owner->pending.wheel);
	return owner->is_stopped;
}

/* With a pool: hands over some of the stale timers, and submits what was gathered. */
static void owner_dispatch(struct owner *owner)
{
	if (!owner->out.pool)
		return;
	for (int i = 0; i < SWEEPS_A_TURN && owner->pending.has_stale; i++)
		owner_sweep(owner);
	outbox_submit(&owner->out);
}

bool owner_is_busy(struct owner *owner)
{
	return owner->in.is_crowded || owner->pending.has_stale ||
	       (!owner->is_stopped && wheel_is_busy(owner->pending.wheel));
}

bool owner_apply_turn(struct owner *owner, struct question *question)
{
	bool more = false;

	if (question) {
		owner_answer_here(owner, question);
	} else {
		more = owner_apply_changes(owner, CHANGES_A_TURN) >= CHANGES_A_TURN;
		more |= owner_apply(owner, COMMANDS_A_TURN);
	}
	owner_dispatch(owner);
	owner_publish_pending(owner);
	return more || (owner->out.pool && owner->pending.has_stale);
}

/* Begins a turn, which may go on with what the last one has left: applies commands. Returns whether
 * there may be more. */
static bool owner_begin_turn(struct owner *owner)
{
	/* Fewer than it ran jobs while it goes on with a batch. */
	size_t most =
		list_is_empty(&owner->in.batch) ? COMMANDS_A_TURN : owner->in.jobs_run / 2 + 1;
	bool more;

	owner->in.is_crowded = false;
	owner->in.jobs_run = 0;
	owner->in.task_time = 0;
	owner->applied = 0;
	event_count_calm(&owner->event);
	more = owner_apply_changes(owner, owner->changes_a_turn) >= owner->changes_a_turn;
	return owner_apply(owner, most) || more;
}

bool owner_turn(struct owner *owner)
{
	bool more = owner_begin_turn(owner);
	uint64_t target = tick_before(&owner->clock.ticks, owner_target_time(owner));
	bool done = owner_expire(owner, target);

	owner_dispatch(owner);
	owner_publish_pending(owner);
	if (!done || owner_is_busy(owner)) {
		/* Tasks that take longer than their periods may keep it busy for ever. */
		if (!owner->out.pool && !owner->is_stopped)
			(void)owner_end_idle(owner, owner->pending.wheel->now);
		if (done)
			owner->in.batches = 0;
		return true;
	}
	/* Those that came since wait for what has become due since, too; a poll leaves that. */
	if (owner_end_advance(owner, target) ||
	    (!owner_end_idle(owner, target + 1) && owner->poll_began == TW_FOREVER))
		more = true;
	owner_begin_batches(owner);
	return more;
}

tw_duration owner_next_time(struct owner *owner)
{
	if (owner->is_stopped)
		return TW_FOREVER;
	return tick_time(&owner->clock.ticks, wheel_next_tick(owner->pending.wheel));
}

/* Returns until when to sleep. */
static tw_duration owner_sleep_end(struct owner *owner)
{
	return owner->clock.kind == TW_CLOCK_MANUAL ? TW_FOREVER : owner_next_time(owner);
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

	if (owner_is_stopping(owner) || owner_is_ending(owner))
		return true;
	if (event_count_is_hurried(&owner->event))
		return true;
	if (sleep == EVENT_COUNT_SLEEPING && alarm_table_has_some(&owner->out.alarms))
		return true;
	return command_queue_count(&owner->queue) > tolerated;
}

int owner_descriptor(struct owner *owner)
{
	/* Once open it stays armed, and rings for what is still to be done. */
	if (owner->event.timer < 0 && event_count_descriptor(&owner->event, owner->clock.id) >= 0)
		owner_begin_sleep(owner, owner_is_busy(owner));
	return owner->event.timer;
}

void owner_begin_sleep(struct owner *owner, bool more)
{
	if (owner->has_thread || owner->event.timer < 0)
		return;
	event_count_prepare(&owner->event, EVENT_COUNT_SLEEPING, owner_sleep_end(owner));
	if (more || owner_must_stay_awake(owner, EVENT_COUNT_SLEEPING) ||
	    owner_has_next_jobs(owner))
		event_count_wake(&owner->event);
}

/* Returns until when to nap: nothing that is set meanwhile is due earlier, or much earlier. */
static tw_duration owner_nap_end(const struct owner *owner)
{
	const struct ticks *ticks = &owner->clock.ticks;
	tw_duration now = clock_read_real(owner->clock.id);
	tw_duration tick_end;

	if (owner->clock.kind == TW_CLOCK_MANUAL || owner->applied > FEW_COMMANDS)
		return now + shortest_nap;
	tick_end = tick_time(ticks, tick_before(ticks, now) + 1);
	if (tick_end < now + shortest_nap)
		return now + shortest_nap;
	return tick_end < now + longest_nap ? tick_end : now + longest_nap;
}

static void owner_sleep(struct owner *owner)
{
	enum event_count_state sleep =
		owner->applied > 0 ? EVENT_COUNT_NAPPING : EVENT_COUNT_SLEEPING;
	tw_duration until = owner_sleep_end(owner);

	if (sleep == EVENT_COUNT_NAPPING) {
		tw_duration end = owner_nap_end(owner);

		until = until < end ? until : end;
	}
	event_count_prepare(&owner->event, sleep, until);
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
	job_flush(&owner->out.target, &owner->out.bin);
	event_count_wait(&owner->event, until);
}

static void *owner_run(void *argument)
{
	struct owner *owner = argument;

	owner_set_here(owner, true);
	thread_be_prompt();
	if (!owner->out.pool)
		job_call_for_thread(&owner->out.target, &owner->setup, owner->thread.name, true);
	for (;;) {
		if (owner_turn(owner) || owner_has_next_jobs(owner))
			continue;
		if (owner_is_ending(owner))
			break;
		owner_sleep(owner);
	}
	if (!owner->out.pool)
		job_call_for_thread(&owner->out.target, &owner->setup, owner->thread.name, false);
	return NULL;
}

int owner_start(struct owner *owner, const char *name)
{
	return thread_start(&owner->thread, owner_run, owner, name, "owner", &owner->setup);
}

void owner_end(struct owner *owner)
{
	if (!owner->has_thread)
		return;
	/* seq_cst: pairs with the load in owner_is_ending(). */
	atomic_store_explicit(&owner->ending, true, memory_order_seq_cst);
	event_count_notify(&owner->event, EVENT_COUNT_NAPPING);
	thread_join(&owner->thread);
	owner->has_thread = false;
}
