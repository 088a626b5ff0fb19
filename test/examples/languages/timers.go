// SPDX-License-Identifier: MIT

// Sets a timer by key, and keeps the answers of a slow function, by cgo.
package main

// #cgo LDFLAGS: -ltimingwheel
// #include <stdlib.h>
// #include <timingwheel/cache.h>
// void execute(void *context, struct tw_task *task);
// int load(void *argument, void *key, size_t key_size, struct tw_cache_loading *loading);
import "C"

import (
	"fmt"
	"unsafe"
)

var isDue = make(chan bool)

//export execute
func execute(_ unsafe.Pointer, task *C.struct_tw_task) {
	fmt.Println(C.GoStringN((*C.char)(task.key), C.int(task.key_size)), "is due")
	isDue <- true
}

//export load
func load(_, key unsafe.Pointer, size C.size_t, loading *C.struct_tw_cache_loading) C.int {
	fmt.Println("asked for", C.GoStringN((*C.char)(key), C.int(size)))
	name := C.CString("Ada")
	defer C.free(unsafe.Pointer(name))
	value := C.struct_tw_cache_value{data: unsafe.Pointer(name), size: 3}
	return C.int(C.tw_cache_load_give(loading, &value))
}

func check(status C.enum_tw_status) {
	if status != C.TW_OK {
		panic(C.GoString(C.tw_status_text(status)))
	}
}

func main() {
	var wheel *C.struct_tw_wheel
	var cache *C.struct_tw_cache
	var entry *C.struct_tw_cache_entry
	var size C.size_t
	order, user := C.CString("order:7"), C.CString("user:1")

	check(C.tw_create(&wheel, 1e6, 512, (*C.tw_execute_fn)(C.execute), nil))
	check(C.tw_set_timer(wheel, unsafe.Pointer(order), 7, nil, 10e6))
	<-isDue
	C.tw_destroy(wheel)

	check(C.tw_cache_create(&cache, 60e9, nil))
	for i := 0; i < 2; i++ {
		check(C.tw_cache_take(cache, unsafe.Pointer(user), 6, (*C.tw_cache_load)(C.load),
			nil, 1e9, &entry))
		value := (*C.char)(C.tw_cache_entry_value(entry, &size))
		fmt.Println("user:1 is", C.GoStringN(value, C.int(size)))
		C.tw_cache_entry_release(entry)
	}
	C.tw_cache_destroy(cache)
}
