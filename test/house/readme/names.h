/* SPDX-License-Identifier: MIT */
/* These declarations are assumed by the short examples of the README and the manual. */
#ifndef TIMINGWHEEL_TEST_README_NAMES_H
#define TIMINGWHEEL_TEST_README_NAMES_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <timingwheel/cache.h>
#include <timingwheel/redis.h>

struct request {
	struct tw_wheel *wheel;
	struct tw_timer retry;
};

struct shop;

void send_again(void *request);
size_t find_user(void *database, const void *id, size_t id_size, char *user, size_t room);
bool close_order(struct shop *shop, const void *key, size_t key_size);

#endif
