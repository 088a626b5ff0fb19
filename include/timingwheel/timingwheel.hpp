/* SPDX-License-Identifier: MIT */
/*
 * This is the C++20 interface of the wheel, on the C interface (timingwheel.h). It has owning
 * types, durations of std::chrono, functions that are lambdas, calendars, and sleeps of coroutines:
 *
 *     tw::wheel wheel(1ms, 512);
 *
 *     wheel.after(30s, [id] { expire(id); });                (a timer by handle)
 *     tw::timer beat = wheel.every(1s, 1s, [this] { ... });  (stopped when `beat` is destroyed)
 *     wheel.every(tw::cron("30 9 * * *", "Europe/Berlin"), [] { ... });
 *     tw_status set = wheel.set("order:7", 30s, [order] { ... });  (a timer by key)
 *     bool slept = co_await wheel.sleep_for(5s, token);      (false if a stop was requested)
 *
 * (gcc 12 miscompiles a co_await with a temporary argument inside a condition.)
 *
 * What timingwheel.h and cron.h say of a call holds for the member of that name. Constructors,
 * members that return a handle, and sleeps throw std::bad_alloc for TW_NO_MEMORY and
 * std::system_error for other statuses; compiled with -fno-exceptions, they call std::terminate.
 * Other members return the status; wheel::set and wheel::add throw std::bad_alloc if there is no
 * memory for the function. Delays are rounded up to nanoseconds; one that is too long never ends.
 *
 * A function is any object that can be moved and called, without arguments or, for a timer by
 * handle, with a tw::handle. It keeps its state from run to run. It is destroyed after its last
 * run; if it will not run, by the call that stops it or fails to set it, or in a thread that runs
 * tasks. Each is allocated.
 *
 * A function that throws has run, and what comes after it goes on. The first exception comes out of
 * the member that drives the wheel in this thread: poll, advance, wait_idle or stop. Elsewhere, as
 * in a thread of the wheel, an exception ends the process. All this holds for sleeps that throw.
 *
 * Libraries and plugins that include this header may share wheels, and be unloaded once what they
 * made is destroyed.
 */
#ifndef TIMINGWHEEL_TIMINGWHEEL_HPP
#define TIMINGWHEEL_TIMINGWHEEL_HPP

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <ratio>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include <timingwheel/cron.h>
#include <timingwheel/timingwheel.h>

namespace tw
{

namespace detail
{

/* Holds the category of errors that are statuses. It is never destroyed. */
union category_place {
	struct status_category final : std::error_category {
		const char *name() const noexcept override
		{
			return "timingwheel";
		}
		std::string message(int status) const override
		{
			return tw_status_text(static_cast<tw_status>(status));
		}
	} value{};

	~category_place()
	{
	}
};

/* A weak symbol is one for a program and its libraries. So is a static variable of an inline
 * function, but that one would keep a library from being unloaded. */
extern "C" {
[[gnu::weak, gnu::visibility("default")]] category_place tw_cxx_category;
}

/* Is the argument of a timer, or the value of a key, that this header sets. */
struct job {
	/* Says where a sleep is, or whether a periodic function is called now. */
	enum phase : unsigned char { IDLE, BEGINNING, ASLEEP, ENDED, LEAVING, RUNNING, STOPPED };

	std::atomic<phase> at = IDLE;
	tw_status status = TW_OK; /* says how a sleep has ended */

	virtual ~job() = default;
	virtual void run() = 0;
	/* Ends a job that will not run. */
	virtual void close()
	{
		delete this;
	}
};

/* Holds the first exception that a member's call drives to in this thread, the innermost such call;
 * or NULL. It is for wheels that this program or library made. */
[[gnu::visibility("hidden")]] inline thread_local std::exception_ptr *thrown = nullptr;

/* Runs or closes a job. */
template <void (job::*act)()> void act_on(void *one)
{
#ifdef __cpp_exceptions
	if (thrown) {
		try {
			(static_cast<job *>(one)->*act)();
		} catch (...) {
			if (!*thrown)
				*thrown = std::current_exception();
		}
		return;
	}
#endif
	(static_cast<job *>(one)->*act)();
}

/* Is a wheel's part in C++. Its functions are those of the program or library that made the wheel,
 * whichever uses it: by `run` a timer is known as one of this header. */
struct home : std::enable_shared_from_this<home> {
	tw_wheel *wheel = nullptr;
	tw_options options; /* the program's */
	void (*run)(void *) = act_on<&job::run>;
	std::exception_ptr *&(*thrown_here)() = []() -> auto &
	{
		return thrown;
	};
	std::mutex lock;
	std::unordered_set<std::uint64_t> left; /* timers on their way back whose sleep is gone */

	/* Calls one of the program's functions, if there is one. */
	template <auto function, class... Arguments>
	static void pass_on(void *context, Arguments... arguments)
	{
		const tw_options &given = static_cast<home *>(context)->options;

		if (given.*function)
			(given.*function)(given.context, arguments...);
	}
	/* Takes back what a stop or a drain returns. */
	static void take_back(void *context, const tw_task *task, tw_reason reason)
	{
		home *self = static_cast<home *>(context);
		job *one = static_cast<job *>(task->value);

		if (!task->key && task->run != self->run)
			return pass_on<&tw_options::release>(context, task, reason);
		std::unique_lock hold(self->lock);
		if (self->left.erase(task->timer.id))
			return;
		one->status = TW_CLOSED;
		/* acq_rel: as in sleeping::await_suspend() */
		const job::phase at = one->at.exchange(job::ENDED, std::memory_order_acq_rel);
		hold.unlock();
		if (at != job::BEGINNING && at != job::LEAVING)
			act_on<&job::close>(one);
	}
	/* Ends the wheel in this thread or, in a function of the wheel, in a thread of its own. */
	static void end(home *self)
	{
		if (tw_destroy(self->wheel) == TW_INVALID)
			std::thread([self] { end(self); }).detach();
		else
			delete self;
	}
};

/* Makes a call that drives a wheel. When it has returned, rethrows. */
tw_status drive(home *self, auto *call, auto... arguments)
{
	std::exception_ptr first;

	if (!self)
		return TW_INVALID;
	auto kept = self->shared_from_this();
	std::exception_ptr *&innermost = self->thrown_here();
	std::exception_ptr *outer = std::exchange(innermost, &first);
	tw_status status = call(self->wheel, arguments...);

	kept.reset(); /* perhaps the last owner: a function may have destroyed the wheel */
	innermost = outer;
	if (first)
		std::rethrow_exception(first);
	return status;
}

} /* namespace detail */

/* Returns the category of errors that are statuses. */
inline const std::error_category &category() noexcept
{
	return detail::tw_cxx_category.value;
}

/* Throws unless the status is TW_OK. TW_SYSTEM throws the error of errno. */
[[gnu::noinline, gnu::cold]] inline void check(tw_status status, const char *text = "timingwheel")
{
	if (status == TW_OK)
		return;
#ifdef __cpp_exceptions
	if (status == TW_NO_MEMORY)
		throw std::bad_alloc();
	if (status == TW_SYSTEM)
		throw std::system_error(errno, std::generic_category(), text);
	throw std::system_error(status, category(), text);
#else
	(void)text;
	std::terminate();
#endif
}

/* Is a length of time of any unit in nanoseconds, rounded up; ±TW_FOREVER if it is too long. */
struct length {
	tw_duration nanoseconds;

	template <class Rep, class Period>
	constexpr length(std::chrono::duration<Rep, Period> time) noexcept
	{
		/* A unit is up / down nanoseconds. Whole ones of them need 64 bits only. */
		constexpr std::intmax_t shared = std::gcd(Period::den, std::nano::den);
		constexpr bool is_exact = std::is_integral_v<Rep> && sizeof(Rep) <= 8;
		constexpr bool is_short = std::is_signed_v<Rep> && Period::den == shared &&
					  Period::num <= std::nano::den;
		__extension__ using wide = __int128;
		using real = std::conditional_t<std::is_floating_point_v<Rep>, Rep, long double>;
		using integer = std::conditional_t<is_short, std::intmax_t, wide>;
		using number = std::conditional_t<is_exact, integer, real>;
		constexpr number up = static_cast<number>(Period::num) * (std::nano::den / shared);
		constexpr number down = static_cast<number>(Period::den / shared);
		constexpr number most = static_cast<number>(TW_FOREVER) * down / up;
		const number count = static_cast<number>(time.count());

		if (count <= most && count >= -most) {
			const wide whole = static_cast<wide>(count * up / down);
			const bool more = static_cast<number>(whole) * down < count * up;

			nanoseconds =
				static_cast<tw_duration>(std::min<wide>(whole + more, TW_FOREVER));
		} else {
			nanoseconds = count < 0 ? -TW_FOREVER : TW_FOREVER;
		}
	}
};

/* Is the length of time that never ends. */
inline constexpr std::chrono::nanoseconds never{TW_FOREVER};

/*
 * Refers to a timer by handle, and owns nothing: the timer goes on without it. It must not be used
 * after its wheel is destroyed.
 *
 * A run may begin before the handle that started it has been assigned to a variable. So a function
 * that needs its own timer takes the handle:
 *
 *     wheel.every(1s, 1s, [left = 3](tw::handle self) mutable { if (--left == 0) self.stop(); });
 */
class handle
{
      public:
	handle() = default;
	handle(detail::home *on, tw_timer id) noexcept : home_(on), wheel_(on->wheel), id_(id)
	{
	}

	/* Stops the timer as tw_timer_take does. With TW_OK the function is destroyed or, if it is a
	 * periodic timer's and is being called, will be after the call. */
	tw_status stop() noexcept
	{
		void *argument = nullptr;
		tw_status status = tw_timer_take(wheel_, id_, &argument);
		detail::job *one = static_cast<detail::job *>(argument);

		if (status == TW_REARMED) {
			/* acq_rel: the later exchange, this or the call's last, destroys it. */
			if (one->at.exchange(detail::job::STOPPED, std::memory_order_acq_rel) ==
			    detail::job::RUNNING)
				return TW_OK;
			wait(); /* the run is about to call it, and will not, or has called it */
			status = TW_OK;
		}
		if (status == TW_OK)
			one->close();
		return status;
	}
	/* Stops the timer, and waits for a call under way, but in that call. Two calls that wait for
	 * each other hang. */
	tw_status stop_and_wait() noexcept
	{
		const tw_task *task = tw_current_task();
		tw_status status = stop();

		if (!task || task->timer.id != id_.id || task->wheel != wheel_)
			wait();
		return status;
	}

	/* Returns the handle of the C interface. Do not stop the timer with it, which would leak
	 * the function, nor reset a timer of after(), which destroys its function after one run. */
	tw_timer get() const noexcept
	{
		return id_;
	}

      protected:
	/* Waits until the stopped timer is not running. In a function of the wheel the C interface
	 * does not wait. */
	void wait() const noexcept
	{
		while (tw_timer_stop_wait(wheel_, id_) == TW_RUNNING)
			std::this_thread::sleep_for(std::chrono::microseconds(50));
	}

	detail::home *home_ = nullptr;
	tw_wheel *wheel_ = nullptr;
	tw_timer id_ = {};
};

/* Owns a timer, as std::jthread owns a thread: its destructor and an assignment stop the timer, and
 * wait as stop_and_wait() does. After the wheel's end they do nothing. */
class timer : public handle
{
      public:
	timer(handle started = {}) noexcept : handle(started)
	{
		if (home_)
			owned_ = home_->weak_from_this();
	}
	timer(timer &&other) noexcept : timer(std::exchange<handle, handle>(other, {}))
	{
	}
	timer &operator=(timer other) noexcept
	{
		std::swap<handle>(*this, other);
		owned_.swap(other.owned_);
		return *this;
	}
	~timer()
	{
		if (const auto kept = owned_.lock())
			(void)stop_and_wait();
	}

      private:
	std::weak_ptr<detail::home> owned_; /* the wheel, until its end */
};

/* Owns a calendar (cron.h). The constructor throws an error with its text. */
struct cron : std::shared_ptr<tw_cron> {
	explicit cron(const char *expression, const char *zone = nullptr)
	{
		tw_cron_error wrong = {};
		tw_cron *made;
		tw_status status = tw_cron_create(&made, expression, zone, &wrong);

		check(status, wrong.text);
		reset(made, tw_cron_destroy);
	}
};

namespace detail
{

/* Stands for what is not needed: a token that requests no stop, and what it would call. */
struct nothing {
	void reset()
	{
	}
};

template <class F, class Called = std::decay_t<F> &>
concept function = std::invocable<Called> || std::invocable<Called, handle>;

/* Holds a function, which its only run destroys or, if it repeats, its end. `kept` is destroyed with
 * it. */
template <bool repeats, class F, class Kept> struct function_of : job {
	home *wheel;
	F function;
	[[no_unique_address]] Kept kept;

	function_of(home *on, auto &&given, Kept more)
		: wheel(on), function(std::forward<decltype(given)>(given)), kept(std::move(more))
	{
	}
	void run() override
	{
		/* acq_rel: as in handle::stop(), which destroys it if the stop comes before */
		if (repeats && at.exchange(RUNNING, std::memory_order_acq_rel) == STOPPED)
			return;
		const ending end{this};
		if constexpr (std::invocable<F &>)
			function();
		else
			function(handle(wheel, tw_current_task()->timer));
	}
	/* Is the end of a call, also by an exception. */
	struct ending {
		function_of *self;

		~ending()
		{
			/* acq_rel: as in handle::stop() */
			if (!repeats ||
			    self->at.exchange(ENDED, std::memory_order_acq_rel) == STOPPED)
				delete self;
		}
	};
};

} /* namespace detail */

/*
 * Is what wheel::sleep_for returns, and is awaited once, at once. The coroutine resumes in the
 * thread that runs tasks, or in the one that requests the stop. The await returns whether the whole
 * time has passed; it throws if the wheel is stopped or drained, or has no memory. A coroutine that
 * is destroyed meanwhile takes the timer along.
 *
 * It lies in the frame of the coroutine. The phase says which goes on: await_suspend() and the end,
 * the later of the two; the end and the destructor of a frame that sleeps, the earlier one.
 */
template <class Token> class sleeping final : detail::job, public std::suspend_always
{
      public:
	sleeping(detail::home *wheel, length delay, Token token) noexcept
		: home_(wheel), delay_(delay), token_(std::move(token))
	{
	}
	/* Moves one that has not begun. */
	sleeping(sleeping &&other) noexcept
		: sleeping(other.home_, other.delay_, std::move(other.token_))
	{
	}
	~sleeping()
	{
		/* acquire: as in await_suspend() */
		if (at.load(std::memory_order_acquire) == ASLEEP)
			leave();
	}

	/* Begins the sleep. If it returns true, the coroutine resumes, perhaps before the return.
	 * Else the sleep is over, or failed. */
	bool await_suspend(std::coroutine_handle<> sleeper)
	{
		phase begun = BEGINNING;

		sleeper_ = sleeper;
		/* relaxed: the timer publishes it */
		at.store(is_stoppable ? BEGINNING : ASLEEP, std::memory_order_relaxed);
		const tw_status armed =
			home_ ? tw_after_func(home_->wheel, delay_.nanoseconds, home_->run,
					      static_cast<job *>(this), &timer_)
			      : TW_INVALID;
		if (armed != TW_OK) {
			status = armed; /* not otherwise: a drain may have set it by now */
			at.store(ENDED, std::memory_order_relaxed);
			return false;
		}
		if constexpr (is_stoppable) {
			callback_.emplace(std::move(token_), stopper{this});
			/* acq_rel: the later one sees what the earlier did, and goes on. */
			return at.compare_exchange_strong(begun, ASLEEP, std::memory_order_acq_rel);
		}
		return true; /* *this may be destroyed by now */
	}
	bool await_resume()
	{
		callback_.reset();
		if (status != TW_REARMED) /* no stop was requested */
			check(status);
		return status == TW_OK;
	}

      private:
	static constexpr bool is_stoppable = !std::same_as<Token, detail::nothing>;

	struct stopper {
		sleeping *self;

		void operator()() const noexcept
		{
			void *argument;

			if (tw_timer_take(self->home_->wheel, self->timer_, &argument) != TW_OK)
				return;
			self->status = TW_REARMED;
			self->run();
		}
	};

	void run() override
	{
		const std::coroutine_handle<> sleeper = sleeper_; /* *this may be destroyed below */
		/* acq_rel: as in await_suspend(); acquire, release: the last touch, pairs with a
		 * destructor. If that comes between the two, the frame is gone, or never was. */
		const phase old = is_stoppable ? at.exchange(ENDED, std::memory_order_acq_rel)
					       : at.load(std::memory_order_acquire);

		if (!is_stoppable)
			at.store(ENDED, std::memory_order_release);
		if (old == ASLEEP)
			sleeper();
	}
	void close() override
	{
		sleeper_();
	}
	/* Takes the timer along. */
	[[gnu::noinline, gnu::cold]] void leave() noexcept
	{
		tw_status taken;
		void *argument;

		/* acq_rel: as in await_suspend() */
		if (at.exchange(LEAVING, std::memory_order_acq_rel) != ASLEEP)
			return;
		callback_.reset();
		taken = tw_timer_take(home_->wheel, timer_, &argument);
		/* A run that another thread has just begun leaves the sleep at once. */
		while (taken == TW_RUNNING && at.load(std::memory_order_acquire) == LEAVING)
			std::this_thread::yield();
		std::lock_guard hold(home_->lock);
		if (taken != TW_OK && at.load(std::memory_order_acquire) == LEAVING)
			home_->left.insert(timer_.id);
	}

	detail::home *home_;
	length delay_;
	[[no_unique_address]] Token token_;
	std::coroutine_handle<> sleeper_;
	tw_timer timer_;
	[[no_unique_address]] std::conditional_t<is_stoppable,
						 std::optional<std::stop_callback<stopper>>, Token>
		callback_;
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
	/* Makes a wheel. Its keyed timers are set by set() and add(), so there is no execute.
	 * options.release gets what calls of the C interface gave to the wheel, also from drain(),
	 * as TW_REMOVED. */
	wheel(length interval, std::size_t slots, const tw_options &options = {})
	{
		using detail::home;
		auto made = std::make_unique<home>();
		tw_options own = made->options = options;

		own.context = made.get();
		own.release = home::take_back;
		own.on_thread_start = home::pass_on<&tw_options::on_thread_start>;
		own.on_thread_end = home::pass_on<&tw_options::on_thread_end>;
		check(tw_create(
			&made->wheel, interval.nanoseconds, slots,
			[](void *, const tw_task *task) {
				detail::act_on<&detail::job::run>(task->value);
			},
			&own));
		std::shared_ptr<home> kept(made.release(), home::end);
		home_ = {kept.get(), [kept](home *self) { (void)tw_stop(self->wheel); }};
	}

	/* Returns the wheel of the C interface, for all calls except those that set keyed timers. */
	tw_wheel *get() const noexcept
	{
		return home_ ? home_->wheel : nullptr;
	}

	/* Runs the function once, after the delay. */
	template <detail::function F> handle after(length delay, F &&function)
	{
		return start(make<false>(std::forward<F>(function)), tw_after_func,
			     delay.nanoseconds);
	}
	/* Runs the function after `first` and then each period. */
	template <detail::function F>
	handle every(length first, length period, F &&function, tw_missed missed = TW_MISSED_BURST)
	{
		return start(make<true>(std::forward<F>(function)), tw_every, first.nanoseconds,
			     period.nanoseconds, missed);
	}
	/* Runs the function at the times of a calendar, as tw_schedule_cron does. */
	template <detail::function F> handle every(cron times, F &&function)
	{
		return start(make<true>(std::forward<F>(function), times), tw_schedule_cron,
			     times.get());
	}

	/* Runs the function once, after the delay, unless it is replaced or removed. A delay ≤ 0
	 * counts as the shortest. With any status but TW_OK the function is destroyed. */
	template <std::invocable F>
	[[nodiscard]] tw_status set(std::string_view key, length delay, F &&function)
	{
		return set_by(tw_set_timer, key, delay, make<false>(std::forward<F>(function)));
	}
	/* Sets as set() does, if the key has no timer. */
	template <std::invocable F>
	[[nodiscard]] tw_status add(std::string_view key, length delay, F &&function)
	{
		return set_by(tw_add_timer, key, delay, make<false>(std::forward<F>(function)));
	}
	/* Moves the key's timer, if it has one. With a delay ≤ 0 it runs now. */
	tw_status move(std::string_view key, length delay) noexcept
	{
		return tw_move_timer(get(), key.data(), key.size(),
				     std::max(delay.nanoseconds, TW_NANOSECOND));
	}
	tw_status remove(std::string_view key) noexcept
	{
		return tw_remove_timer(get(), key.data(), key.size());
	}

	/* Returns what a coroutine awaits to sleep until the time has passed, or until `token`, a
	 * std::stop_token, requests a stop. */
	template <class Token = detail::nothing>
	[[nodiscard]] sleeping<Token> sleep_for(length delay, Token token = {}) noexcept
	{
		return {home_.get(), delay, std::move(token)};
	}

	/* Removes all pending timers. Their functions are destroyed; sleeps throw TW_CLOSED. */
	tw_status drain() noexcept
	{
		return tw_drain(
			get(),
			[](void *context, const tw_task *task) {
				detail::home::take_back(context, task, TW_REMOVED);
			},
			home_.get());
	}
	tw_status stop()
	{
		return detail::drive(home_.get(), tw_stop);
	}
	tw_status wait_idle()
	{
		return detail::drive(home_.get(), tw_wait_idle);
	}
	/* Drives a wheel that callers drive. On TW_OK *until_next is how long the caller may sleep. */
	tw_status poll(std::chrono::nanoseconds *until_next = nullptr)
	{
		tw_duration left;
		tw_status status = detail::drive(home_.get(), tw_poll, &left);

		if (status == TW_OK && until_next)
			*until_next = std::chrono::nanoseconds(left);
		return status;
	}
	/* Moves a manual clock. */
	tw_status advance(length by)
	{
		return detail::drive(home_.get(), tw_advance, by.nanoseconds);
	}
	/* Returns the time on the wheel's clock. */
	std::chrono::nanoseconds now() const noexcept
	{
		return std::chrono::nanoseconds(tw_now(get()));
	}

      private:
	/* Makes a function, for a timer that may yet be refused. */
	template <bool repeats, class Kept = detail::nothing>
	std::unique_ptr<detail::job> make(auto &&given, Kept kept = {})
	{
		return std::make_unique<
			detail::function_of<repeats, std::decay_t<decltype(given)>, Kept>>(
			home_.get(), std::forward<decltype(given)>(given), std::move(kept));
	}
	/* Sets the timer of a function by a call of the C interface, with these arguments first. */
	handle start(std::unique_ptr<detail::job> made, auto *call, auto... first)
	{
		tw_timer id;

		check(home_ ? call(get(), first..., home_->run, made.get(), &id) : TW_INVALID);
		(void)made.release();
		return handle(home_.get(), id);
	}
	tw_status set_by(decltype(tw_set_timer) *call, std::string_view key, length delay,
			 std::unique_ptr<detail::job> made)
	{
		tw_status status = call(get(), key.data(), key.size(), made.get(),
					std::max(delay.nanoseconds, TW_NANOSECOND));

		if (status == TW_OK)
			(void)made.release();
		return status;
	}

	/* Its end stops the wheel. What drives the wheel has it from shared_from_this(). */
	std::shared_ptr<detail::home> home_;
};

/* Owns a timer that runs each time that it is set and comes due. A set needs no memory. A drain
 * ends it. */
class alarm : private timer
{
      public:
	template <detail::function F>
	alarm(wheel &wheel, F &&function)
		: timer(wheel.every(never, never, std::forward<F>(function)))
	{
	}
	tw_status set(length delay) noexcept
	{
		return tw_timer_reset(wheel_, get(), delay.nanoseconds);
	}
	tw_status stop() noexcept
	{
		return set(never);
	}
};

} /* namespace tw */

#endif
