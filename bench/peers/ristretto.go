// SPDX-License-Identifier: MIT
//
// ristretto, asked the questions of caches.c, as its manual says: ten counters an entry, 64 items a
// buffer. Values are pointers that a get returns. It may drop a set, which the fill repeats. It
// removes expired entries every 2.5 s, in buckets of 5 s: so gets go on for 8 times 1.1 s.
// Bytes are those of the heap after a collection.
package main

import (
	"fmt"
	"math"
	"math/rand"
	"os"
	"runtime"
	"sort"
	"strconv"
	"time"

	"github.com/dgraph-io/ristretto"
)

const calls, draws = 2000000, 3 * calls

var drawn [draws]int
var keys []byte

func keyOf(number int) []byte { return keys[16*number : 16*number+16] }

func print(question string, threads int, value float64, unit string) {
	fmt.Printf("ristretto,%s,%d,%.6g,%s\n", question, threads, value, unit)
}

func open(entries, limit int) *ristretto.Cache {
	cache, err := ristretto.NewCache(
		&ristretto.Config{NumCounters: 10 * int64(entries), MaxCost: int64(limit), BufferItems: 64})

	if err != nil {
		panic(err)
	}
	return cache
}

func heap() float64 {
	var stats runtime.MemStats

	runtime.GC()
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

func draw(count int) {
	sums, sum := make([]float64, count), 0.0

	keys = make([]byte, 16*count)
	rand.Read(keys)
	for rank := range sums {
		sum += math.Pow(float64(rank+1), -0.99)
		sums[rank] = sum
	}
	for i := range drawn {
		drawn[i] = sort.SearchFloat64s(sums, rand.Float64()*sum) * 611953 % count
	}
}

// Sets all keys, for ever where `lifetime` is 0.
func fill(cache *ristretto.Cache, count int, lifetime func() time.Duration) {
	for i := 0; i < count; i++ {
		for !cache.SetWithTTL(keyOf(i), new([8]uint64), 1, lifetime()) {
			runtime.Gosched()
		}
	}
	time.Sleep(100 * time.Millisecond)
}

func call(cache *ristretto.Cache, position int, takes bool) (misses float64) {
	for i := 0; i < calls; i++ {
		key := keyOf(drawn[position+i])
		if !takes && i%10 == 0 {
			cache.Set(key, new([8]uint64), 1)
		} else if _, found := cache.Get(key); !found {
			misses++
			if takes {
				cache.Set(key, new([8]uint64), 1)
			}
		}
	}
	return misses
}

func askCalls(cache *ristretto.Cache, name string, threads int, takes bool) {
	all := make(chan float64)
	made, misses, start := float64(calls*threads), 0.0, time.Now()

	for t := 0; t < threads; t++ {
		go func(t int) { all <- call(cache, calls*t, takes) }(t)
	}
	for t := 0; t < threads; t++ {
		misses += <-all
	}
	print(name, threads, made/time.Since(start).Seconds()/1e6, "million/s")
	print(name+" hits", threads, 100-100*misses/made, "%")
}

func askDeadline(count int) {
	cache := open(count, 2*count)
	due := time.Now().Add(5*time.Second + time.Duration(count)*8*time.Microsecond)
	times, ends := make([]float64, 0, 1<<26), []int{0}
	worst, most := 0.0, 0.0

	fill(cache, count, func() time.Duration {
		if left := time.Until(due); left > 0 {
			return left
		}
		panic("too slow to set all entries before they expire")
	})
	time.Sleep(time.Until(due) - 100*time.Millisecond)
	for before := time.Now(); len(ends) <= 8; ends = append(ends, len(times)) {
		for end := before.Add(1100 * time.Millisecond); before.Before(end); {
			cache.Get(keyOf(drawn[len(times)%draws]))
			now := time.Now()
			times = append(times, now.Sub(before).Seconds()*1e6)
			before = now
		}
	}
	for i, end := range ends[1:] {
		span := times[ends[i]:end]
		sort.Float64s(span)
		worst = math.Max(worst, span[len(span)*999/1000])
		most = math.Max(most, span[len(span)-1])
	}
	print("deadline p99.9", 1, worst, "us")
	print("deadline max", 1, most, "us")
}

func main() {
	count, _ := strconv.Atoi(os.Args[1])

	draw(count)
	before := heap()
	full := open(count, 2*count)
	fill(full, count, func() time.Duration { return 0 })
	print("bytes", 1, (heap()-before)/float64(count), "bytes")
	for threads := 1; threads <= 2; threads++ {
		few := open(count/10, count/10)
		askCalls(full, "gets", threads, false)
		call(few, 2*calls, true)
		askCalls(few, "through", threads, true)
	}
	askDeadline(count)
}
