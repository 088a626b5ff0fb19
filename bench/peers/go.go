// SPDX-License-Identifier: MIT
//
// Go's time.AfterFunc, asked the questions of timers.c. Each processor has a heap of timers; a
// function runs in a goroutine of its own. Processor time is that of the collector, too.
package main

import (
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const minute = int64(time.Minute / time.Millisecond)

var timers []*time.Timer

func print(question string, threads int, value float64, unit string) {
	fmt.Printf("Go,%s,%d,%.6g,%s\n", question, threads, value, unit)
}

func processor() time.Duration {
	var usage syscall.Rusage

	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func start(i int, delay time.Duration) { timers[i] = time.AfterFunc(delay, func() {}) }

func restart(i int, delay time.Duration) { timers[i].Reset(delay) }

func cancel(i int, delay time.Duration) { timers[i].Stop() }

func askRate(question string, count, threads int, call func(i int, delay time.Duration)) {
	var producers sync.WaitGroup
	order := rand.Perm(count)
	cpu := processor()
	begin := time.Now()

	for t := 0; t < threads; t++ {
		producers.Add(1)
		go func(t int) {
			random := rand.New(rand.NewSource(int64(t)))
			for _, i := range order[count*t/threads : count*(t+1)/threads] {
				delay := minute + random.Int63n(59*minute)
				call(i, time.Duration(delay)*time.Millisecond)
			}
			producers.Done()
		}(t)
	}
	producers.Wait()
	print(question, threads, float64(count)/time.Since(begin).Seconds()/1e6, "million/s")
	print(question+" processor", threads, float64(processor()-cpu)/float64(count), "ns")
}

func askRates(count, threads int) {
	timers = make([]*time.Timer, count)
	askRate("start", count, threads, start)
	askRate("restart", count, threads, restart)
	askRate("cancel", count, threads, cancel)
	timers = nil
	runtime.GC()
}

// Starts timers that are due within `spread` from `first` on. Returns how late each was, when all
// have run.
func runDue(count int, first time.Time, spread time.Duration) []time.Duration {
	var all sync.WaitGroup
	late := make([]time.Duration, count)

	all.Add(count)
	for i := range late {
		at := first.Add(time.Duration(rand.Int63n(int64(spread))))
		now := time.Now()
		delay := at.Sub(now).Truncate(time.Millisecond)
		due := now.Add(delay)
		one := &late[i]
		time.AfterFunc(delay, func() {
			*one = time.Since(due)
			all.Done()
		})
	}
	if !time.Now().Before(first) {
		panic("too slow to start all timers before they are due")
	}
	all.Wait()
	return late
}

func askDue(count int) {
	first := time.Now().Add(2*time.Second + time.Duration(count)*3*time.Microsecond)
	early := 0

	runDue(count, first, 100*time.Millisecond)
	print("crowd", 1, time.Since(first).Seconds()*1e3, "ms")
	runtime.GC()
	late := runDue(count/20, time.Now().Add(500*time.Millisecond), 4*time.Second)
	sort.Slice(late, func(i, j int) bool { return late[i] < late[j] })
	for early < len(late) && late[early] < 0 {
		early++
	}
	print("late p50", 1, late[len(late)/2].Seconds()*1e3, "ms")
	print("late p99", 1, late[len(late)*99/100].Seconds()*1e3, "ms")
	print("early", 1, float64(early), "timers")
}

func main() {
	count, _ := strconv.Atoi(os.Args[1])

	askRates(count, 1)
	askRates(count, 2)
	askDue(count)
}
