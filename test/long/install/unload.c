/* SPDX-License-Identifier: MIT */
/*
 * This program loads the library at run time and unloads it while a thread that has used it still
 * runs: unload LIBRARY. The thread's end must find the library's code.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <timingwheel/cache.h>

static sem_t used, put_down;

static void *use(void *library)
{
	enum tw_status (*create)(struct tw_cache **, tw_duration, const struct tw_cache_options *);
	enum tw_status (*set)(struct tw_cache *, const void *, size_t, const void *, size_t);
	void (*destroy)(struct tw_cache *);
	struct tw_cache *cache;
	enum tw_status status;

	/* POSIX converts an object pointer to a function's this way. */
	*(void **)&create = dlsym(library, "tw_cache_create");
	*(void **)&set = dlsym(library, "tw_cache_set");
	*(void **)&destroy = dlsym(library, "tw_cache_destroy");
	status = create(&cache, TW_SECOND, NULL);
	if (status == TW_OK) {
		status = set(cache, "key", 3, "value", 5);
		destroy(cache);
	}
	sem_post(&used);
	sem_wait(&put_down);
	return status == TW_OK ? library : NULL;
}

int main(int count, char **arguments)
{
	void *library = dlopen(count > 1 ? arguments[1] : "libtimingwheel.so", RTLD_NOW);
	void *result = NULL;
	pthread_t thread;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	sem_init(&used, 0, 0);
	sem_init(&put_down, 0, 0);
	if (pthread_create(&thread, NULL, use, library) != 0)
		return 1;
	sem_wait(&used);
	dlclose(library);
	sem_post(&put_down);
	pthread_join(thread, &result);
	return result == library ? 0 : 1;
}
