/* SPDX-License-Identifier: MIT */
/* This is a user's program in C++ that waits for one timer. */
#include <future>
#include <iostream>
#include <string>
#include <timingwheel/cron.h>
#include <timingwheel/timingwheel.h>

int main()
{
	std::promise<void> expired;
	tw_wheel *wheel;

	auto execute = [](void *, const tw_task *task) {
		static_cast<std::promise<void> *>(task->value)->set_value();
	};
	tw_status status = tw_create(&wheel, TW_MILLISECOND, 64, execute, nullptr);
	if (status == TW_OK)
		status = tw_set_timer(wheel, "key", 3, &expired, 2 * TW_MILLISECOND);
	if (status == TW_OK)
		status = tw_move_timer(wheel, "key", 3, TW_MILLISECOND);
	if (status == TW_OK)
		status = tw_remove_timer(wheel, "other", 5);
	if (status != TW_OK) {
		std::cerr << tw_status_text(status) << '\n';
		return 1;
	}
	expired.get_future().wait();
	auto visit = [](void *count, const tw_pending_timer *timer) {
		*static_cast<size_t *>(count) += timer->key_size;
		return 1;
	};
	size_t bytes = 0;
	if (tw_set_timer(wheel, "later", 5, nullptr, TW_HOUR) != TW_OK ||
	    tw_each(wheel, visit, &bytes) != TW_OK || bytes != 5 || tw_version() != TW_VERSION)
		return 1;
	tw_destroy(wheel);
	tw_cron *cron;
	int64_t next_s;
	if (tw_cron_create(&cron, "@daily", nullptr, nullptr) != TW_OK ||
	    tw_cron_next(cron, 0, &next_s) != TW_OK || next_s != 86400)
		return 1;
	tw_cron_destroy(cron);
	/* This status is in redis.h, and its library is not linked. */
	return tw_status_name(static_cast<tw_status>(64)) != std::string("TW_UNKNOWN");
}
