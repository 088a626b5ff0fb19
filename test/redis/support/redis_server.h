/* SPDX-License-Identifier: MIT */
/*
 * A redis-server of our own, or what REDIS_SERVER in the environment names: on loopback, at a free
 * port, in its own folder, which goes with it. It dies when the test does. What should not fail
 * ends the program.
 */
#ifndef REDIS_SUPPORT_REDIS_SERVER_H
#define REDIS_SUPPORT_REDIS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <hiredis/hiredis.h>

#include <timingwheel/redis.h>

struct redis_server_options {
	bool append_only; /* with appendfsync everysec */
	/* appendfsync no: what was answered outlives a kill, for its writing never waits for an
	 * fsync, as it does for up to two seconds with everysec. */
	bool no_fsync;
	bool fsync_always;   /* appendfsync always */
	const char *preload; /* a library for LD_PRELOAD, in the build's folder; may be NULL */
	bool cluster;
	const char *password; /* NULL: none */
	const char *policy;   /* maxmemory-policy; NULL: noeviction */
	bool tls;             /* at tls_port too; certificates_make() fills the folder */
	int replica_of;       /* the port of its master; 0: it is a master */
	int sentinel_of;      /* it is a Sentinel for the master "main" at this port */
};

struct redis_server {
	int port;
	int bus_port; /* of a cluster's node */
	int tls_port;
	pid_t pid; /* 0: it does not run */
	char folder[256];
	bool is_sentinel;
	const char *preload;
	char url[64]; /* without the password */
	const char *password;
	redisContext *context; /* for what the test asks itself; NULL: not connected */
};

/* Starts it and waits until it answers. options may be NULL. */
void redis_server_start(struct redis_server *server, const struct redis_server_options *options);
/* Starts it again, at the same port and in the same folder, and waits until it has loaded. */
void redis_server_restart(struct redis_server *server);
/* Removes all in its folder but its settings; it must not run. */
void redis_server_clear(const struct redis_server *server);
/* Adds a line to its settings, for the next start; printf's arguments. */
__attribute__((format(printf, 2, 3))) void redis_server_add_setting(
	const struct redis_server *server, const char *format, ...);
/* Ends the process with the signal and waits for that; the folder stays. */
void redis_server_end(struct redis_server *server, int signal);
/* Ends it and removes the folder. */
void redis_server_stop(struct redis_server *server);

/* The absolute path of a file in its folder, redis.sock say; short, as those of sockets have to
 * be. */
void redis_server_path(const struct redis_server *server, const char *file, char *path,
		       size_t room);

/* Prints what the server answers to the command, and the end of its log, for a test that fails. */
void redis_server_tell(struct redis_server *server, const char *command);

/* One command; printf's arguments as hiredis takes them. The reply is the caller's; no error. */
redisReply *redis_server_ask(struct redis_server *server, const char *format, ...);
/* The same for what answers a number, in digits too. */
int64_t redis_server_number(struct redis_server *server, const char *format, ...);
/* The server's time in milliseconds. */
int64_t redis_server_now(struct redis_server *server);

/* Rewrites when the task is next to be looked at: so long from now, server's time. What a test
 * can't wait for happens by that. */
void redis_server_set_due(struct redis_server *server, const struct tw_redis *redis,
			  const char *name_space, const char *key, int64_t from_now_ms);
/* How many keys of Redis the namespace has, but its layout, its tokens and
 * its counts of tasks that were added. */
int64_t redis_server_count_keys(struct redis_server *server, const char *name_space);

#endif
