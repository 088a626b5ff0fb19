/* SPDX-License-Identifier: MIT */
/* This program drives a wheel from a main loop of GLib. timers.h says how, in general. */
#include "timers.h"

#include <glib-unix.h>

static gboolean start(gpointer unused)
{
	(void)unused;
	set_timers();
	return G_SOURCE_REMOVE;
}

static gboolean poll_wheel(gpointer loop)
{
	tw_poll(wheel, NULL);
	if (is_done)
		g_main_loop_quit(loop);
	return G_SOURCE_CONTINUE;
}

static gboolean descriptor_is_readable(gint descriptor, GIOCondition condition, gpointer loop)
{
	(void)descriptor;
	(void)condition;
	return poll_wheel(loop);
}

static void wait_at_descriptor(GMainLoop *loop)
{
	guint source = g_unix_fd_add(tw_fd(wheel), G_IO_IN, descriptor_is_readable, loop);

	g_main_loop_run(loop);
	g_source_remove(source);
}

/* Returns how long the loop may sleep. A source runs nothing before that, so this asks tw_next in
 * place of tw_poll, and adds an interval: a timer runs at the tick after its deadline. */
static int sleep_left(void)
{
	tw_duration deadline;

	if (tw_next(wheel, &deadline) != TW_OK || deadline == TW_FOREVER)
		return -1;
	deadline += tw_interval_of(wheel) - 1 - tw_now(wheel);
	return milliseconds(deadline > 0 ? deadline : 0);
}

/* Runs before the loop sleeps. */
static gboolean prepare(GSource *source, gint *timeout)
{
	(void)source;
	*timeout = sleep_left();
	return *timeout == 0;
}

/* Runs after the loop has slept. */
static gboolean is_due(GSource *source)
{
	(void)source;
	return sleep_left() == 0;
}

static gboolean dispatch(GSource *source, GSourceFunc callback, gpointer loop)
{
	(void)source;
	return callback(loop);
}

static void sleep_until_deadlines(GMainLoop *loop)
{
	static GSourceFuncs functions = {.prepare = prepare, .check = is_due, .dispatch = dispatch};
	GSource *source = g_source_new(&functions, sizeof(*source));

	g_source_set_callback(source, poll_wheel, loop, NULL);
	g_source_attach(source, g_main_loop_get_context(loop));
	g_main_loop_run(loop);
	g_source_destroy(source);
	g_source_unref(source);
}

static void run(bool with_worker, void (*run_loop)(GMainLoop *loop))
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);

	g_idle_add(start, NULL);
	open_wheel(with_worker);
	run_loop(loop);
	close_wheel();
	g_main_loop_unref(loop);
}

int main(void)
{
	run(true, wait_at_descriptor);
	run(false, sleep_until_deadlines);
	return 0;
}
