/* SPDX-License-Identifier: MIT */
/* Events that several sources share, in the form for headers. C and C++ include it. */
#ifndef FORMS_H
#define FORMS_H

#include <kymo/tracepoint.h>

#ifdef __cplusplus
extern "C" {
#endif

KYMO_EVENT_DEFINE(forms, shared, KYMO_INFO, KYMO_ARGS(int number, const char *from),
	kymo_i32(number, number), kymo_string(from, from))
KYMO_EVENT_CLASS(forms, step, KYMO_ARGS(int number), kymo_i32(number, number))
KYMO_EVENT_INSTANCE(forms, step, step_one, KYMO_NOTICE)
KYMO_EVENT_INSTANCE(forms, step, step_two, KYMO_WARNING)

/* The same events from a second source, and from C++. */
void forms_second_source(void);
void forms_cplusplus(void);
/* In a library that the program is linked with, and in one that it loads. */
void forms_library(int number);

#ifdef __cplusplus
}
#endif

#endif
