/* SPDX-License-Identifier: MIT */
/*
 * The ledger accounts for all calls: threads set, move, remove, stop, reset, drain and make alarms
 * at random, while memory fails, threads are cancelled in the middle and the process forks; tasks
 * re-arm themselves; then the wheel is stopped. Each argument and value that the wheel accepted
 * must come back to exactly one place, and no alarm may run after its end.
 */
#include "support/test.h"

#include "faults/faults.h"
#include "support/recorder.h"

enum {
	PIECES = TEST_SHARE_OF(200000),
	CALLERS = 4,
	KEYS = 300,
	HANDLES = 200, /* that any caller may stop */
	TRIES = 3,
	ROUNDS_A_FORK = 50
};

struct show;

/* A piece is a timer's value, or the argument of its function. */
struct piece {
	struct show *show;
	atomic_int accepted; /* by the wheel */
	atomic_int returned; /* to the function or call that owns it in the end */
	struct tw_timer timer;
	int tries; /* number of its runs */
};

/* A bell is the argument of an alarm. */
struct bell {
	struct show *show;
	struct tw_alarm alarm;
	atomic_bool is_there;
	atomic_int inside;
};

struct show {
	struct tw_wheel *wheel;
	struct piece *pieces;
	atomic_size_t next_piece;
	_Atomic size_t handles[HANDLES]; /* pieces set by handle */
	struct bell bells[CALLERS];
	atomic_int at_work;
	atomic_int wrong;
	atomic_bool is_stopped;
};

/* relaxed, all counts here: read when the threads have been joined */
static void expect(struct show *show, bool is_so)
{
	atomic_fetch_add_explicit(&show->wrong, !is_so, memory_order_relaxed);
}

static void book(struct piece *piece)
{
	atomic_fetch_add_explicit(&piece->returned, 1, memory_order_relaxed);
}

/* Judges a call that may be refused. Returns whether it was accepted. */
static bool judge(struct show *show, enum tw_status status)
{
	expect(show, status == TW_OK || status == TW_FULL || status == TW_NO_MEMORY ||
			     (status == TW_CLOSED && atomic_load(&show->is_stopped)));
	return status == TW_OK;
}

static void execute(void *show, const struct tw_task *task)
{
	expect(show, task->key && !task->run && task->timer.id == 0 && task->lateness >= 0);
	book(task->value);
}

static void release(void *show, const struct tw_task *task, enum tw_reason reason)
{
	expect(show, (task->key != NULL) == (task->run == NULL));
	expect(show, task->key || reason == TW_STOPPED);
	book(task->value);
}

static void drained(void *show, const struct tw_task *task)
{
	expect(show, (task->key != NULL) == (task->timer.id == 0));
	book(task->value);
}

/* The run owns its argument until it has re-armed itself. */
static void try_again(void *argument)
{
	struct piece *piece = argument;
	tw_duration delay = piece->tries % 2 * 3 * INTERVAL;

	if (++piece->tries < TRIES &&
	    tw_timer_reset(piece->show->wheel, piece->timer, delay) == TW_OK)
		return;
	book(piece);
}

static void run_again(void *argument)
{
	struct piece *piece = argument;

	expect(piece->show, atomic_load(&piece->returned) <= 1);
}

static void ring(void *argument)
{
	struct bell *bell = argument;

	expect(bell->show, atomic_load(&bell->is_there));
	expect(bell->show, atomic_fetch_add(&bell->inside, 1) == 0);
	if (atomic_load_explicit(&bell->show->next_piece, memory_order_relaxed) % 3 == 0)
		(void)tw_alarm_set(&bell->alarm, INTERVAL);
	expect(bell->show, atomic_load(&bell->is_there));
	atomic_fetch_sub(&bell->inside, 1);
}

struct caller {
	struct show *show;
	int number;
	struct random random;
};

/* Returns NULL when all have been used. */
static struct piece *take_piece(struct show *show)
{
	size_t number = atomic_fetch_add_explicit(&show->next_piece, 1, memory_order_relaxed);

	return number < PIECES ? &show->pieces[number] : NULL;
}

static void accept(struct show *show, struct piece *piece, enum tw_status status)
{
	if (judge(show, status))
		atomic_fetch_add_explicit(&piece->accepted, 1, memory_order_relaxed);
}

/* Every fourth is too long for a command. */
static size_t random_key(struct caller *caller, uint64_t key[8])
{
	uint64_t number = random_below(&caller->random, KEYS);

	memset(key, 0, 8 * sizeof(key[0]));
	key[0] = number;
	return number % 4 ? sizeof(key[0]) : 8 * sizeof(key[0]);
}

/* These calls have an answer. */
static void call_for_answer(struct caller *caller, struct piece *piece, tw_duration delay)
{
	struct show *show = caller->show;
	uint64_t key[8];
	size_t size = random_key(caller, key);
	enum tw_status status = tw_add_timer(show->wheel, key, size, piece, delay);
	void *taken = NULL;

	if (status != TW_EXISTS)
		accept(show, piece, status);
	size = random_key(caller, key);
	status = tw_take_timer(show->wheel, key, size, &taken);
	expect(show, (status == TW_OK) == (taken != NULL));
	if (taken)
		book(taken);
	else
		expect(show, status == TW_NOT_FOUND || status == TW_CLOSED);
}

static void call_by_key(struct caller *caller, struct piece *piece)
{
	struct show *show = caller->show;
	tw_duration delay = random_between(&caller->random, 1, 60 * INTERVAL);
	uint64_t key[8];
	size_t size = random_key(caller, key);

	if (random_once_in(&caller->random, 10)) {
		call_for_answer(caller, piece, delay);
		return;
	}
	accept(show, piece, tw_set_timer(show->wheel, key, size, piece, delay));
	size = random_key(caller, key);
	if (random_once_in(&caller->random, 2))
		(void)judge(show, tw_move_timer(show->wheel, key, size, delay));
	else
		(void)judge(show, tw_remove_timer(show->wheel, key, size));
}

static void call_by_handle(struct caller *caller, struct piece *piece)
{
	struct show *show = caller->show;
	tw_duration delay = random_between(&caller->random, -1, 40) * INTERVAL;
	enum tw_status status;

	if (random_once_in(&caller->random, 3))
		status = tw_every(show->wheel, delay, 5 * INTERVAL, TW_MISSED_SKIP, run_again,
				  piece, &piece->timer);
	else
		status = tw_after_func(show->wheel, delay, try_again, piece, &piece->timer);
	accept(show, piece, status);
	if (status == TW_OK)
		/* release: publishes the handle; pairs with the acquire in choose_piece() */
		atomic_store_explicit(&show->handles[random_below(&caller->random, HANDLES)],
				      (size_t)(piece - show->pieces) + 1, memory_order_release);
}

/* Returns one that was set by handle, or NULL. */
static struct piece *choose_piece(struct caller *caller)
{
	struct show *show = caller->show;
	/* acquire: pairs with the release in call_by_handle() */
	size_t number = atomic_load_explicit(&show->handles[random_below(&caller->random, HANDLES)],
					     memory_order_acquire);

	return number > 0 ? &show->pieces[number - 1] : NULL;
}

static void book_stop(struct piece *piece, enum tw_status status)
{
	if (status == TW_OK || status == TW_REARMED)
		book(piece);
	else
		expect(piece->show,
		       status == TW_RUNNING || status == TW_NOT_FOUND || status == TW_CLOSED);
}

static void stop_some(struct caller *caller)
{
	struct tw_wheel *wheel = caller->show->wheel;
	struct piece *piece;

	piece = choose_piece(caller);
	if (!piece)
		return;
	if (random_once_in(&caller->random, 20))
		expect(caller->show, tw_timer_remaining(wheel, piece->timer, NULL) != TW_INVALID);
	if (random_once_in(&caller->random, 2))
		book_stop(piece, tw_timer_stop(wheel, piece->timer));
	else
		book_stop(piece, tw_timer_stop_wait(wheel, piece->timer));
}

static void call_alarm(struct caller *caller)
{
	struct show *show = caller->show;
	struct bell *bell = &show->bells[caller->number];

	if (!atomic_load(&bell->is_there)) {
		/* After a stop there is none. */
		atomic_store(&bell->is_there,
			     tw_alarm_init(show->wheel, &bell->alarm, ring, bell) == TW_OK);
	} else if (random_once_in(&caller->random, 20)) {
		expect(show, tw_alarm_destroy(&bell->alarm) == TW_OK);
		atomic_store(&bell->is_there, false);
		memset(&bell->alarm, 0x5a, sizeof(bell->alarm));
	} else if (random_once_in(&caller->random, 3)) {
		expect(show, tw_alarm_stop(&bell->alarm) != TW_INVALID);
	} else {
		tw_duration delay = random_between(&caller->random, 0, 30) * INTERVAL;
		enum tw_status status = tw_alarm_set(&bell->alarm, delay);

		expect(show, status == TW_OK || atomic_load(&show->is_stopped));
	}
}

static int look_at(void *context, const struct tw_pending_timer *timer)
{
	struct caller *caller = context;

	/* The value may be gone, but the pieces live as long as the show. */
	expect(caller->show,
	       (const struct piece *)timer->value >= caller->show->pieces &&
		       (const struct piece *)timer->value < caller->show->pieces + PIECES);
	expect(caller->show, (timer->key != NULL) == (timer->timer.id == 0));
	return !random_once_in(&caller->random, 1000);
}

static void go_home(void *argument)
{
	struct caller *caller = argument;

	atomic_fetch_sub(&caller->show->at_work, 1);
}

static void *make_calls(void *argument)
{
	struct caller *caller = argument;
	struct show *show = caller->show;
	struct piece *piece;

	pthread_cleanup_push(go_home, caller);
	while (!atomic_load(&show->is_stopped) && (piece = take_piece(show))) {
		if (random_once_in(&caller->random, 500))
			(void)judge(show, tw_drain(show->wheel, drained, show));
		if (random_once_in(&caller->random, 300))
			(void)judge(show, tw_wait_idle(show->wheel));
		if (random_once_in(&caller->random, 100))
			(void)judge(show, tw_each(show->wheel, look_at, caller));
		if (random_once_in(&caller->random, 2))
			call_by_key(caller, piece);
		else
			call_by_handle(caller, piece);
		stop_some(caller);
		call_alarm(caller);
		pthread_testcancel();
	}
	pthread_cleanup_pop(1);
	return NULL;
}

/* Stops timers, too: where all callers wait for a place, no caller is left to do it. */
static void *move_clock(void *argument)
{
	struct caller *mover = argument;
	struct show *show = mover->show;

	while (atomic_load(&show->at_work) > 0) {
		(void)judge(show, tw_advance(show->wheel, INTERVAL));
		for (int i = 0; i < HANDLES / 10; i++)
			stop_some(mover);
		if (random_once_in(&mover->random, 100))
			(void)judge(show, tw_drain(show->wheel, drained, show));
		wait_for(TW_MILLISECOND / 20);
	}
	return NULL;
}

static void start_caller(struct show *show, struct caller *caller, pthread_t *thread)
{
	atomic_fetch_add(&show->at_work, 1);
	assert_int_equal(pthread_create(thread, NULL, make_calls, caller), 0);
}

static void cancel_one(struct show *show, struct caller *callers, pthread_t *threads,
		       struct random *random)
{
	size_t i = (size_t)random_below(random, CALLERS);

	pthread_cancel(threads[i]);
	pthread_join(threads[i], NULL);
	start_caller(show, &callers[i], &threads[i]);
}

/* The wheel is closed in the child. */
static void fork_one(struct show *show)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		bool is_closed = tw_set_timer(show->wheel, "a", 1, NULL, INTERVAL) == TW_CLOSED &&
				 tw_timer_stop(show->wheel, (struct tw_timer){1}) == TW_CLOSED &&
				 tw_each(show->wheel, look_at, show) == TW_CLOSED &&
				 tw_wait_idle(show->wheel) == TW_CLOSED;

		if (atomic_load(&show->bells[0].is_there))
			is_closed &= tw_alarm_destroy(&show->bells[0].alarm) == TW_CLOSED;
		tw_destroy(show->wheel);
		_exit(is_closed ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Goes on until all pieces but a fifth have been used, in the middle of the run. */
static void make_trouble(struct show *show, struct caller *callers, pthread_t *threads,
			 struct random *random)
{
	int faults = 0;
	int round = 0;

	for (; atomic_load(&show->next_piece) < PIECES / 5 * 4; round++) {
		fail_allocation((long)random_below(random, 12) + 1, random_once_in(random, 4));
		wait_for(TW_MILLISECOND);
		faults += end_faults();
		cancel_one(show, callers, threads, random);
		if (TEST_CAN_FORK && round % ROUNDS_A_FORK == 1)
			fork_one(show);
	}
	/* On a busy machine the callers may end before this thread runs. */
	assert_true(faults > 0 || round < 10);
}

static void show_begin(struct show *show, const struct variant *variant,
		       enum tw_when_full when_full, size_t max_pending)
{
	struct tw_options options =
		variant_options(variant, (struct tw_options){.context = show,
							     .release = release,
							     .queue_capacity = 64,
							     .max_workers = 64,
							     .max_pending = max_pending,
							     .when_full = when_full});

	memset(show, 0, sizeof(*show));
	show->pieces = calloc(PIECES, sizeof(show->pieces[0]));
	assert_non_null(show->pieces);
	for (size_t i = 0; i < PIECES; i++)
		show->pieces[i].show = show;
	for (int i = 0; i < CALLERS; i++)
		show->bells[i].show = show;
	assert_status(tw_create(&show->wheel, INTERVAL, 16, execute, &options), TW_OK);
}

static void show_end(struct show *show)
{
	size_t lost = 0;
	size_t doubled = 0;

	assert_status(tw_wait_idle(show->wheel), TW_OK);
	for (int i = 0; i < CALLERS; i++)
		if (atomic_load(&show->bells[i].is_there))
			assert_status(tw_alarm_destroy(&show->bells[i].alarm), TW_OK);
	tw_destroy(show->wheel);
	for (size_t i = 0; i < PIECES; i++) {
		int accepted = atomic_load(&show->pieces[i].accepted);
		int returned = atomic_load(&show->pieces[i].returned);

		lost += returned < accepted;
		doubled += returned > accepted;
	}
	free(show->pieces);
	assert_int_equal(lost, 0);
	assert_int_equal(doubled, 0);
	assert_int_equal(atomic_load(&show->wrong), 0);
}

static void put_on_a_show(const struct variant *variant, enum tw_when_full when_full,
			  size_t max_pending)
{
	struct random random = random_from(seed_choose(), CALLERS);
	struct show show;
	struct caller callers[CALLERS];
	struct caller mover = {&show, CALLERS, random_from(seed_choose(), CALLERS + 1)};
	pthread_t threads[CALLERS];
	pthread_t mover_thread;

	show_begin(&show, variant, when_full, max_pending);
	for (int i = 0; i < CALLERS; i++) {
		callers[i] = (struct caller){&show, i, random_from(seed_choose(), (uint64_t)i)};
		start_caller(&show, &callers[i], &threads[i]);
	}
	assert_int_equal(pthread_create(&mover_thread, NULL, move_clock, &mover), 0);
	make_trouble(&show, callers, threads, &random);
	atomic_store(&show.is_stopped, true);
	assert_status(tw_stop(show.wheel), TW_OK);
	for (int i = 0; i < CALLERS; i++)
		pthread_join(threads[i], NULL);
	pthread_join(mover_thread, NULL);
	show_end(&show);
}

TEST(everywhere, all_comes_back_once_through_faults_cancels_and_forks)
{
	put_on_a_show(*state, TW_WHEN_FULL_WAIT, 0);
}

TEST(everywhere, all_comes_back_once_where_limits_refuse)
{
	put_on_a_show(*state, TW_WHEN_FULL_FAIL, 400);
}

TEST(everywhere, all_comes_back_once_where_limits_have_callers_wait)
{
	put_on_a_show(*state, TW_WHEN_FULL_WAIT, 400);
}
