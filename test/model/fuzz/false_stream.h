/* SPDX-License-Identifier: MIT */
/*
 * This replaces stream.c: the input is a server's output. Each request is answered by the bytes up
 * to the next FALSE_STREAM_END. When there are no more, the connection is closed.
 */
#ifndef FUZZ_FALSE_STREAM_H
#define FUZZ_FALSE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FALSE_STREAM_END = 0xff };

/* Sets the server's bytes, which must stay. With `greets`, the requests made while connecting are
 * not answered by them, but as by a Redis with a namespace of 4 shards. */
void false_stream_fill(const uint8_t *data, size_t size, bool greets);

#endif
