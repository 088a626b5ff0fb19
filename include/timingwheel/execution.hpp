/* SPDX-License-Identifier: MIT */
/*
 * A sender that sleeps on a wheel (timingwheel.hpp), for programs with C++26's std::execution or
 * with stdexec, its reference implementation:
 *
 *     stdexec::sync_wait(tw::schedule_after(wheel, 5s) | stdexec::then([] { ... }));
 *
 * It completes with set_value() in the thread that runs tasks. It completes with set_stopped() if
 * the token of its receiver requests a stop, in the thread of the request, and if the wheel is
 * stopped or drained. It completes with set_error(std::exception_ptr) with what tw::check() throws.
 * The wheel must outlive it.
 */
#ifndef TIMINGWHEEL_EXECUTION_HPP
#define TIMINGWHEEL_EXECUTION_HPP

#include <exception>
#include <functional>

#include <timingwheel/timingwheel.hpp>

#if __has_include(<stdexec/execution.hpp>)
#include <stdexec/execution.hpp>
#else
#include <execution>
#endif

namespace tw
{

namespace detail
{

#if __has_include(<stdexec/execution.hpp>)
namespace execution = stdexec;
using stdexec::get_stop_token;
#elif defined(__cpp_lib_senders)
namespace execution = std::execution;
using std::get_stop_token;
#else
#error "timingwheel/execution.hpp needs std::execution or stdexec"
#endif

/* Is constructed in place, and not moved. */
template <class Receiver> struct sleep_operation {
	using operation_state_concept = execution::operation_state_t;
	using token = std::remove_cvref_t<decltype(get_stop_token(
		execution::get_env(std::declval<const Receiver &>())))>;

	home *wheel;
	length delay;
	Receiver receiver;
	sleep<token, std::reference_wrapper<sleep_operation>> asleep{
		wheel, delay, get_stop_token(execution::get_env(receiver)), *this};

	void start() &noexcept
	{
		if (!asleep.await_suspend(*this))
			(*this)();
	}
	/* Completes. */
	void operator()() noexcept
	{
		tw_status status = asleep.finish();

		if (status == TW_REARMED || status == TW_CLOSED)
			return execution::set_stopped(std::move(receiver));
		if (status == TW_OK)
			return execution::set_value(std::move(receiver));
		try {
			check(status);
		} catch (...) {
			execution::set_error(std::move(receiver), std::current_exception());
		}
	}
};

} /* namespace detail */

/* What schedule_after() returns. It may be connected any number of times. */
struct sleep_sender {
	using sender_concept = detail::execution::sender_t;
	using completion_signatures = detail::execution::completion_signatures<
		detail::execution::set_value_t(), detail::execution::set_stopped_t(),
		detail::execution::set_error_t(std::exception_ptr)>;

	detail::home *wheel;
	length delay;

	template <class Receiver> auto connect(Receiver receiver) const noexcept
	{
		return detail::sleep_operation<Receiver>{wheel, delay, std::move(receiver)};
	}
};

/* Returns a sender that completes when the delay has passed since it was started. */
inline sleep_sender schedule_after(const wheel &wheel, length delay) noexcept
{
	return {wheel.home_.get(), delay};
}

} /* namespace tw */

#endif
