/* SPDX-License-Identifier: MIT */
/* This plugin has hidden symbols, so it shares no function of the header with its host. */
#include "plugin.hpp"

using namespace std::chrono_literals;

namespace
{

task sleep(tw::wheel &wheel, int *alive)
{
	try {
		co_await wheel.sleep_for(1h);
	} catch (const std::system_error &error) {
		CHECK(error.code() == std::error_code(TW_CLOSED, tw::category()));
		--*alive;
	}
}

void use(tw::wheel &wheel, int *alive)
{
	auto held = [alive] {
		return [one = std::shared_ptr<int>(alive, [](int *count) { --*count; })] {};
	};

	*alive = 4;
	wheel.after(1h, held());
	wheel.every(1h, 1h, held());
	CHECK(wheel.set("key", 1h, held()) == TW_OK);
	sleep(wheel, alive);
}

int drive(tw::wheel &wheel)
{
	try {
		(void)wheel.advance(1ms);
	} catch (int number) {
		return number;
	}
	return 0;
}

} /* namespace */

extern "C" [[gnu::visibility("default")]] const plugin the_plugin = {use, drive, tw::category};
