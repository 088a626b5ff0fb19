/* SPDX-License-Identifier: MIT */
/*
 * This is the C++20 interface of the wheel, on the C interface (timingwheel.h). It has owning
 * types, durations of std::chrono, functions that are lambdas, and sleeps of coroutines:
 *
 *     tw::wheel wheel(1ms, 512);
 *
 *     wheel.after(30s, [id] { expire(id); });            (a timer by handle)
 *     wheel.set("order:7", 30s, [order] { ... });        (a timer by key)
 *     bool slept = co_await wheel.sleep_for(5s, token);  (false if a stop was requested)
 *
 * (gcc 12 miscompiles a co_await with a temporary argument inside a condition.)
 *
 * What timingwheel.h says of a call, its threads and its costs, holds for the member of that name.
 * Constructors, wheel::after, wheel::every and sleeps throw std::bad_alloc for TW_NO_MEMORY and
 * std::system_error for other statuses. Other members return the status; wheel::set and wheel::add
 * throw std::bad_alloc if there is no memory for the function. Delays are rounded up to
 * nanoseconds; one that is too long for them never ends.
 *
 * A function is any object that can be moved and called without arguments. It is destroyed after
 * its last run; if it will not run, in a thread that runs tasks, or by the call that stops it or
 * fails to set it. Each is allocated.
 *
 * A function that throws has run, and what comes after it goes on. The first exception comes out of
 * the member that drives the wheel in this thread: poll, advance, wait_idle or stop. Elsewhere, as
 * in a thread of the wheel, an exception ends the process. All this holds for sleeps that throw.
 */
#ifndef TIMINGWHEEL_TIMINGWHEEL_HPP
#define TIMINGWHEEL_TIMINGWHEEL_HPP

#include <atomic>
#include <cerrno>
#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <ratio>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include <timingwheel/timingwheel.h>

namespace tw
{

/* Returns the category of errors that are statuses. */
inline const std::error_category &category() noexcept
{
	static const struct : std::error_category {
		const char *name() const noexcept override
		{
			return "timingwheel";
		}
		std::string message(int status) const override
		{
			return tw_status_text(static_cast<tw_status>(status));
		}
	} the_one;

	return the_one;
}

/* Throws unless the status is TW_OK. TW_SYSTEM throws the error of errno. */
inline void check(tw_status status)
{
	if (status == TW_NO_MEMORY)
		throw std::bad_alloc();
	if (status == TW_SYSTEM)
		throw std::system_error(errno, std::generic_category());
	if (status != TW_OK)
		throw std::system_error(status, category());
}

/* Returns a length of time in nanoseconds, rounded up; TW_FOREVER if it is too long for them. */
template <class Rep, class Period>
constexpr tw_duration nanoseconds_of(std::chrono::duration<Rep, Period> time) noexcept
{
	using std::chrono::nanoseconds;
	using wide = std::chrono::duration<
		std::conditional_t<std::is_floating_point_v<Rep>, Rep, std::int64_t>, Period>;

	if constexpr (std::ratio_greater_equal_v<Period, std::nano>) {
		constexpr auto most = std::chrono::duration_cast<wide>(nanoseconds::max());

		if constexpr (std::is_unsigned_v<Rep>)
			if (time.count() > static_cast<std::uint64_t>(most.count()))
				return TW_FOREVER;
		if (!(wide(time) < most))
			return TW_FOREVER;
		if (!(wide(time) > -most))
			return -TW_FOREVER;
	}
	return static_cast<tw_duration>(std::chrono::ceil<nanoseconds>(wide(time)).count());
}

namespace detail
{

/* Is a member's call that drives a wheel. */
struct driving {
	tw_wheel *wheel;
	driving *outer;                     /* the one whose function makes this one, or NULL */
	std::exception_ptr first = nullptr; /* the first exception of the functions that it runs */
	bool is_last = false;               /* one of them destroys the wheel */
};

/* Is the innermost one of this thread, or NULL. */
inline thread_local driving *driven = nullptr;

/* Calls what the wheel runs. */
template <class Call> void run_guarded(Call &&call)
{
	if (!driven) {
		call();
		return;
	}
	try {
		call();
	} catch (...) {
		if (!driven->first)
			driven->first = std::current_exception();
	}
}

/* Makes a call that drives a wheel. When it has returned, ends the wheel and rethrows. */
template <class Call> tw_status drive(tw_wheel *wheel, Call &&call)
{
	driving one{wheel, driven};
	tw_status status;

	driven = &one;
	status = call();
	if (one.is_last)
		(void)tw_destroy(wheel);
	driven = one.outer;
	if (one.first)
		std::rethrow_exception(one.first);
	return status;
}

/* Ends a wheel, in one of its functions when the outermost call that drives it in this thread has
 * returned, or else in a thread of its own. */
struct ender {
	void operator()(tw_wheel *wheel) const noexcept
	{
		driving *last = nullptr;

		if (tw_destroy(wheel) != TW_INVALID)
			return;
		(void)tw_stop(wheel);
		for (driving *one = driven; one; one = one->outer)
			if (one->wheel == wheel)
				last = one;
		if (last)
			last->is_last = true;
		else
			std::thread([wheel] { (void)tw_destroy(wheel); }).detach();
	}
};

/* Holds a function that was allocated. */
struct boxed {
	virtual ~boxed() = default;
	virtual void call() = 0;
};
using boxed_pointer = std::unique_ptr<boxed>;

template <class F> struct box final : boxed {
	F function;

	explicit box(F &&f) : function(std::move(f))
	{
	}
	void call() override
	{
		function();
	}
};

template <class F> boxed_pointer box_of(F &&function)
{
	using plain = std::decay_t<F>;

	return std::make_unique<box<plain>>(plain(std::forward<F>(function)));
}

inline void run_once(void *argument)
{
	boxed_pointer box(static_cast<boxed *>(argument));

	run_guarded([&] { box->call(); });
}

/* Holds the function of every(). A stop that comes while it may be running leaves it to the next
 * run, which calls nothing more. */
struct repeated {
	boxed_pointer function;
	std::shared_ptr<std::atomic<bool>> is_stopped;
};

inline void run_again(void *argument)
{
	repeated *self = static_cast<repeated *>(argument);
	const tw_task *task = tw_current_task();

	/* relaxed: the reset that brings this run orders it */
	if (!self->is_stopped->load(std::memory_order_relaxed))
		run_guarded([self] { self->function->call(); });
	else if (tw_timer_stop(task->wheel, task->timer) == TW_REARMED)
		delete self;
}

/* Holds the sleep of a coroutine, in its frame. */
struct sleep {
	std::coroutine_handle<> sleeper;
	tw_timer timer = {};
	tw_status status = TW_OK;
	void (*wake)(sleep *self);

	static void run(void *argument)
	{
		sleep *self = static_cast<sleep *>(argument);

		run_guarded([self] { self->wake(self); });
	}
};

/* A sleep that also ends when a stop is requested. Callback is std::stop_callback, or another
 * token's. */
template <template <class> class Callback> class stoppable_sleep : public sleep
{
      public:
	stoppable_sleep(tw_wheel *wheel, tw_duration delay, void (*ended)(sleep *))
		: ended_(ended), wheel_(wheel), delay_(delay)
	{
		wake = end;
	}
	stoppable_sleep(const stoppable_sleep &) = delete;
	stoppable_sleep &operator=(const stoppable_sleep &) = delete;

	/* Begins the sleep. If it returns true, `ended` is called, perhaps before the return. Else
	 * the sleep is over, or failed with `status`. */
	template <class Token> bool begin(Token &&token)
	{
		tw_status armed =
			tw_after_func(wheel_, delay_, run, static_cast<sleep *>(this), &timer);

		if (armed != TW_OK) {
			status = armed; /* not otherwise: a drain may have set it by now */
			return false;
		}
		callback_.emplace(std::forward<Token>(token), stopper{this});
		/* acq_rel: the later of this and end() sees what the earlier did, and goes on. */
		return parts_.fetch_add(1, std::memory_order_acq_rel) == 0;
	}
	/* Returns whether a stop ended it. To be called once it has ended. */
	bool finish() noexcept
	{
		callback_.reset();
		return is_stopped_;
	}

      private:
	struct stopper {
		stoppable_sleep *self;

		void operator()() const noexcept
		{
			if (tw_timer_stop(self->wheel_, self->timer) != TW_OK)
				return;
			self->is_stopped_ = true;
			end(self);
		}
	};

	static void end(sleep *one)
	{
		stoppable_sleep *self = static_cast<stoppable_sleep *>(one);

		/* acq_rel: as in begin(). */
		if (self->parts_.fetch_add(1, std::memory_order_acq_rel) == 1)
			self->ended_(self);
	}

	void (*ended_)(sleep *);
	tw_wheel *wheel_;
	tw_duration delay_;
	std::atomic<int> parts_ = 0; /* how many of begin() and end() are over */
	bool is_stopped_ = false;
	std::optional<Callback<stopper>> callback_;
};

/* Destroys a function, or wakes a sleep, that a drain or a stop of the wheel gives back. */
inline void take_back(void *, const tw_task *task)
{
	if (task->key || task->run == run_once) {
		delete static_cast<boxed *>(task->value);
	} else if (task->run == run_again) {
		delete static_cast<repeated *>(task->value);
	} else if (task->run == sleep::run) {
		sleep *self = static_cast<sleep *>(task->value);

		self->status = TW_CLOSED;
		sleep::run(self);
	}
}

inline void release(void *context, const tw_task *task, tw_reason)
{
	take_back(context, task);
}

inline void execute(void *, const tw_task *task)
{
	run_once(task->value);
}

} /* namespace detail */

/* Refers to a timer by handle, and owns nothing: the timer goes on without it. It must not be used
 * after its wheel is destroyed. */
class timer
{
      public:
	timer() = default;

	/* Stops the timer as tw_timer_take does. With TW_OK the function is destroyed. If the timer
	 * is periodic, TW_OK means that it is not called again: a call under way goes on, and the
	 * function is destroyed after it, by the wheel. */
	tw_status stop() noexcept
	{
		void *argument;
		tw_status status;

		if (is_stopped_) {
			/* relaxed: the reset orders it */
			if (is_stopped_->exchange(true, std::memory_order_relaxed))
				return TW_NOT_FOUND;
			return tw_timer_reset(wheel_, id_, 0);
		}
		status = tw_timer_take(wheel_, id_, &argument);
		if (status == TW_OK)
			delete static_cast<detail::boxed *>(argument);
		return status;
	}

	/* Returns the handle of the C interface. Do not stop the timer with it, which would leak
	 * the function, nor reset a timer of after(), which destroys its function after one run. */
	tw_timer get() const noexcept
	{
		return id_;
	}

      private:
	friend class wheel;

	tw_wheel *wheel_ = nullptr;
	tw_timer id_ = {};
	std::shared_ptr<std::atomic<bool>> is_stopped_; /* set for a timer of every() */
};

/*
 * Is what wheel::sleep_for returns, and is awaited once, at once. The coroutine resumes in the
 * thread that runs tasks, or in the one that requests the stop. The await returns whether the whole
 * time has passed; it throws if the wheel is stopped or drained, or has no memory.
 */
class [[nodiscard]] sleeping : detail::sleep, public std::suspend_always
{
      public:
	sleeping(tw_wheel *wheel, tw_duration delay) : wheel_(wheel), delay_(delay)
	{
		wake = [](sleep *self) { self->sleeper.resume(); };
	}
	sleeping(const sleeping &) = delete;
	sleeping &operator=(const sleeping &) = delete;

	bool await_suspend(std::coroutine_handle<> handle) noexcept
	{
		tw_status armed;

		sleeper = handle;
		armed = tw_after_func(wheel_, delay_, run, static_cast<sleep *>(this), &timer);
		if (armed == TW_OK)
			return true; /* *this may be destroyed by now */
		status = armed;
		return false;
	}
	bool await_resume() const
	{
		check(status);
		return true;
	}

      private:
	tw_wheel *wheel_;
	tw_duration delay_;
};

/* A sleep that ends early if a stop is requested; else it is as `sleeping`. */
class [[nodiscard]] stoppable_sleeping : detail::stoppable_sleep<std::stop_callback>,
					 public std::suspend_always
{
      public:
	stoppable_sleeping(tw_wheel *wheel, tw_duration delay, std::stop_token token)
		: stoppable_sleep(wheel, delay, [](sleep *self) { self->sleeper.resume(); }),
		  token_(std::move(token))
	{
	}

	bool await_suspend(std::coroutine_handle<> handle)
	{
		sleeper = handle;
		return begin(std::move(token_));
	}
	bool await_resume()
	{
		bool is_stopped = finish();

		check(status);
		return !is_stopped;
	}

      private:
	std::stop_token token_;
};

/*
 * Owns a wheel. After it was moved from, members return TW_INVALID or throw it. The destructor waits
 * for functions that are running, and destroys all others. In a function of the wheel it stops the
 * wheel, which ends later: in a thread of its own or, if a member drives the wheel in this thread,
 * when that has returned. A call of the C interface must not drive it then.
 */
class wheel
{
      public:
	/* Makes a wheel. Its keyed timers are set by set() and add(), so there is no execute, and
	 * options.release must be NULL. */
	template <class Rep, class Period>
	wheel(std::chrono::duration<Rep, Period> interval, std::size_t slots,
	      const tw_options &options = {})
	{
		tw_options own = options;
		tw_wheel *made;

		if (own.release)
			check(TW_INVALID);
		own.release = detail::release;
		check(tw_create(&made, nanoseconds_of(interval), slots, detail::execute, &own));
		wheel_.reset(made);
	}

	/* Returns the wheel of the C interface, for all calls except those that set keyed timers. */
	tw_wheel *get() const noexcept
	{
		return wheel_.get();
	}

	/* Runs the function once, after the delay. */
	template <class Rep, class Period, std::invocable F>
	timer after(std::chrono::duration<Rep, Period> delay, F &&function)
	{
		auto box = detail::box_of(std::forward<F>(function));
		timer made;

		made.wheel_ = get();
		check(tw_after_func(get(), nanoseconds_of(delay), detail::run_once, box.get(),
				    &made.id_));
		(void)box.release();
		return made;
	}
	/* Runs the function after `first` and then each period. */
	template <class Rep, class Period, class Rep2, class Period2, std::invocable F>
	timer every(std::chrono::duration<Rep, Period> first,
		    std::chrono::duration<Rep2, Period2> period, F &&function,
		    tw_missed missed = TW_MISSED_BURST)
	{
		auto repeated = std::make_unique<detail::repeated>(
			detail::repeated{detail::box_of(std::forward<F>(function)),
					 std::make_shared<std::atomic<bool>>(false)});
		timer made;

		made.wheel_ = get();
		made.is_stopped_ = repeated->is_stopped;
		check(tw_every(get(), nanoseconds_of(first), nanoseconds_of(period), missed,
			       detail::run_again, repeated.get(), &made.id_));
		(void)repeated.release();
		return made;
	}

	/* Runs the function once, after the delay, unless it is replaced or removed. With any
	 * status but TW_OK the function is destroyed. */
	template <class Rep, class Period, std::invocable F>
	tw_status set(std::string_view key, std::chrono::duration<Rep, Period> delay, F &&function)
	{
		return set_by(tw_set_timer, key, nanoseconds_of(delay), std::forward<F>(function));
	}
	/* Sets as set() does, if the key has no timer. */
	template <class Rep, class Period, std::invocable F>
	tw_status add(std::string_view key, std::chrono::duration<Rep, Period> delay, F &&function)
	{
		return set_by(tw_add_timer, key, nanoseconds_of(delay), std::forward<F>(function));
	}
	template <class Rep, class Period>
	tw_status move(std::string_view key, std::chrono::duration<Rep, Period> delay) noexcept
	{
		return tw_move_timer(get(), key.data(), key.size(), nanoseconds_of(delay));
	}
	tw_status remove(std::string_view key) noexcept
	{
		return tw_remove_timer(get(), key.data(), key.size());
	}

	/* Returns what a coroutine awaits to sleep until the time has passed. */
	template <class Rep, class Period>
	sleeping sleep_for(std::chrono::duration<Rep, Period> delay) noexcept
	{
		return sleeping(get(), nanoseconds_of(delay));
	}
	/* Returns what a coroutine awaits to sleep until then, or until a stop is requested. */
	template <class Rep, class Period>
	stoppable_sleeping sleep_for(std::chrono::duration<Rep, Period> delay,
				     std::stop_token token) noexcept
	{
		return stoppable_sleeping(get(), nanoseconds_of(delay), std::move(token));
	}

	/* Removes all pending timers. Their functions are destroyed; sleeps throw TW_CLOSED. */
	tw_status drain() noexcept
	{
		return tw_drain(get(), detail::take_back, nullptr);
	}
	tw_status stop()
	{
		return detail::drive(get(), [this] { return tw_stop(get()); });
	}
	tw_status wait_idle()
	{
		return detail::drive(get(), [this] { return tw_wait_idle(get()); });
	}
	/* Drives a wheel that callers drive. On TW_OK *until_next is how long the caller may sleep. */
	tw_status poll(std::chrono::nanoseconds *until_next = nullptr)
	{
		tw_duration left;
		tw_status status = detail::drive(get(), [&] { return tw_poll(get(), &left); });

		if (status == TW_OK && until_next)
			*until_next = std::chrono::nanoseconds(left);
		return status;
	}
	/* Moves a manual clock. */
	template <class Rep, class Period> tw_status advance(std::chrono::duration<Rep, Period> by)
	{
		return detail::drive(get(), [&] { return tw_advance(get(), nanoseconds_of(by)); });
	}
	/* Returns the time on the wheel's clock. */
	std::chrono::nanoseconds now() const noexcept
	{
		return std::chrono::nanoseconds(tw_now(get()));
	}

      private:
	template <class F>
	tw_status set_by(decltype(tw_set_timer) *call, std::string_view key, tw_duration delay,
			 F &&function)
	{
		auto box = detail::box_of(std::forward<F>(function));
		tw_status status = call(get(), key.data(), key.size(), box.get(), delay);

		if (status == TW_OK)
			(void)box.release();
		return status;
	}

	std::unique_ptr<tw_wheel, detail::ender> wheel_;
};

/*
 * Owns an alarm, which can be set any number of times without an allocation. It must be destroyed
 * before its wheel. Its destructor waits for a run under way, but in a task of the wheel. After it
 * was moved from, members return TW_INVALID.
 */
class alarm
{
      public:
	template <std::invocable F> alarm(wheel &wheel, F &&function)
	{
		std::unique_ptr<shared> made(
			new shared{detail::box_of(std::forward<F>(function)), {}});

		check(tw_alarm_init(wheel.get(), &made->alarm, run, made.get()));
		shared_.reset(made.release());
	}
	template <class Rep, class Period>
	tw_status set(std::chrono::duration<Rep, Period> delay) noexcept
	{
		return tw_alarm_set(get(), nanoseconds_of(delay));
	}
	tw_status stop() noexcept
	{
		return tw_alarm_stop(get());
	}
	/* Returns the alarm of the C interface, which this one owns. */
	tw_alarm *get() const noexcept
	{
		return shared_ ? &shared_->alarm : nullptr;
	}

      private:
	/* Lies still while the alarm moves, and may outlive it. */
	struct shared {
		detail::boxed_pointer function;
		tw_alarm alarm;
	};

	struct ender {
		void operator()(shared *one) const noexcept
		{
			if (tw_alarm_destroy(&one->alarm) == TW_OK)
				delete one;
			else
				(void)tw_alarm_close(&one->alarm, closed);
		}
	};

	static void run(void *argument)
	{
		shared *self = static_cast<shared *>(argument);

		detail::run_guarded([self] { self->function->call(); });
	}

	static void closed(void *argument)
	{
		delete static_cast<shared *>(argument);
	}

	std::unique_ptr<shared, ender> shared_;
};

} /* namespace tw */

#endif
