/* SPDX-License-Identifier: MIT */
/*
 * This program drives a wheel from an io_context of Asio. timers.h says how, in general. With
 * Boost, <boost/asio.hpp> is included, asio is boost::asio, and std::error_code is
 * boost::system::error_code.
 */
#include "timers.h"

#include <asio.hpp>
#include <chrono>
#include <functional>

static void wait_at_descriptor(asio::io_context &io)
{
	asio::posix::stream_descriptor descriptor(io, tw_fd(wheel));
	std::function<void(std::error_code)> poll_wheel = [&](std::error_code error) {
		if (error)
			return;
		tw_poll(wheel, nullptr);
		/* Without a wait the loop has nothing to do, and ends. */
		if (!is_done)
			descriptor.async_wait(descriptor.wait_read, poll_wheel);
	};

	descriptor.async_wait(descriptor.wait_read, poll_wheel);
	io.run();
	/* The wheel closes its descriptor itself. */
	descriptor.release();
}

/* Asio calls nothing before it sleeps, so the program makes the turns itself. run_one_for wakes
 * once a second, and sleeps again. */
static void sleep_until_deadlines(asio::io_context &io)
{
	auto work = asio::make_work_guard(io);
	tw_duration left;

	while (tw_poll(wheel, &left) == TW_OK && !is_done)
		if (left == TW_FOREVER)
			io.run_one();
		else
			io.run_one_for(std::chrono::nanoseconds(left));
}

static void run(bool with_worker, void (*run_loop)(asio::io_context &io))
{
	asio::io_context io;

	asio::post(io, set_timers);
	open_wheel(with_worker);
	run_loop(io);
	close_wheel();
}

int main()
{
	run(true, wait_at_descriptor);
	run(false, sleep_until_deadlines);
	return 0;
}
