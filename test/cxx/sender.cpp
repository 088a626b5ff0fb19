/* SPDX-License-Identifier: MIT */
/* The tests of senders check how they complete: after their time, by a stop, by the wheel's end. */
#include <timingwheel/execution.hpp>

#include "support.hpp"

#include <thread>

#include <exec/task.hpp>

namespace execution = tw::detail::execution;
using namespace std::chrono_literals;

namespace
{

enum end { NONE, VALUE, STOPPED, FAILED };

/* An environment that has the token. */
struct environment {
	std::stop_token token;

	auto query(std::decay_t<decltype(tw::detail::get_stop_token)>) const noexcept
	{
		return token;
	}
};

struct receiver {
	using receiver_concept = execution::receiver_t;

	std::atomic<int> *ends;
	end *last;
	std::stop_token token = {};

	void complete(end how) noexcept
	{
		*last = how;
		/* release: pairs with the acquire that waits for all ends */
		ends->fetch_add(1, std::memory_order_release);
	}
	void set_value() noexcept
	{
		complete(VALUE);
	}
	void set_stopped() noexcept
	{
		complete(STOPPED);
	}
	void set_error(std::exception_ptr) noexcept
	{
		complete(FAILED);
	}
	environment get_env() const noexcept
	{
		return {token};
	}
};

void senders_complete_once()
{
	std::atomic<int> ends = 0;
	std::stop_source source;
	end timed = NONE, stopped = NONE, refused = NONE, drained = NONE, closed = NONE;
	end failed = NONE;
	tw::wheel wheel = inline_wheel();
	auto connect = [&](const tw::wheel &on, std::chrono::milliseconds delay, end &last,
			   std::stop_token token = {}) {
		return tw::schedule_after(on, delay).connect(receiver{&ends, &last, token});
	};
	auto one = connect(wheel, 5ms, timed);
	auto two = connect(wheel, 5ms, stopped, source.get_token());
	auto three = connect(wheel, 1ms, refused, source.get_token());
	auto four = connect(wheel, 9ms, drained);
	auto five = connect(wheel, 1ms, closed);

	one.start();
	two.start();
	CHECK(wheel.advance(4ms) == TW_OK && ends == 0);
	source.request_stop();
	CHECK(stopped == STOPPED && ends == 1);
	CHECK(wheel.advance(1ms) == TW_OK && timed == VALUE && ends == 2);
	three.start();
	CHECK(refused == STOPPED && ends == 3);
	four.start();
	CHECK(wheel.drain() == TW_OK && wheel.wait_idle() == TW_OK);
	CHECK(drained == STOPPED && ends == 4);
	CHECK(tw_pending(wheel.get()) == 0 && wheel.stop() == TW_OK);
	five.start();
	CHECK(closed == STOPPED && ends == 5);

	tw::wheel moved = std::move(wheel);
	auto six = connect(wheel, 1ms, failed);

	six.start();
	CHECK(failed == FAILED && ends == 6);
}

void algorithms_take_senders()
{
	tw::wheel wheel(1ms, 64);
	auto five = tw::schedule_after(wheel, 1ms) | execution::then([] { return 5; });
	auto both = execution::when_all(five, tw::schedule_after(wheel, 2ms));

	CHECK(std::get<0>(execution::sync_wait(std::move(both)).value()) == 5);
}

exec::task<int> sleep_twice(tw::wheel &wheel)
{
	std::stop_source source;
	int slept = 0;

	slept += co_await wheel.sleep_for(1ms);
	slept += co_await wheel.sleep_for(1ms, source.get_token());
	co_await tw::schedule_after(wheel, 1ms);
	co_return slept;
}

void tasks_of_stdexec_sleep()
{
	tw::wheel wheel(1ms, 64);

	CHECK(std::get<0>(execution::sync_wait(sleep_twice(wheel)).value()) == 2);
}

/* Threads request stops while senders complete by themselves: each completes once. */
void stops_and_ends_race()
{
	enum { ROUNDS = 300 };
	tw::wheel wheel(1ms, 64);

	for (int round = 0; round < ROUNDS; ++round) {
		std::atomic<int> ends = 0;
		std::stop_source source;
		end last = NONE;
		auto sleep = tw::schedule_after(wheel, 1ms)
				     .connect(receiver{&ends, &last, source.get_token()});

		sleep.start();
		if (round % 3)
			std::this_thread::sleep_for(round % 3 * 500us);
		source.request_stop();
		while (ends.load(std::memory_order_acquire) == 0)
			std::this_thread::yield();
		CHECK(last == VALUE || last == STOPPED);
	}
}

} /* namespace */

int main()
{
	senders_complete_once();
	algorithms_take_senders();
	tasks_of_stdexec_sleep();
	stops_and_ends_race();
	return 0;
}
