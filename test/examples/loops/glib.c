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

static void run(bool with_worker)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);

	g_idle_add(start, NULL);
	open_wheel(with_worker);
	wait_at_descriptor(loop);
	close_wheel();
	g_main_loop_unref(loop);
}

int main(void)
{
	run(true);
	run(false);
	return 0;
}
