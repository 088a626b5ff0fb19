/* SPDX-License-Identifier: MIT */
/* page is page.html, which embed.sh puts into the program. */
#ifndef TWR_PAGE_H
#define TWR_PAGE_H

#include <stddef.h>

extern const char page_html[];
extern const size_t page_html_size;

#endif
