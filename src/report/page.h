/* SPDX-License-Identifier: MIT */
/* The page of a report, as embed.py makes it of page.html and page.js. */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

extern const char ky_report_page_begin[]; /* up to the place of the data */
extern const char ky_report_page_end[];	  /* from there on */

#endif
