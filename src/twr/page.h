/* SPDX-License-Identifier: MIT */
/* page is page.html, which embed.sh puts into the program, and the policy that names its script and
 * its style. */
#ifndef TWR_PAGE_H
#define TWR_PAGE_H

#include <stddef.h>

extern const char page_html[];
extern const size_t page_html_size;
extern const char page_policy[];

#endif
