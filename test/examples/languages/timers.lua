-- SPDX-License-Identifier: MIT
-- Sets a timer by key, and keeps the answers of a slow function, by LuaJIT's ffi. Lua runs in one
-- thread, so it drives the wheel itself; a take calls its loader in the calling thread.
local ffi = require("ffi")
jit.off() -- compiled code must not make calls that call back
ffi.cdef [[
struct tw_task { const char *key; size_t key_size; void *value; };
struct tw_options { void *context, *release; int layout, clock, drive, workers;
	uint64_t others[13]; };
struct tw_cache_value { const char *data; size_t size; uint64_t others[7]; };
int tw_create(void **wheel, int64_t interval, size_t slots,
	void (*execute)(void *context, const struct tw_task *task),
	const struct tw_options *options);
int tw_set_timer(void *wheel, const char *key, size_t key_size, void *value, int64_t delay);
int tw_destroy(void *wheel);
const char *tw_status_text(int status);
int tw_poll(void *wheel, int64_t *until_next);
int tw_cache_create(void **cache, int64_t expire, const void *options);
int tw_cache_take(void *cache, const char *key, size_t key_size,
	int (*load)(void *argument, const char *key, size_t key_size, void *loading),
	void *argument, int64_t wait, const void **entry);
int tw_cache_load_give(void *loading, const struct tw_cache_value *value);
const char *tw_cache_entry_value(const void *entry, size_t *size);
void tw_cache_entry_release(const void *entry);
void tw_cache_destroy(void *cache);
]]
local lib = ffi.load("libtimingwheel.so.1")
local wheel, cache, size = ffi.new("void *[1]"), ffi.new("void *[1]"), ffi.new("size_t[1]")
local entry, left = ffi.new("const void *[1]"), ffi.new("int64_t[1]")
local options = ffi.new("struct tw_options", {drive = 1, workers = -1})
local is_due = false

local function check(status)
	if status ~= 0 then error(ffi.string(lib.tw_status_text(status))) end
end

check(lib.tw_create(wheel, 1000000, 512, function(_, task)
	print(ffi.string(task.key, task.key_size) .. " is due")
	is_due = true
end, options))
check(lib.tw_set_timer(wheel[0], "order:7", 7, nil, 10000000))
while not is_due do check(lib.tw_poll(wheel[0], left)) end -- an event loop waits for *left
lib.tw_destroy(wheel[0])

local function load(_, key, key_size, loading)
	print("asked for " .. ffi.string(key, key_size))
	return lib.tw_cache_load_give(loading, ffi.new("struct tw_cache_value", {"Ada", 3}))
end

check(lib.tw_cache_create(cache, 60000000000LL, nil))
for _ = 1, 2 do
	check(lib.tw_cache_take(cache[0], "user:1", 6, load, nil, 1000000000, entry))
	print("user:1 is " .. ffi.string(lib.tw_cache_entry_value(entry[0], size), size[0]))
	lib.tw_cache_entry_release(entry[0])
end
lib.tw_cache_destroy(cache[0])
