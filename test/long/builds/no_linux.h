/* SPDX-License-Identifier: MIT */
/* This header, included first, hides what Linux alone has, so that the fallbacks are compiled. */
#include <sys/mman.h>
#include <time.h>

#undef MADV_HUGEPAGE
#undef MADV_NOHUGEPAGE
#undef MADV_POPULATE_WRITE
#undef CLOCK_BOOTTIME
#undef __linux__
