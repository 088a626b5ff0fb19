/* SPDX-License-Identifier: MIT */
/*
 * This is Asio without Boost. For the calls of one thread its context has no locks. A restart
 * cancels the wait under way, whose handler runs in the next poll.
 */
#include "peers/timers.h"

#include <asio.hpp>
#include <chrono>
#include <memory>
#include <vector>

static std::unique_ptr<asio::io_context> context;
static std::vector<asio::steady_timer> timers;

static void open_context(size_t count, bool many)
{
	context.reset(new asio::io_context(many ? ASIO_CONCURRENCY_HINT_DEFAULT
						: ASIO_CONCURRENCY_HINT_UNSAFE));
	timers.reserve(count);
	for (size_t i = 0; i < count; i++)
		timers.emplace_back(*context);
}

static void start(size_t i, int64_t delay)
{
	timers[i].expires_after(std::chrono::milliseconds(delay));
	timers[i].async_wait([i](const asio::error_code &error) {
		if (!error)
			timers_ran(i);
	});
}

static void cancel(size_t i, int64_t)
{
	timers[i].cancel();
}

static void settle()
{
	context->restart();
	context->poll();
}

static void turn()
{
	context->run_one();
}

int main(int, char **argv)
{
	timers_peer peer = {"Asio", true,   open_context, start, start,
			    cancel, settle, nullptr,      turn};

	return timers_ask(&peer, argv[1]);
}
