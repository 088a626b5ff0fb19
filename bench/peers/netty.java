// SPDX-License-Identifier: MIT
//
// netty's HashedWheelTimer, asked the questions of timers.c: ticks of 1 ms, and 65,536 slots (more
// for more timers, says its manual). A restart is a cancel and a new timeout. Its thread takes new
// timeouts from a queue at each tick: rates are those of the calls, and processor time includes
// 300 ms after them. All is run once before, so that it is compiled. The collector is the JVM's
// default.
import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

class Netty {
	interface Call {
		void make(int i, long delay);
	}

	static final long MINUTE_MS = 60_000, HOUR_MS = 3_600_000;
	static final TimerTask NOTHING = timeout -> {};

	static HashedWheelTimer timer;
	static Timeout[] timeouts;
	static boolean printing;

	static void print(String question, int threads, double value, String unit) {
		if (printing)
			System.out.printf("netty,%s,%d,%.6g,%s%n", question, threads, value, unit);
	}

	static long processor() {
		return ((com.sun.management.OperatingSystemMXBean)
			ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
	}

	static int[] shuffled(int count) {
		SplittableRandom random = new SplittableRandom(count);
		int[] order = new int[count];

		for (int i = 0; i < count; i++) {
			int j = random.nextInt(i + 1);

			order[i] = order[j];
			order[j] = i;
		}
		return order;
	}

	static void askRate(String question, int count, int threads, Call call) throws Exception {
		Thread[] producers = new Thread[threads];
		int[] order = shuffled(count);
		long start = System.nanoTime(), cpu = processor();

		for (int t = 0; t < threads; t++) {
			int first = (int)((long)count * t / threads);
			int end = (int)((long)count * (t + 1) / threads);
			SplittableRandom random = new SplittableRandom(t);

			producers[t] = new Thread(() -> {
				for (int i = first; i < end; i++)
					call.make(order[i], random.nextLong(MINUTE_MS, HOUR_MS));
			});
			producers[t].start();
		}
		for (Thread producer : producers)
			producer.join();
		print(question, threads, count * 1e3 / (System.nanoTime() - start), "million/s");
		Thread.sleep(300);
		print(question + " processor", threads, (processor() - cpu) / (double)count, "ns");
	}

	static void askRates(int count, int threads) throws Exception {
		Call start = (i, delay) -> timeouts[i] = timer.newTimeout(NOTHING, delay,
									  TimeUnit.MILLISECONDS);

		timer = new HashedWheelTimer(1, TimeUnit.MILLISECONDS, 65536);
		timeouts = new Timeout[count];
		timer.start();
		askRate("start", count, threads, start);
		askRate("restart", count, threads, (i, delay) -> {
			timeouts[i].cancel();
			start.make(i, delay);
		});
		askRate("cancel", count, threads, (i, delay) -> timeouts[i].cancel());
		timer.stop();
		timeouts = null;
		System.gc();
	}

	/** Returns how late each was, when all have run. */
	static long[] runDue(int count, long first, int spread) throws Exception {
		SplittableRandom random = new SplittableRandom(1);
		CountDownLatch all = new CountDownLatch(count);
		long[] late = new long[count];

		timer = new HashedWheelTimer(1, TimeUnit.MILLISECONDS, 65536);
		timer.start();
		for (int i = 0; i < count; i++) {
			long at = first + random.nextLong(spread * 1_000_000L);
			long now = System.nanoTime();
			long delay = (at - now) / 1_000_000, due = now + delay * 1_000_000;
			int number = i;

			timer.newTimeout(timeout -> {
				late[number] = System.nanoTime() - due;
				all.countDown();
			}, delay, TimeUnit.MILLISECONDS);
		}
		if (System.nanoTime() >= first)
			throw new Exception("too slow to start all timers before they are due");
		all.await();
		return late;
	}

	static void askDue(int count) throws Exception {
		long first = System.nanoTime() + 2_000_000_000 + count * 3_000L;
		long[] late;
		int few = count / 20;

		runDue(count, first, 100);
		print("crowd", 1, (System.nanoTime() - first) / 1e6, "ms");
		timer.stop();
		System.gc();
		late = runDue(few, System.nanoTime() + 500_000_000, 4000);
		Arrays.sort(late);
		print("late p50", 1, late[few / 2] / 1e6, "ms");
		print("late p99", 1, late[few * 99 / 100] / 1e6, "ms");
		print("early", 1, Arrays.stream(late).filter(one -> one < 0).count(), "timers");
		timer.stop();
	}

	public static void main(String[] arguments) throws Exception {
		int count = Integer.parseInt(arguments[0]);

		askRates(count / 5, 2);
		printing = true;
		askRates(count, 1);
		askRates(count, 2);
		askDue(count);
	}
}
