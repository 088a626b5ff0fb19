/* SPDX-License-Identifier: MIT */
/* Text that is written bit by bit, and given on a page at a time. Allocates nothing. */
#ifndef TEXT_PAGE_H
#define TEXT_PAGE_H

#include <stddef.h>

#include <timingwheel/timingwheel.h>

enum { TEXT_PAGE_SIZE = 4096, TEXT_LINE_MOST = 512 };

/* Begins with its first two fields set, and the others 0. */
struct text_page {
	tw_write_fn *write;
	void *context;
	size_t size;
	char text[TEXT_PAGE_SIZE];
};

/* A line or a few, of TEXT_LINE_MOST bytes at most, whole. */
__attribute__((format(printf, 2, 3))) void text_page_print(struct text_page *page,
							   const char *format, ...);
/* Gives on what is there. */
void text_page_give(struct text_page *page);

#endif
