// SPDX-License-Identifier: MIT
//
// Caffeine, asked the questions of caches.c, with its defaults: values are objects that a get
// returns, and a read-through is get(key, loader). Bytes are those of the heap after a collection.
// Entries with a deadline have an Expiry; version 2.6 has no scheduler, so calls do the work.
// All is run with a tenth of the keys before, so that it is compiled.
import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.Expiry;
import java.util.*;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Function;

class Caffeines implements Expiry<Caffeines.Key, Caffeines.Value> {
	static final int CALLS = 2_000_000, DRAWS = 3 * CALLS;

	record Key(long first, long second) {}
	record Value(long[] words, long due) {}

	static int[] draws = new int[DRAWS];
	static boolean printing;

	static Key keyOf(long number) {
		return new Key(number * 0x9e3779b97f4a7c15L, number);
	}

	static void print(String name, int threads, double value, String unit) {
		if (printing)
			System.out.printf("Caffeine,%s,%d,%.6g,%s%n", name, threads, value, unit);
	}

	static long heap() {
		System.gc();
		return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
	}

	static void draw(int count) {
		SplittableRandom random = new SplittableRandom(1);
		double[] sums = new double[count];
		double sum = 0;

		for (int rank = 0; rank < count; rank++)
			sums[rank] = sum += Math.pow(rank + 1, -0.99);
		/* The answer of a search for a sum between two is -1 - the rank. */
		for (int i = 0; i < DRAWS; i++) {
			long rank = Math.abs(1 + Arrays.binarySearch(sums, random.nextDouble(sum)));
			draws[i] = (int)(rank * 611_953 % count);
		}
	}

	/** Returns how many calls missed. */
	static long call(Cache<Key, Value> cache, int position, boolean takes) {
		long[] misses = {0};
		Function<Key, Value> loader = key -> {
			misses[0]++;
			return new Value(new long[8], 0);
		};

		for (int i = 0; i < CALLS; i++) {
			Key key = keyOf(draws[(position + i) % DRAWS]);

			if (takes)
				cache.get(key, loader);
			else if (i % 10 == 0)
				cache.put(key, new Value(new long[8], 0));
			else if (cache.getIfPresent(key) == null)
				misses[0]++;
		}
		return misses[0];
	}

	static void askCalls(Cache<Key, Value> cache, String name, int threads, boolean takes)
		throws Exception {
		double calls = (double)CALLS * threads;
		Thread[] callers = new Thread[threads];
		LongAdder misses = new LongAdder();
		long start = System.nanoTime();

		for (int t = 0; t < threads; t++) {
			int position = CALLS * t;

			callers[t] = new Thread(() -> misses.add(call(cache, position, takes)));
			callers[t].start();
		}
		for (Thread caller : callers)
			caller.join();
		print(name, threads, calls * 1e3 / (System.nanoTime() - start), "million/s");
		print(name + " hits", threads, 100 - 100 * misses.sum() / calls, "%");
	}

	static void askAll(int count) throws Exception {
		long before = heap();
		Cache<Key, Value> cache = Caffeine.newBuilder().build();

		for (int i = 0; i < count; i++)
			cache.put(keyOf(i), new Value(new long[8], 0));
		print("bytes", 1, (heap() - before) / (double)count, "bytes");
		for (int threads = 1; threads <= 2; threads++) {
			var few = Caffeine.newBuilder().maximumSize(count / 10).<Key, Value>build();

			askCalls(cache, "gets", threads, false);
			call(few, 2 * CALLS, true);
			askCalls(few, "through", threads, true);
		}
	}

	public long expireAfterCreate(Key key, Value value, long now) {
		return value.due - now;
	}

	public long expireAfterUpdate(Key key, Value value, long now, long left) {
		return value.due - now;
	}

	public long expireAfterRead(Key key, Value value, long now, long left) {
		return left;
	}

	static void askDeadline(int count) throws Exception {
		var cache = Caffeine.newBuilder().expireAfter(new Caffeines()).build();
		long due = System.nanoTime() + 5_000_000_000L + count * 3_000L;
		int[] times = new int[30_000_000];
		int gets = 0;

		for (int i = 0; i < count; i++)
			cache.put(keyOf(i), new Value(new long[8], due));
		if (System.nanoTime() >= due)
			throw new Exception("too slow to set all entries before they expire");
		Thread.sleep((due - 100_000_000 - System.nanoTime()) / 1_000_000);
		for (long before = System.nanoTime(), now; before < due + 1_000_000_000; before = now) {
			cache.getIfPresent(keyOf(draws[gets % DRAWS]));
			now = System.nanoTime();
			times[gets++] = (int)(now - before);
		}
		Arrays.sort(times, 0, gets);
		print("deadline p99.9", 1, times[(int)(gets * 0.999)] / 1e3, "us");
		print("deadline max", 1, times[gets - 1] / 1e3, "us");
	}

	public static void main(String[] arguments) throws Exception {
		int count = Integer.parseInt(arguments[0]);

		for (int keys : new int[] {count / 10, count}) {
			printing = keys == count;
			draw(keys);
			askAll(keys);
			askDeadline(keys);
		}
	}
}
