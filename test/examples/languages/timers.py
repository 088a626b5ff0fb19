# SPDX-License-Identifier: MIT
"""Sets a timer by key, and keeps the answers of a slow function, by ctypes."""
import ctypes as c
import threading

lib = c.CDLL("libtimingwheel.so.1")
MILLISECOND, SECOND = 10**6, 10**9


class Task(c.Structure):  # the first fields of struct tw_task
    _fields_ = [("key", c.c_void_p), ("key_size", c.c_size_t), ("value", c.c_void_p)]


class Value(c.Structure):  # struct tw_cache_value
    _fields_ = [("data", c.c_char_p), ("size", c.c_size_t), ("others", c.c_uint64 * 7)]


@c.CFUNCTYPE(None, c.c_void_p, c.POINTER(Task))
def execute(_, task):
    print(c.string_at(task[0].key, task[0].key_size).decode(), "is due")
    is_due.set()


@c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_size_t, c.c_void_p)
def load(_, key, size, loading):
    print("asked for", c.string_at(key, size).decode())
    return lib.tw_cache_load_give(c.c_void_p(loading), c.byref(Value(b"Ada", 3)))


def check(status):
    if status != 0:
        raise RuntimeError(lib.tw_status_text(status).decode())


lib.tw_cache_entry_value.restype = c.c_void_p
lib.tw_status_text.restype = c.c_char_p
size_t, duration = c.c_size_t, c.c_int64
wheel, cache, entry, size = c.c_void_p(), c.c_void_p(), c.c_void_p(), c.c_size_t()
is_due = threading.Event()

check(lib.tw_create(c.byref(wheel), duration(MILLISECOND), size_t(512), execute, None))
check(lib.tw_set_timer(wheel, b"order:7", size_t(7), None, duration(10 * MILLISECOND)))
is_due.wait()
lib.tw_destroy(wheel)

check(lib.tw_cache_create(c.byref(cache), duration(60 * SECOND), None))
for _ in range(2):
    check(lib.tw_cache_take(cache, b"user:1", size_t(6), load, None, duration(SECOND),
                            c.byref(entry)))
    print("user:1 is", c.string_at(lib.tw_cache_entry_value(entry, c.byref(size)),
                                   size.value).decode())
    lib.tw_cache_entry_release(entry)
lib.tw_cache_destroy(cache)
