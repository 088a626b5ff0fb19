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

#include <timingwheel/timingwheel.hpp>

#if __has_include(<stdexec/execution.hpp>)
#include <stdexec/execution.hpp>

namespace tw::detail
{
namespace execution = stdexec;
using stdexec::get_stop_token;
using stdexec::stop_callback_for_t;
using stdexec::stop_token_of_t;
} /* namespace tw::detail */
#else
#include <execution>
#ifndef __cpp_lib_senders
#error "timingwheel/execution.hpp needs std::execution or stdexec"
#endif

namespace tw::detail
{
namespace execution = std::execution;
using std::get_stop_token;
using std::stop_callback_for_t;
using std::stop_token_of_t;
} /* namespace tw::detail */
#endif

namespace tw
{

namespace detail
{

template <class Receiver> struct stop_callback_of {
	using token = stop_token_of_t<execution::env_of_t<Receiver>>;
	template <class Stopper> using type = stop_callback_for_t<token, Stopper>;
};

template <class Receiver>
struct sleep_operation : private stoppable_sleep<stop_callback_of<Receiver>::template type> {
	using operation_state_concept = execution::operation_state_t;

	sleep_operation(tw_wheel *wheel, tw_duration delay, Receiver &&receiver)
		: sleep_operation::stoppable_sleep(wheel, delay, complete),
		  receiver_(std::move(receiver))
	{
	}

	void start() &noexcept
	{
		if (!this->begin(get_stop_token(execution::get_env(receiver_))))
			complete(this);
	}

      private:
	static void complete(sleep *ended) noexcept
	{
		sleep_operation *self = static_cast<sleep_operation *>(ended);

		if (self->finish() || self->status == TW_CLOSED)
			return execution::set_stopped(std::move(self->receiver_));
		if (self->status == TW_OK)
			return execution::set_value(std::move(self->receiver_));
		try {
			check(self->status);
		} catch (...) {
			execution::set_error(std::move(self->receiver_), std::current_exception());
		}
	}

	Receiver receiver_;
};

} /* namespace detail */

/* What schedule_after() returns. It may be connected any number of times. */
struct sleep_sender {
	using sender_concept = detail::execution::sender_t;
	using completion_signatures = detail::execution::completion_signatures<
		detail::execution::set_value_t(), detail::execution::set_stopped_t(),
		detail::execution::set_error_t(std::exception_ptr)>;

	tw_wheel *wheel;
	tw_duration delay;

	template <class Receiver> auto connect(Receiver receiver) const noexcept
	{
		return detail::sleep_operation<Receiver>(wheel, delay, std::move(receiver));
	}
};

/* Returns a sender that completes when the delay has passed since it was started. */
template <class Rep, class Period>
sleep_sender schedule_after(const wheel &wheel, std::chrono::duration<Rep, Period> delay) noexcept
{
	return {wheel.get(), nanoseconds_of(delay)};
}

} /* namespace tw */

#endif
