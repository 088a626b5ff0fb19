#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This makes calls from Python, with nothing but the shared library: a timer runs a function, and
# the statistics count it.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh
python3 -c 'import ctypes' 2>/dev/null || skip "python3 is not there"
test -z "$SANITIZE" || skip "a sanitizer must be in the program, which is Python here"

timeout 60 python3 - "$BUILD/libtimingwheel.so" <<'END'
import ctypes
import sys
import threading

MILLISECOND = 1000000


class Task(ctypes.Structure):
    """struct tw_task, as far as it is read here."""

    _fields_ = [("key", ctypes.c_void_p), ("key_size", ctypes.c_size_t), ("value", ctypes.c_void_p)]


library = ctypes.CDLL(sys.argv[1])
wheel = ctypes.c_void_p()
has_run = threading.Event()
seen = []


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Task))
def execute(_, task):
    task = task.contents
    seen.append((ctypes.string_at(task.key, task.key_size), task.value))
    has_run.set()


def check(name, status):
    if status != 0:
        library.tw_status_name.restype = ctypes.c_char_p
        sys.exit(f"{name}: {library.tw_status_name(status).decode()}")


check("tw_create", library.tw_create(ctypes.byref(wheel), ctypes.c_int64(MILLISECOND),
                                     ctypes.c_size_t(512), execute, None))
check("tw_set_timer", library.tw_set_timer(wheel, b"key", ctypes.c_size_t(3), ctypes.c_void_p(7),
                                           ctypes.c_int64(5 * MILLISECOND)))
if not has_run.wait(30):
    sys.exit("the timer has not run")
if seen != [(b"key", 7)]:
    sys.exit(f"the function got {seen}")
# The statistics begin with the number of timers set.
stats = (ctypes.c_uint64 * 1024)()
check("tw_get_stats", library.tw_get_stats(wheel, stats))
if stats[0] != 1:
    sys.exit(f"{stats[0]} timers were set")
library.tw_destroy(wheel)
END
