/* SPDX-License-Identifier: MIT */
#include "text_page.h"

#include <stdarg.h>
#include <stdio.h>

void text_page_give(struct text_page *page)
{
	page->write(page->context, page->text, page->size);
	page->size = 0;
}

void text_page_print(struct text_page *page, const char *format, ...)
{
	va_list arguments;
	int size;

	if (TEXT_PAGE_SIZE - page->size < TEXT_LINE_MOST)
		text_page_give(page);
	va_start(arguments, format);
	size = vsnprintf(page->text + page->size, TEXT_PAGE_SIZE - page->size, format, arguments);
	va_end(arguments);
	page->size += size > 0 ? (size_t)size : 0;
}
