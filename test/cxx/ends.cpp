/* SPDX-License-Identifier: MIT */
/*
 * These tests are tables: durations of all units and representations; sleeps by how they end and
 * where the wheel is driven; functions by what they hold and what ends them.
 */
#include "support.hpp"

#include <array>
#include <limits>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace
{

__extension__ using wide = __int128;

/* Checks a count of units of num/den seconds: the result is the exact time rounded up, or it is at
 * the end of what a tw_duration holds. */
template <class Rep, class Period> void check_duration(Rep count)
{
	const tw_duration found = tw::length(std::chrono::duration<Rep, Period>(count)).nanoseconds;
	const long double exact = static_cast<long double>(count) * Period::num /
				  static_cast<long double>(Period::den) * 1e9L;
	const long double error = exact * std::numeric_limits<float>::epsilon();

	if (exact >= 0x1p63L || exact <= -0x1p63L) {
		CHECK(found == (exact > 0 ? TW_FOREVER : -TW_FOREVER));
	} else if (std::is_floating_point_v<Rep> || exact > 1e15L || exact < -1e15L) {
		CHECK(found >= exact - std::abs(error) && found <= exact + std::abs(error) + 1);
	} else {
		const wide product = static_cast<wide>(count) * Period::num * 1000000000;

		CHECK(static_cast<wide>(found) * Period::den >= product);
		CHECK((static_cast<wide>(found) - 1) * Period::den < product);
	}
}

template <class Rep, class Period> void check_durations()
{
	for (int count : {0, 1, 2, 7, 59, 100})
		check_duration<Rep, Period>(static_cast<Rep>(count));
	if constexpr (std::is_signed_v<Rep>)
		for (int count : {-1, -59, -100})
			check_duration<Rep, Period>(static_cast<Rep>(count));
	check_duration<Rep, Period>(std::numeric_limits<Rep>::max());
	check_duration<Rep, Period>(std::numeric_limits<Rep>::lowest());
}

template <class Rep> void check_periods()
{
	check_durations<Rep, std::femto>();
	check_durations<Rep, std::pico>();
	check_durations<Rep, std::nano>();
	check_durations<Rep, std::micro>();
	check_durations<Rep, std::milli>();
	check_durations<Rep, std::ratio<1>>();
	check_durations<Rep, std::ratio<1, 60>>();
	check_durations<Rep, std::ratio<1001, 30000>>();
	check_durations<Rep, std::ratio<1, 48000>>();
	check_durations<Rep, std::ratio<1, 90000>>();
	check_durations<Rep, std::ratio<1, 1000000007>>();
	check_durations<Rep, std::ratio<86400>>();
	check_durations<Rep, std::ratio<31556952>>();
	check_durations<Rep, std::exa>();
}

void durations_are_rounded_up_and_end()
{
	check_periods<std::int8_t>();
	check_periods<std::uint16_t>();
	check_periods<int>();
	check_periods<unsigned>();
	check_periods<std::int64_t>();
	check_periods<std::uint64_t>();
	check_periods<float>();
	check_periods<double>();
	check_periods<long double>();
	static_assert(tw::length(1ms).nanoseconds == TW_MILLISECOND);
	static_assert(tw::length(std::chrono::duration<double>(1e-10)).nanoseconds == 1);
	static_assert(tw::length(std::chrono::duration<double>(1e300)).nanoseconds == TW_FOREVER);
	static_assert(tw::length(std::chrono::duration<double>(0.001)).nanoseconds ==
		      TW_MILLISECOND);
}

/* What has become of a sleep; `left` while it has not ended. */
enum class found { LEFT, SLEPT, STOPPED, CLOSED };
/* What ends it. */
enum class by {
	TIME,
	STOP,
	STOP_BEFORE,
	FRAME,
	FRAME_THEN_WHEEL,
	WHEEL,
	STOPPED_WHEEL,
	DRAIN,
	THROWN
};

template <class... Token>
owned sleeper(tw::wheel &wheel, by how, std::atomic<found> &end, Token... token)
{
	found mine = found::SLEPT;

	try {
		bool slept = co_await wheel.sleep_for(
			how <= by::STOP || how == by::THROWN ? 5ms : 1h, token...);

		if (!slept)
			mine = found::STOPPED;
	} catch (const std::system_error &error) {
		CHECK(error.code() == std::error_code(TW_CLOSED, tw::category()));
		mine = found::CLOSED;
	}
	/* release: pairs with the acquire that waits for it */
	end.store(mine, std::memory_order_release);
	if (how == by::THROWN)
		throw 7;
}

struct drive {
	tw_drive drive;
	int workers;
};

/* Lets a sleep end, and returns how it did. */
template <bool has_token> found end_of_sleep(by how, const drive &where)
{
	std::atomic<found> end = found::LEFT;
	std::stop_source source;
	std::optional<owned> frame;
	std::optional<tw::wheel> wheel;
	tw_options options = {};
	const bool is_driven = where.drive == TW_DRIVE_CALLER;
	int thrown = 0;

	options.clock = TW_CLOCK_MANUAL;
	options.drive = where.drive;
	options.workers = where.workers;
	wheel.emplace(1ms, 64, options);
	if (how == by::STOP_BEFORE)
		source.request_stop();
	if constexpr (has_token)
		frame.emplace(sleeper(*wheel, how, end, source.get_token()));
	else
		frame.emplace(sleeper(*wheel, how, end));
	if (how == by::STOP)
		source.request_stop();
	if (how == by::FRAME || how == by::FRAME_THEN_WHEEL)
		frame.reset();
	if (how == by::WHEEL || how == by::FRAME_THEN_WHEEL)
		wheel.reset();
	if (how == by::STOPPED_WHEEL)
		CHECK(wheel->stop() == TW_OK);
	if (how == by::DRAIN)
		CHECK(wheel->drain() == TW_OK);
	if (wheel) {
		try {
			(void)wheel->advance(10ms);
			(void)wheel->wait_idle();
		} catch (int number) {
			thrown = number;
		}
		CHECK((how == by::THROWN && is_driven) == (thrown == 7));
		CHECK(tw_pending(wheel->get()) == 0 || end == found::LEFT);
		CHECK(how != by::FRAME || tw_pending(wheel->get()) == 0);
	}
	return end.load(std::memory_order_acquire);
}

void sleeps_end_by_each_way_wherever_the_wheel_is_driven()
{
	static constexpr drive drives[] = {{TW_DRIVE_CALLER, TW_WORKERS_INLINE},
					   {TW_DRIVE_THREAD, TW_WORKERS_INLINE},
					   {TW_DRIVE_THREAD, 2},
					   {TW_DRIVE_CALLER, 2}};
	static constexpr struct {
		by how;
		found plain;
		found with_token;
	} cases[] = {
		{by::TIME, found::SLEPT, found::SLEPT},
		{by::STOP, found::SLEPT, found::STOPPED},
		{by::STOP_BEFORE, found::LEFT, found::STOPPED},
		{by::FRAME, found::LEFT, found::LEFT},
		{by::FRAME_THEN_WHEEL, found::LEFT, found::LEFT},
		{by::WHEEL, found::CLOSED, found::CLOSED},
		{by::STOPPED_WHEEL, found::CLOSED, found::CLOSED},
		{by::DRAIN, found::CLOSED, found::CLOSED},
		{by::THROWN, found::SLEPT, found::SLEPT},
	};

	for (const drive &where : drives)
		for (const auto &one : cases) {
			/* In a thread of the wheel it would end the process. */
			if (one.how == by::THROWN &&
			    (where.drive != TW_DRIVE_CALLER || where.workers > 0))
				continue;
			CHECK(end_of_sleep<false>(one.how, where) == one.plain);
			CHECK(end_of_sleep<true>(one.how, where) == one.with_token);
		}
}

/* The first sleep that the end of the wheel wakes destroys the other frames. A thread may be about
 * to wake one of them. */
owned destroyer(tw::wheel &wheel, std::vector<owned> &others, std::atomic<int> &woken)
{
	try {
		co_await wheel.sleep_for(1h);
	} catch (const std::system_error &) {
	}
	if (woken.fetch_add(1) == 0)
		others.clear();
}

void frames_are_destroyed_while_the_wheel_is()
{
	for (int workers : {static_cast<int>(TW_WORKERS_INLINE), 1})
		for (bool is_drained : {false, true}) {
			std::vector<owned> others;
			std::atomic<int> woken = 0;
			std::atomic<found> end = found::LEFT;
			std::stop_source source;
			tw_options options = {};

			options.workers = workers;
			options.max_workers = workers == 1; /* no other resumes one meanwhile */
			std::optional<tw::wheel> wheel(std::in_place, 1ms, 64, options);
			std::vector<owned> first;

			first.push_back(destroyer(*wheel, others, woken));
			for (int i = 0; i < 100; ++i) {
				others.push_back(sleeper(*wheel, by::WHEEL, end));
				others.push_back(
					sleeper(*wheel, by::WHEEL, end, source.get_token()));
			}
			if (is_drained)
				CHECK(wheel->drain() == TW_OK && wheel->wait_idle() == TW_OK);
			wheel.reset();
			CHECK(woken == 1);
		}
}

/* Runs that have just begun find the frame gone, and touch nothing. */
template <class... Token> void frames_are_destroyed_as_their_time_comes(Token... token)
{
	tw::wheel wheel(1ms, 64);
	using sleeping = decltype(wheel.sleep_for(1ms, token...));

	for (int round = 0; round < 200; ++round) {
		std::vector<std::unique_ptr<sleeping>> sleeps;

		for (int i = 0; i < 20; ++i) {
			sleeps.push_back(std::unique_ptr<sleeping>(
				new sleeping(wheel.sleep_for(100us * (i % 20), token...))));
			(void)sleeps.back()->await_suspend(std::noop_coroutine());
		}
		std::this_thread::sleep_for(std::chrono::microseconds(round % 10 * 200));
	}
}

/* A stop may come before, in and after a call. The function is destroyed once, not in a call. */
void stops_of_periodic_timers_meet_their_runs()
{
	enum { ROUNDS = 2000 };
	std::atomic<int> alive = 0;
	{
		tw_options options = {};

		options.workers = 1;
		tw::wheel wheel(1ms, 64, options);
		for (int round = 0; round < ROUNDS; ++round) {
			std::atomic<int> runs = 0;
			std::shared_ptr<int> held(new int(0), [&alive](int *value) {
				--alive;
				delete value;
			});

			++alive;
			tw::handle beat = wheel.every(0ms, 1us, [held = std::move(held), &runs] {
				++*held;
				++runs;
			});
			while (runs < 1 + round % 7)
				std::this_thread::yield();
			const bool waits = round % 2;
			CHECK((waits ? beat.stop_and_wait() : beat.stop()) == TW_OK);
			CHECK(!waits || alive == 0);
			CHECK(beat.stop_and_wait() != TW_OK && alive == 0);
		}
	}
}

template <class State> int last_count(State state, bool takes_handle)
{
	int last = 0;
	int *seen = &last;
	tw::wheel wheel = inline_wheel();

	if (takes_handle)
		wheel.every(1ms, 1ms, [state, seen](tw::handle self) mutable {
			*seen = static_cast<int>(++state[0]);
			if (*seen == 5)
				CHECK(self.stop() == TW_OK);
		});
	else
		wheel.every(1ms, 1ms,
			    [state, seen]() mutable { *seen = static_cast<int>(++state[0]); });
	CHECK(wheel.advance(10ms) == TW_OK);
	return last;
}

void functions_keep_their_state_from_run_to_run()
{
	CHECK(last_count(std::array<char, 1>{}, false) == 10);
	CHECK(last_count(std::array<int, 1>{}, false) == 10);
	CHECK(last_count(std::array<long, 2>{}, false) == 10);
	CHECK(last_count(std::array<long, 40>{}, false) == 10);
	CHECK(last_count(std::array<int, 1>{}, true) == 5);
}

/* A timer whose owner is destroyed uses the owner no more. */
void owner_of_a_timer_waits_for_its_run()
{
	enum class how { DESTROYED, ASSIGNED, STOPPED };

	for (bool is_periodic : {false, true})
		for (how end : {how::DESTROYED, how::ASSIGNED, how::STOPPED})
			for (bool in_task : {false, true}) {
				auto alive = std::make_shared<std::atomic<bool>>(true);
				std::weak_ptr<std::atomic<bool>> left = alive;
				std::atomic<bool> in_run = false, is_done = false;
				tw::timer timer;
				tw::wheel wheel(1ms, 64);
				auto use = [&in_run, alive] {
					in_run = true;
					std::this_thread::sleep_for(2ms);
					CHECK(*alive);
				};
				auto stop = [&, flag = alive.get()] {
					if (end == how::DESTROYED)
						tw::timer gone = std::move(timer);
					else if (end == how::ASSIGNED)
						timer = tw::timer();
					else
						(void)timer.stop_and_wait();
					CHECK(left.use_count() == 1);
					*flag = false;
					is_done = true;
				};

				if (is_periodic)
					timer = wheel.every(1ms, 1ms, std::move(use));
				else
					timer = wheel.after(1ms, std::move(use));
				while (!in_run)
					std::this_thread::yield();
				if (in_task)
					wheel.after(0ms, stop);
				else
					stop();
				while (!is_done)
					std::this_thread::yield();
			}
}

void timer_may_outlive_its_wheel_and_end_in_its_run()
{
	int runs = 0;
	tw::timer late;
	{
		tw::wheel wheel = inline_wheel();
		auto own = std::make_shared<tw::timer>();

		late = wheel.after(1h, [] {});
		*own = wheel.every(1ms, 1ms, [own, &runs] {
			++runs;
			*own = tw::timer();
		});
		CHECK(wheel.advance(5ms) == TW_OK && runs == 1);
		CHECK(wheel.every(1ms, 1ms, [] {}).stop_and_wait() == TW_OK);
	}
}

/* Values of the C interface come back through the program's release; also from a drain. */
void values_of_the_c_interface_come_back()
{
	struct counts {
		int stopped = 0, removed = 0, threads = 0;
	} counts;
	tw_options options = {};
	int alive = 1;

	options.context = &counts;
	options.workers = 1;
	options.release = [](void *context, const tw_task *, tw_reason reason) {
		++*(reason == TW_STOPPED ? &static_cast<struct counts *>(context)->stopped
					 : &static_cast<struct counts *>(context)->removed);
	};
	options.on_thread_start = options.on_thread_end = [](void *context, const char *) {
		++static_cast<struct counts *>(context)->threads;
	};
	{
		tw::wheel wheel(1ms, 64, options);
		auto set = [&] {
			return tw_after_func(
				wheel.get(), TW_HOUR, [](void *) {}, nullptr, nullptr);
		};

		CHECK(set() == TW_OK && wheel.drain() == TW_OK && wheel.wait_idle() == TW_OK);
		for (int i = 0; i < 10; ++i)
			CHECK(set() == TW_OK);
		wheel.after(1h, [held = std::shared_ptr<int>(&alive, [](int *n) { *n = 0; })] {});
		/* A calendar is one of the timers of the wheel. */
		wheel.every(tw::cron("0 0 29 2 *", "UTC"), [] {});
		CHECK(tw_flush(wheel.get()) == TW_OK && tw_pending(wheel.get()) == 12);
	}
	CHECK(counts.stopped == 10 && counts.removed == 1 && counts.threads == 2 && alive == 0);
	try {
		tw::cron wrong("* * * *");
		CHECK(false);
	} catch (const std::system_error &error) {
		CHECK(std::string(error.what()).find("a field is missing") == 0);
	}
}

} /* namespace */

int main()
{
	std::stop_source source;

	durations_are_rounded_up_and_end();
	sleeps_end_by_each_way_wherever_the_wheel_is_driven();
	frames_are_destroyed_while_the_wheel_is();
	frames_are_destroyed_as_their_time_comes();
	frames_are_destroyed_as_their_time_comes(source.get_token());
	stops_of_periodic_timers_meet_their_runs();
	functions_keep_their_state_from_run_to_run();
	owner_of_a_timer_waits_for_its_run();
	timer_may_outlive_its_wheel_and_end_in_its_run();
	values_of_the_c_interface_come_back();
	return 0;
}
