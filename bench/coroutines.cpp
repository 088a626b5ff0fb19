/* SPDX-License-Identifier: MIT */
/*
 * What does a sleep of a coroutine cost beside a timer by handle?
 *
 * A million coroutines, created beforehand, each sleep once, resume and end. Beside them
 * tw_after_func passes each of a million requests, allocated beforehand and as large as a
 * coroutine's frame, to a function that frees it. One thread drives the wheel, whose clock is
 * manual. Prints nanoseconds of processor time a timer, set and run, as medians of several runs
 * that take turns.
 *
 *     coroutines [TIMERS [RUNS]]
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <timingwheel/timingwheel.hpp>

using namespace std::chrono_literals;

namespace
{

std::size_t count = 1000000;
std::size_t ended;

/* A sleeper is a coroutine that begins when it is resumed, and frees itself at its end. */
struct sleeper {
	struct promise_type {
		sleeper get_return_object()
		{
			return {std::coroutine_handle<promise_type>::from_promise(*this)};
		}
		std::suspend_always initial_suspend() noexcept
		{
			return {};
		}
		std::suspend_never final_suspend() noexcept
		{
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
			std::terminate();
		}
	};
	std::coroutine_handle<promise_type> handle;
};

sleeper sleep_once(tw::wheel &wheel, std::chrono::milliseconds delay)
{
	co_await wheel.sleep_for(delay);
	++ended;
}

/* A request is what a program without coroutines has for each of its tasks. */
struct request {
	tw_timer timer;
	std::chrono::milliseconds delay;
	char state[96];
};

void end_request(void *argument)
{
	delete static_cast<request *>(argument);
	++ended;
}

tw::wheel wheel_new()
{
	tw_options options = {};

	options.clock = TW_CLOCK_MANUAL;
	options.drive = TW_DRIVE_CALLER;
	options.workers = TW_WORKERS_INLINE;
	return tw::wheel(1ms, 512, options);
}

std::chrono::milliseconds delay_of(std::size_t i)
{
	return std::chrono::milliseconds(1 + i * 7919 % 60000);
}

double processor_now()
{
	timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/* Lets all timers come due, a second at a time. */
void run_all(tw::wheel &wheel)
{
	for (int second = 0; second < 61; ++second)
		tw::check(wheel.advance(1s));
	if (ended != count) {
		std::fprintf(stderr, "%zu of %zu have run\n", ended, count);
		std::exit(1);
	}
}

double time_sleeps()
{
	tw::wheel wheel = wheel_new();
	std::vector<std::coroutine_handle<sleeper::promise_type>> sleepers;
	double begin;

	ended = 0;
	sleepers.reserve(count);
	for (std::size_t i = 0; i < count; ++i)
		sleepers.push_back(sleep_once(wheel, delay_of(i)).handle);
	begin = processor_now();
	for (auto handle : sleepers)
		handle.resume();
	run_all(wheel);
	return (processor_now() - begin) / static_cast<double>(count);
}

double time_timers()
{
	tw::wheel wheel = wheel_new();
	std::vector<request *> requests;
	double begin;

	ended = 0;
	requests.reserve(count);
	for (std::size_t i = 0; i < count; ++i)
		requests.push_back(new request{{}, delay_of(i), {}});
	begin = processor_now();
	for (request *one : requests)
		tw::check(tw_after_func(wheel.get(), tw::nanoseconds_of(one->delay), end_request,
					one, &one->timer));
	run_all(wheel);
	return (processor_now() - begin) / static_cast<double>(count);
}

double median(std::vector<double> times)
{
	std::sort(times.begin(), times.end());
	return times[times.size() / 2];
}

} /* namespace */

int main(int argc, char **argv)
{
	int runs = argc > 2 ? std::atoi(argv[2]) : 5;
	std::vector<double> sleeps;
	std::vector<double> timers;

	if (argc > 1)
		count = std::strtoull(argv[1], nullptr, 10);
	if (!count || runs < 1) {
		std::fputs("usage: coroutines [TIMERS [RUNS]]\n", stderr);
		return 2;
	}
	for (int run = 0; run < runs; ++run) {
		timers.push_back(time_timers());
		sleeps.push_back(time_sleeps());
	}
	std::printf("%-28s %8s\n%-28s %8.1f\n%-28s %8.1f\n%-28s %8.2f\n", "ns a timer, set and run",
		    "median", "tw_after_func", median(timers), "co_await wheel.sleep_for",
		    median(sleeps), "ratio", median(sleeps) / median(timers));
	return 0;
}
