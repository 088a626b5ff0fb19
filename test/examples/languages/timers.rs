// SPDX-License-Identifier: MIT

// Sets a timer by key, and keeps the answers of a slow function, by extern "C".
use std::ffi::{c_void, CStr};
use std::os::raw::{c_char, c_int};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

type Load = extern "C" fn(*mut c_void, *const u8, usize, *mut c_void) -> c_int;

#[repr(C)] // the first fields of struct tw_task
struct Task {
    key: *const u8,
    key_size: usize,
}

#[repr(C)] // struct tw_cache_value
struct Value {
    data: *const u8,
    size: usize,
    others: [u64; 7],
}

#[link(name = "timingwheel")]
extern "C" {
    fn tw_create(wheel: *mut *mut c_void, interval: i64, slots: usize,
                 execute: extern "C" fn(*mut c_void, *const Task), options: *const c_void) -> c_int;
    fn tw_set_timer(wheel: *mut c_void, key: *const u8, key_size: usize, value: *mut c_void,
                    delay: i64) -> c_int;
    fn tw_destroy(wheel: *mut c_void) -> c_int;
    fn tw_status_text(status: c_int) -> *const c_char;
    fn tw_cache_create(cache: *mut *mut c_void, expire: i64, options: *const c_void) -> c_int;
    fn tw_cache_take(cache: *mut c_void, key: *const u8, key_size: usize, load: Load,
                     argument: *mut c_void, wait: i64, entry: *mut *const c_void) -> c_int;
    fn tw_cache_load_give(loading: *mut c_void, value: *const Value) -> c_int;
    fn tw_cache_entry_value(entry: *const c_void, size: *mut usize) -> *const u8;
    fn tw_cache_entry_release(entry: *const c_void);
    fn tw_cache_destroy(cache: *mut c_void);
}

static IS_DUE: AtomicBool = AtomicBool::new(false);

unsafe fn text<'a>(start: *const u8, size: usize) -> &'a str {
    std::str::from_utf8(std::slice::from_raw_parts(start, size)).unwrap()
}

extern "C" fn execute(_: *mut c_void, task: *const Task) {
    println!("{} is due", unsafe { text((*task).key, (*task).key_size) });
    IS_DUE.store(true, Ordering::Release);
}

extern "C" fn load(_: *mut c_void, key: *const u8, size: usize, loading: *mut c_void) -> c_int {
    println!("asked for {}", unsafe { text(key, size) });
    let value = Value { data: b"Ada".as_ptr(), size: 3, others: [0; 7] };
    unsafe { tw_cache_load_give(loading, &value) }
}

fn check(status: c_int) {
    assert!(status == 0, "{:?}", unsafe { CStr::from_ptr(tw_status_text(status)) });
}

fn main() {
    let (mut wheel, mut cache, mut entry, mut size) = (null_mut(), null_mut(), std::ptr::null(), 0);
    unsafe {
        check(tw_create(&mut wheel, 1_000_000, 512, execute, null_mut()));
        check(tw_set_timer(wheel, b"order:7".as_ptr(), 7, null_mut(), 10_000_000));
        while !IS_DUE.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        tw_destroy(wheel);

        check(tw_cache_create(&mut cache, 60_000_000_000, null_mut()));
        for _ in 0..2 {
            check(tw_cache_take(cache, b"user:1".as_ptr(), 6, load, null_mut(), 1_000_000_000,
                                &mut entry));
            println!("user:1 is {}", text(tw_cache_entry_value(entry, &mut size), size));
            tw_cache_entry_release(entry);
        }
        tw_cache_destroy(cache);
    }
}
