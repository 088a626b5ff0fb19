/* SPDX-License-Identifier: MIT */
/*
 * The input is any bytes as the output of a Redis server, of a cluster's node, or of a Sentinel:
 * every call ends, and its results can be read. The first byte chooses the call, the second the
 * kind of server and the number of calls.
 */
#include "support/calls.h"

#include "false_stream.h"
#include "fuzz.h"

enum { HEAD_SIZE = 2, CALLS_MOST = 3 };
/* These are bits of the second byte. */
enum { MODE_GREETING = 1, MODE_SENTINEL = 2, MODE_SEVERAL = 4, MODE_LOGIN = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tw_redis_options options = {
		.url = "redis://127.0.0.1:7000", .shards = 4, .patience = -1};
	struct tw_redis_error error;
	struct tw_redis *redis;

	if (size < HEAD_SIZE)
		return 0;
	if (data[1] & MODE_SENTINEL)
		options.url = "redis+sentinel://127.0.0.1:7000/main";
	if (data[1] & MODE_LOGIN)
		options.password = options.sentinel_password = "secret";
	false_stream_fill(data + HEAD_SIZE, size - HEAD_SIZE, !(data[1] & MODE_GREETING));
	if (tw_redis_open(&redis, &options, &error) == TW_OK) {
		int calls = data[1] & MODE_SEVERAL ? CALLS_MOST : 1;

		for (int i = 0; i < calls; i++)
			redis_calls[(size_t)(data[0] + i) % redis_call_count].call(redis);
		tw_redis_close(redis);
	}
	return 0;
}
