// SPDX-License-Identifier: MIT
//
// ristretto, asked the questions of caches.c, as its manual says: ten counters an entry, 64 items a
// buffer. Values are pointers that a get returns. It may drop a set, which the fill repeats. It
// removes expired entries every 2.5 s, in buckets of 5 s: so gets go on for 8 s after the deadline.
// Bytes are those of the heap after a collection.
package main

import (
	"encoding/binary"
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

const draws, calls = 1 << 22, 2000000

var drawn [draws]uint32

func keyOf(number uint64) []byte {
	key := make([]byte, 16)

	binary.LittleEndian.PutUint64(key, number*0x9e3779b97f4a7c15)
	binary.LittleEndian.PutUint64(key[8:], number)
	return key
}

func print(question string, threads int, value float64, unit string) {
	fmt.Printf("ristretto,%s,%d,%.6g,%s\n", question, threads, value, unit)
}

func open(limit int64) *ristretto.Cache {
	cache, err := ristretto.NewCache(
		&ristretto.Config{NumCounters: 10 * limit, MaxCost: limit, BufferItems: 64})

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

	for rank := range sums {
		sum += math.Pow(float64(rank+1), -0.99)
		sums[rank] = sum
	}
	for i := range drawn {
		drawn[i] = uint32(sort.SearchFloat64s(sums, rand.Float64()*sum))
	}
}

// Sets all keys, for ever where `lifetime` is 0.
func fill(cache *ristretto.Cache, count int, lifetime func() time.Duration) {
	for i := 0; i < count; i++ {
		key := keyOf(uint64(i))
		for !cache.SetWithTTL(key, new([8]uint64), 1, lifetime()) {
			runtime.Gosched()
		}
	}
	time.Sleep(100 * time.Millisecond)
}

func call(cache *ristretto.Cache, position int, takes bool) (misses float64) {
	for i := 0; i < calls; i++ {
		key := keyOf(uint64(drawn[(position+i)%draws]))
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
	made, misses := float64(calls*threads), 0.0
	start := time.Now()

	for t := 0; t < threads; t++ {
		go func(t int) { all <- call(cache, draws/2*t, takes) }(t)
	}
	for t := 0; t < threads; t++ {
		misses += <-all
	}
	print(name, threads, made/time.Since(start).Seconds()/1e6, "million/s")
	print(name+" hits", threads, 100-100*misses/made, "%")
}

func askDeadline(count int) {
	cache := open(2 * int64(count))
	due := time.Now().Add(2*time.Second + time.Duration(count)*15*time.Microsecond)
	times := make([]float64, 0, 1<<26)

	fill(cache, count, func() time.Duration {
		if left := time.Until(due); left > 0 {
			return left
		}
		panic("too slow to set all entries before they expire")
	})
	time.Sleep(time.Until(due) - 100*time.Millisecond)
	for before := time.Now(); before.Before(due.Add(8 * time.Second)); {
		cache.Get(keyOf(uint64(drawn[len(times)%draws])))
		now := time.Now()
		times = append(times, now.Sub(before).Seconds()*1e6)
		before = now
	}
	sort.Float64s(times)
	print("deadline p99.9", 1, times[len(times)*999/1000], "us")
	print("deadline max", 1, times[len(times)-1], "us")
}

func main() {
	count, _ := strconv.Atoi(os.Args[1])

	draw(count)
	before := heap()
	cache := open(2 * int64(count))
	fill(cache, count, func() time.Duration { return 0 })
	print("bytes", 1, (heap()-before)/float64(count), "bytes")
	askCalls(cache, "gets", 1, false)
	askCalls(cache, "gets", 2, false)
	for threads := 1; threads <= 2; threads++ {
		cache = open(int64(count / 10))
		call(cache, 0, true)
		askCalls(cache, "through", threads, true)
	}
	askDeadline(count)
}
