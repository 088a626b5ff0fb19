/* SPDX-License-Identifier: MIT */
/* The C++ tests share a check, a wheel with a manual clock, and coroutines that begin at once. */
#ifndef CXX_SUPPORT_HPP
#define CXX_SUPPORT_HPP

#include <timingwheel/timingwheel.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>

#define CHECK(condition)                                                                     \
	do {                                                                                 \
		if (!(condition)) {                                                          \
			std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			std::exit(1);                                                        \
		}                                                                            \
	} while (0)

inline tw::wheel inline_wheel()
{
	tw_options options = {};

	options.clock = TW_CLOCK_MANUAL;
	options.drive = TW_DRIVE_CALLER;
	options.workers = TW_WORKERS_INLINE;
	return tw::wheel(std::chrono::milliseconds(1), 64, options);
}

/* Is a coroutine that frees itself at its end. */
struct task {
	struct promise_type {
		task get_return_object()
		{
			return {};
		}
		std::suspend_never initial_suspend() noexcept
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
};

/* Is a coroutine whose frame its owner destroys. Its exceptions come out of what resumes it. */
struct owned {
	struct promise_type : task::promise_type {
		owned get_return_object()
		{
			return owned{
				frame(std::coroutine_handle<promise_type>::from_promise(*this))};
		}
		std::suspend_always final_suspend() noexcept
		{
			return {};
		}
		void unhandled_exception()
		{
			throw;
		}
		/* Moves what is awaited, as tasks of other libraries do. */
		template <class Awaited> Awaited await_transform(Awaited &&awaited)
		{
			return std::move(awaited);
		}
	};
	struct destroyer {
		using pointer = std::coroutine_handle<promise_type>;

		void operator()(pointer handle) const noexcept
		{
			handle.destroy();
		}
	};
	using frame = std::unique_ptr<promise_type, destroyer>;

	frame handle;
};

#endif
