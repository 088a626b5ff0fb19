/* SPDX-License-Identifier: MIT */
/* The C++ tests check what runs, what is destroyed, and where sleeps end, by a manual clock. */
#include "support.hpp"

#include <array>
#include <exception>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace
{

/* Counts how many of its copies live. */
struct counted {
	int *alive;

	explicit counted(int *count) : alive(count)
	{
		++*alive;
	}
	counted(const counted &other) : alive(other.alive)
	{
		++*alive;
	}
	counted &operator=(const counted &) = delete;
	~counted()
	{
		--*alive;
	}
};

void functions_run_and_are_destroyed()
{
	int alive = 0;
	int runs = 0;
	{
		tw::wheel wheel = inline_wheel();
		counted one(&alive);
		auto function = [one, &runs] { ++runs; };
		auto by_move = [owned = std::make_unique<int>(7), &runs] { runs += *owned; };

		wheel.after(5ms, function);
		wheel.after(5ms, [&runs] { ++runs; });
		wheel.after(5ms, std::move(by_move));
		CHECK(alive == 3);
		CHECK(wheel.advance(4ms) == TW_OK && runs == 0);
		CHECK(wheel.advance(1ms) == TW_OK && runs == 9);
		CHECK(alive == 2);
		/* One is stopped, one pending at the end. */
		tw::timer stopped = wheel.after(5ms, function);
		CHECK(alive == 3 && stopped.stop() == TW_OK && alive == 2);
		CHECK(stopped.stop() == TW_NOT_FOUND);
		CHECK(wheel.after(5ms, [&runs] { ++runs; }).stop() == TW_OK);
		wheel.after(5ms, function);
	}
	CHECK(alive == 0 && runs == 9);
	CHECK(tw::timer().stop() == TW_INVALID);
}

void periodic_functions_run_until_they_are_stopped()
{
	int alive = 0;
	int runs = 0;
	tw::wheel wheel = inline_wheel();
	counted one(&alive);
	tw::timer by_box = wheel.every(1ms, 2ms, [one, &runs] { ++runs; });
	tw::timer by_value = wheel.every(1ms, 2ms, [&runs] { ++runs; });

	CHECK(wheel.advance(5ms) == TW_OK && runs == 6 && alive == 2);
	CHECK(by_box.stop() == TW_OK && by_value.stop() == TW_OK);
	CHECK(wheel.advance(5ms) == TW_OK && runs == 6 && alive == 1);
}

void periodic_function_that_stops_itself_is_destroyed_after_its_call()
{
	int alive = 0;
	int runs = 0;
	tw::wheel wheel = inline_wheel();
	counted one(&alive);
	tw::timer beat;

	beat = wheel.every(1ms, 1ms, [one, &runs, &beat, &alive] {
		++runs;
		CHECK(beat.stop() == TW_OK && beat.stop() == TW_RUNNING && alive == 2);
	});
	CHECK(wheel.advance(5ms) == TW_OK && runs == 1 && alive == 1);
	CHECK(tw_pending(wheel.get()) == 0);
}

void keys_have_functions()
{
	int alive = 0;
	int last = 0;
	tw::wheel wheel = inline_wheel();
	counted one(&alive);
	auto set_to = [&last, one](int value) { return [&last, one, value] { last = value; }; };

	CHECK(wheel.set("a", 5ms, set_to(1)) == TW_OK);
	CHECK(wheel.set("a", 5ms, set_to(2)) == TW_OK);
	CHECK(wheel.add("a", 5ms, set_to(3)) == TW_EXISTS);
	CHECK(wheel.set("", 5ms, set_to(4)) == TW_INVALID);
	CHECK(wheel.advance(4ms) == TW_OK && last == 0);
	CHECK(wheel.move("a", 3ms) == TW_OK);
	CHECK(wheel.advance(2ms) == TW_OK && last == 0);
	CHECK(wheel.advance(1ms) == TW_OK && last == 2);
	CHECK(wheel.set("a", 5ms, set_to(5)) == TW_OK && wheel.remove("a") == TW_OK);
	CHECK(wheel.set("b", 5ms, set_to(6)) == TW_OK && wheel.drain() == TW_OK);
	CHECK(wheel.advance(10ms) == TW_OK && last == 2);
	CHECK(alive == 2);
}

/* Returns the number that a call throws, or 0. */
template <class Call> int thrown_by(Call &&call)
{
	try {
		(void)call();
	} catch (int number) {
		return number;
	}
	return 0;
}

void driving_calls_throw_the_first_exception_of_their_functions()
{
	tw::wheel wheel = inline_wheel();
	tw::timer beat;
	tw::alarm alarm(wheel, [] { throw 3; });
	int runs = 0;
	auto held = std::make_shared<int>(0);
	std::weak_ptr<int> left = held;

	wheel.after(1ms, [held = std::move(held)] { throw 1; });
	wheel.after(1ms, [] { throw 2; });
	wheel.after(1ms, [&runs] { ++runs; });
	CHECK(thrown_by([&] { return wheel.advance(2ms); }) == 1 && runs == 1);
	CHECK(left.expired());
	CHECK(wheel.now() == 2ms);
	CHECK(alarm.set(1ms) == TW_OK);
	CHECK(thrown_by([&] { return wheel.advance(1ms); }) == 3);
	CHECK(wheel.set("key", 1ms, [] { throw 4; }) == TW_OK);
	CHECK(wheel.move("key", 1us) == TW_OK);
	wheel.after(0ms, [&runs] { ++runs; });
	CHECK(thrown_by([&] { return wheel.wait_idle(); }) == 4 && runs == 2);
	wheel.after(0ms, [] { throw 5; });
	CHECK(thrown_by([&] { return wheel.poll(); }) == 5);
	/* A periodic timer goes on. */
	beat = wheel.every(1ms, 1ms, [&runs] { throw 10 + runs++; });
	CHECK(thrown_by([&] { return wheel.advance(1ms); }) == 12);
	CHECK(thrown_by([&] { return wheel.advance(1ms); }) == 13);
	CHECK(beat.stop() == TW_OK);
	CHECK(thrown_by([&] { return wheel.advance(1ms); }) == 0 && wheel.poll() == TW_OK);
}

void exceptions_of_an_inner_wheel_come_out_of_its_own_call()
{
	tw::wheel outer = inline_wheel();
	tw::wheel inner = inline_wheel();
	int caught = 0;

	inner.after(1ms, [] { throw 1; });
	outer.after(1ms, [&] {
		caught = thrown_by([&] { return inner.advance(1ms); });
		throw 2;
	});
	CHECK(thrown_by([&] { return outer.advance(1ms); }) == 2 && caught == 1);
}

owned sleep_only(tw::wheel &wheel)
{
	co_await wheel.sleep_for(1ms);
}

void stop_throws_what_sleeps_do_not_catch()
{
	tw::wheel wheel = inline_wheel();
	bool closed = false;

	owned sleeps = sleep_only(wheel);
	try {
		(void)wheel.stop();
	} catch (const std::system_error &error) {
		closed = error.code() == std::error_code(TW_CLOSED, tw::category());
	}
	CHECK(closed);
}

/* Threads request stops while sleeps end by themselves: each sleep ends once. */
task sleep_and_count(tw::wheel &wheel, std::stop_token token, std::atomic<int> &ended)
{
	co_await wheel.sleep_for(1ms, token);
	/* release: pairs with the acquire that waits for all: the frames are done with */
	ended.fetch_add(1, std::memory_order_release);
}

void stops_and_ends_race()
{
	enum { ROUNDS = 300, SLEEPS = 8 };
	tw::wheel wheel(1ms, 64);

	for (int round = 0; round < ROUNDS; ++round) {
		std::atomic<int> ended = 0;
		std::stop_source source;

		for (int i = 0; i < SLEEPS; ++i)
			sleep_and_count(wheel, source.get_token(), ended);
		if (round % 3)
			std::this_thread::sleep_for(round % 3 * 500us);
		source.request_stop();
		while (ended.load(std::memory_order_acquire) != SLEEPS)
			std::this_thread::yield();
	}
}

void alarms_run_as_long_as_they_live()
{
	int alive = 0;
	int runs = 0;
	tw::wheel wheel = inline_wheel();
	counted one(&alive);
	std::optional<tw::alarm> own;
	{
		tw::alarm alarm(wheel, [one, &runs] { ++runs; });

		CHECK(alarm.set(2ms) == TW_OK && alarm.set(3ms) == TW_OK);
		CHECK(wheel.advance(3ms) == TW_OK && runs == 1);
		CHECK(alarm.set(1ms) == TW_OK && wheel.advance(1ms) == TW_OK && runs == 2);
		CHECK(alarm.set(1ms) == TW_OK && alarm.stop() == TW_OK);
		CHECK(wheel.advance(1ms) == TW_OK && runs == 2);
		CHECK(alarm.set(1ms) == TW_OK);
		tw::alarm moved = std::move(alarm);
	}
	CHECK(wheel.advance(2ms) == TW_OK && runs == 2 && alive == 1);
	tw::alarm drained(wheel, [one] {});
	CHECK(wheel.drain() == TW_OK && wheel.poll() == TW_OK && alive == 1);
	CHECK(drained.set(1ms) == TW_NOT_FOUND);
	/* It ends in its own run. */
	own.emplace(wheel, [one, &own, &runs] {
		++runs;
		own.reset();
	});
	CHECK(own->set(1ms) == TW_OK && wheel.advance(1ms) == TW_OK && runs == 3);
	CHECK(!own && alive == 1);
}

void function_may_destroy_a_wheel_that_a_member_drives()
{
	int alive = 0;
	counted one(&alive);
	auto wheel = std::make_unique<tw::wheel>(inline_wheel());
	tw::wheel *driven = wheel.get();

	driven->after(1ms, [&] {
		CHECK(driven->poll() == TW_INVALID);
		wheel.reset();
		throw 1;
	});
	driven->after(1ms, [one] { CHECK(false); });
	driven->after(1h, [one] {});
	CHECK(alive == 3);
	CHECK(thrown_by([&] { return driven->advance(2ms); }) == 1);
	CHECK(!wheel && alive == 1);
}

void function_may_destroy_a_wheel_with_threads()
{
	for (int workers : {static_cast<int>(TW_WORKERS_INLINE), 1, 2}) {
		auto token = std::make_shared<int>(0);
		std::weak_ptr<int> left = token;
		auto is_set = std::make_shared<std::atomic<bool>>(false);
		tw_options options = {};

		options.workers = workers;
		auto *wheel = new tw::wheel(1ms, 64, options);
		wheel->after(1h, [token = std::move(token)] { (void)token; });
		wheel->after(1ms, [wheel, is_set] {
			is_set->wait(false);
			delete wheel;
		});
		is_set->store(true);
		is_set->notify_one();
		while (!left.expired())
			std::this_thread::yield();
	}
}

void assignment_destroys_what_was_there()
{
	int alive = 0;
	counted one(&alive);
	tw::wheel wheel = inline_wheel();
	tw::wheel other = inline_wheel();
	tw::alarm alarm(wheel, [one] {});
	tw::alarm next(other, [one] {});

	CHECK(alive == 3);
	alarm = std::move(next);
	CHECK(alive == 2);
	CHECK(next.stop() == TW_INVALID && next.set(1ms) == TW_INVALID);
	CHECK(alarm.set(1ms) == TW_OK && other.advance(1ms) == TW_OK);
	other.after(1ms, [one] {});
	wheel.after(1ms, [one] {});
	CHECK(alive == 4);
	wheel = inline_wheel();
	CHECK(alive == 3);
}

void wrong_arguments_throw()
{
	try {
		tw::wheel wheel(-1ms, 64);
		CHECK(false);
	} catch (const std::system_error &error) {
		CHECK(error.code() == std::error_code(TW_INVALID, tw::category()));
	}
}

} /* namespace */

int main()
{
	functions_run_and_are_destroyed();
	periodic_functions_run_until_they_are_stopped();
	periodic_function_that_stops_itself_is_destroyed_after_its_call();
	keys_have_functions();
	driving_calls_throw_the_first_exception_of_their_functions();
	exceptions_of_an_inner_wheel_come_out_of_its_own_call();
	stop_throws_what_sleeps_do_not_catch();
	stops_and_ends_race();
	alarms_run_as_long_as_they_live();
	function_may_destroy_a_wheel_that_a_member_drives();
	function_may_destroy_a_wheel_with_threads();
	assignment_destroys_what_was_there();
	wrong_arguments_throw();
	return 0;
}
