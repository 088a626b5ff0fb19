/* SPDX-License-Identifier: MIT */
/*
 * This is a redis-server, or the program that REDIS_SERVER in the environment names. It listens on
 * loopback at a free port, and has its own folder, which redis_server_stop() removes. It is killed
 * when the test ends. A failure ends the program.
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
	/* With appendfsync no, answered writes outlive a kill, for no write waits for an fsync.
	 * With everysec it may wait up to two seconds. */
	bool no_fsync;
	bool fsync_always;   /* appendfsync always */
	const char *preload; /* a library for LD_PRELOAD, in the build's folder, or NULL */
	bool cluster;
	const char *password; /* may be NULL */
	const char *policy;   /* maxmemory-policy; NULL means noeviction */
	/* TLS is at tls_port, beside plain text; certificates_make() fills the folder. */
	bool tls;
	int replica_of;  /* the port of its master, or 0 */
	int sentinel_of; /* the port of the master "main" if it is a Sentinel, or 0 */
};

struct redis_server {
	int port;
	int bus_port; /* for nodes of a cluster */
	int tls_port;
	pid_t pid; /* 0 while it does not run */
	char folder[256];
	bool is_sentinel;
	const char *preload;
	char url[64]; /* without the password */
	const char *password;
	redisContext *context; /* the test's own connection, or NULL */
};

/* Starts it and waits until it answers. options may be NULL. */
void redis_server_start(struct redis_server *server, const struct redis_server_options *options);
/* Starts it again, at the same port and in the same folder, and waits until it has loaded. */
void redis_server_restart(struct redis_server *server);
/* Adds a line to its settings, for the next start. Takes printf's arguments. */
__attribute__((format(printf, 2, 3))) void redis_server_add_setting(
	const struct redis_server *server, const char *format, ...);
/* Sends the process the signal and waits for its end. The folder stays. */
void redis_server_end(struct redis_server *server, int signal);
/* Ends it and removes the folder. */
void redis_server_stop(struct redis_server *server);

/* Writes the absolute path of a file in its folder, short enough for a Unix socket. */
void redis_server_path(const struct redis_server *server, const char *file, char *path,
		       size_t room);

/* Prints the reply to the command and the end of the log, for a test that fails. */
void redis_server_print_state(struct redis_server *server, const char *command);

/* Sends a command, with hiredis's format. The caller frees the reply, which is no error. */
redisReply *redis_server_ask(struct redis_server *server, const char *format, ...);
/* Sends a command. Returns its reply if that is a number, as an integer or in digits. */
int64_t redis_server_number(struct redis_server *server, const char *format, ...);
/* Returns how often the words are in the text that the command is answered with. */
int redis_server_says(struct redis_server *server, const char *command, const char *words);
/* Returns the number after the words in that text, or 0 without them. */
int64_t redis_server_figure(struct redis_server *server, const char *command, const char *words);
/* Returns how often it has run the command, whose name is in small letters. */
int64_t redis_server_calls(struct redis_server *server, const char *command);
/* Returns the server's time in milliseconds. */
int64_t redis_server_now(struct redis_server *server);

/* Returns the shard of the key, a string. */
unsigned shard_of(const struct tw_redis *redis, const char *key);

/* Sets the task's time in the set of due tasks to `from_now_ms` from now by the server's clock, so
 * that a test need not wait. If the task is on lease, that of its batch ends then. */
void redis_server_set_due(struct redis_server *server, const struct tw_redis *redis,
			  const char *name_space, const char *key, int64_t from_now_ms);
/* Sets the score itself. */
void redis_server_set_score(struct redis_server *server, const struct tw_redis *redis,
			    const char *name_space, const char *key, int64_t score);
/* Returns the number of connections that receive the namespace's hints. */
int64_t redis_server_count_listeners(struct redis_server *server, const char *name_space);
/* Returns the number of the namespace's keys in Redis, without its layout, its tokens and its
 * counts of added tasks. */
int64_t redis_server_count_keys(struct redis_server *server, const char *name_space);

#endif
