/* SPDX-License-Identifier: MIT */
#include "faults.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "stacks.h"

static atomic_long left[FAULT_KINDS]; /* calls until one fails, 0 if none will */
static bool (*_Atomic chooser)(void); /* may be NULL */
static atomic_bool all_after_it_too;
static atomic_long faults;
static const char *_Atomic failing_call; /* may be NULL */
static atomic_int call_error;
static atomic_long injected[FAULT_KINDS];
static struct stack_set stacks; /* where something failed */
static pthread_mutex_t stacks_mutex = PTHREAD_MUTEX_INITIALIZER;
static void fail(enum fault fault, long number)
{
	atomic_store(&faults, 0);
	atomic_store(&left[fault], number);
}

void fail_allocation(long number, bool and_all_after_it)
{
	atomic_store(&all_after_it_too, and_all_after_it);
	fail(FAULT_ALLOCATION, number);
}

bool fault_was_met(void)
{
	return atomic_load(&faults) > 0;
}

bool end_faults(void)
{
	atomic_store(&left[FAULT_ALLOCATION], 0);
	atomic_store(&left[FAULT_DESCRIPTOR], 0);
	atomic_store(&chooser, NULL);
	atomic_store(&failing_call, NULL);
	return fault_was_met();
}

void fail_thread(long number)
{
	fail(FAULT_THREAD, number);
}

void fail_descriptor(long number)
{
	fail(FAULT_DESCRIPTOR, number);
}

long threads_until_fault(void)
{
	return atomic_load(&left[FAULT_THREAD]);
}

void fail_calls(const char *name, int error)
{
	atomic_store(&faults, 0);
	atomic_store(&call_error, error);
	atomic_store(&failing_call, name);
}

void choose_allocations(bool (*is_to_fail)(void))
{
	atomic_store(&faults, 0);
	atomic_store(&chooser, is_to_fail);
}

/* Appends the call stacks at which something failed to the file that FAULT_STACKS names. */
static void write_stacks(void)
{
	const char *path = getenv("FAULT_STACKS");
	FILE *file = path ? fopen(path, "a") : NULL;

	for (size_t i = 0; file && i < STACK_SET_SIZE; i++)
		if (stacks.numbers[i] != 0)
			fprintf(file, "%016" PRIx64 "\n", stacks.numbers[i]);
	if (file)
		fclose(file);
}

/* Reports the injected faults at the end, after cmocka's output. Later output, such as counts of
 * coverage, does not fail. */
__attribute__((destructor)) static void tell_injected(void)
{
	long sum = 0;

	end_faults();
	for (int fault = 0; fault < FAULT_KINDS; fault++)
		sum += atomic_load(&injected[fault]);
	if (sum == 0)
		return;
	printf("%ld failures injected at %zu call stacks: %ld allocations, %ld descriptors, "
	       "%ld threads\n",
	       sum, stacks.count, atomic_load(&injected[FAULT_ALLOCATION]),
	       atomic_load(&injected[FAULT_DESCRIPTOR]), atomic_load(&injected[FAULT_THREAD]));
	write_stacks();
}

static bool met(enum fault fault, int error)
{
	atomic_fetch_add(&faults, 1);
	atomic_fetch_add(&injected[fault], 1);
	pthread_mutex_lock(&stacks_mutex);
	stack_set_add(&stacks, stack_number());
	pthread_mutex_unlock(&stacks_mutex);
	errno = error;
	return true;
}

bool allocation_fails(void)
{
	bool (*is_to_fail)(void) = atomic_load(&chooser);
	long number = atomic_load(&left[FAULT_ALLOCATION]);
	long next;

	if (is_to_fail)
		return is_to_fail() && met(FAULT_ALLOCATION, ENOMEM);
	do {
		if (number == 0)
			return false;
		next = number == 1 && atomic_load(&all_after_it_too) ? 1 : number - 1;
	} while (!atomic_compare_exchange_weak(&left[FAULT_ALLOCATION], &number, next));
	return number == 1 && met(FAULT_ALLOCATION, ENOMEM);
}

long faults_injected(enum fault fault)
{
	return atomic_load(&injected[fault]);
}

void note_injected(enum fault fault)
{
	atomic_fetch_add(&injected[fault], 1);
}

static bool one_fails(enum fault fault, int error)
{
	return atomic_load(&left[fault]) > 0 && atomic_fetch_sub(&left[fault], 1) == 1 &&
	       met(fault, error);
}

static bool descriptor_fails(void)
{
	return one_fails(FAULT_DESCRIPTOR, EMFILE);
}

bool call_fails(const char *name)
{
	const char *failing = atomic_load(&failing_call);

	if (!failing || strcmp(failing, name) != 0)
		return false;
	atomic_fetch_add(&faults, 1);
	errno = atomic_load(&call_error);
	return true;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **memory, size_t alignment, size_t size);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);
void *__real_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*start)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*start)(void *), void *argument);

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
char *__wrap_strndup(const char *text, size_t size);
FILE *__real_open_memstream(char **text, size_t *size);
FILE *__wrap_open_memstream(char **text, size_t *size);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);
int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);
int __real_clock_getres(clockid_t clock, struct timespec *resolution);
int __wrap_clock_getres(clockid_t clock, struct timespec *resolution);
ssize_t __real_getrandom(void *bytes, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags);
int __real_fstat(int descriptor, struct stat *stat);
int __wrap_fstat(int descriptor, struct stat *stat);
ssize_t __real_read(int descriptor, void *bytes, size_t size);
ssize_t __wrap_read(int descriptor, void *bytes, size_t size);
ssize_t __real_send(int descriptor, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int descriptor, const void *bytes, size_t size, int flags);
int __real_pthread_setspecific(pthread_key_t key, const void *value);
int __wrap_pthread_setspecific(pthread_key_t key, const void *value);

void *__wrap_malloc(size_t size)
{
	return allocation_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return allocation_fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	return allocation_fails() ? NULL : __real_realloc(memory, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return allocation_fails() ? NULL : __real_aligned_alloc(alignment, size);
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
	return allocation_fails() ? ENOMEM : __real_posix_memalign(memory, alignment, size);
}

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
	return allocation_fails() ? MAP_FAILED
				  : __real_mmap(address, size, protection, flags, file, offset);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*start)(void *), void *argument)
{
	return one_fails(FAULT_THREAD, errno)
		       ? EAGAIN
		       : __real_pthread_create(thread, attributes, start, argument);
}

char *__wrap_strdup(const char *text)
{
	return allocation_fails() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t size)
{
	return allocation_fails() ? NULL : __real_strndup(text, size);
}

/* Its buffer is an allocation, too: without it nothing can be written. */
FILE *__wrap_open_memstream(char **text, size_t *size)
{
	if (allocation_fails())
		return NULL;
	if (!allocation_fails())
		return __real_open_memstream(text, size);
	*text = NULL;
	*size = 0;
	return __real_fopen("/dev/full", "w");
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	return descriptor_fails() ? NULL : __real_fopen(path, mode);
}

/* The library opens files only for reading. */
int __wrap_open(const char *path, int flags, ...)
{
	return descriptor_fails() ? -1 : __real_open(path, flags);
}

int __wrap_socket(int domain, int type, int protocol)
{
	return descriptor_fails() ? -1 : __real_socket(domain, type, protocol);
}

int __wrap_eventfd(unsigned count, int flags)
{
	return descriptor_fails() ? -1 : __real_eventfd(count, flags);
}

int __wrap_timerfd_create(int clock, int flags)
{
	return descriptor_fails() ? -1 : __real_timerfd_create(clock, flags);
}

int __wrap_clock_getres(clockid_t clock, struct timespec *resolution)
{
	return call_fails("clock_getres") ? -1 : __real_clock_getres(clock, resolution);
}

ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags)
{
	return call_fails("getrandom") ? -1 : __real_getrandom(bytes, size, flags);
}

int __wrap_fstat(int descriptor, struct stat *stat)
{
	return call_fails("fstat") ? -1 : __real_fstat(descriptor, stat);
}

/* Error 0 stands for the end of the file. EINTR interrupts once. */
ssize_t __wrap_read(int descriptor, void *bytes, size_t size)
{
	if (!call_fails("read"))
		return __real_read(descriptor, bytes, size);
	if (errno == EINTR)
		atomic_store(&failing_call, NULL);
	return errno ? -1 : 0;
}

/* EAGAIN means no room once, EPIPE that the connection breaks once. */
ssize_t __wrap_send(int descriptor, const void *bytes, size_t size, int flags)
{
	if (!call_fails("send"))
		return __real_send(descriptor, bytes, size, flags);
	if (errno == EAGAIN || errno == EPIPE)
		atomic_store(&failing_call, NULL);
	return -1;
}

int __wrap_pthread_setspecific(pthread_key_t key, const void *value)
{
	return call_fails("pthread_setspecific") ? errno : __real_pthread_setspecific(key, value);
}
