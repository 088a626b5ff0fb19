/* SPDX-License-Identifier: MIT */
/* A text page collects printed text and passes it to a function a page at a time. It allocates
 * nothing. */
#ifndef TEXT_PAGE_H
#define TEXT_PAGE_H

#include <stddef.h>

#include <timingwheel/timingwheel.h>

enum { TEXT_PAGE_SIZE = 4096, TEXT_LINE_MOST = 512 };

/* The user sets the first two fields and zeroes the others. */
struct text_page {
	tw_write_fn *write;
	void *context;
	size_t size;
	char text[TEXT_PAGE_SIZE];
};

/* Prints at most TEXT_LINE_MOST bytes, which stay together in one page. */
__attribute__((format(printf, 2, 3))) void text_page_print(struct text_page *page,
							   const char *format, ...);
/* Passes on the text collected so far. */
void text_page_give(struct text_page *page);

#endif
