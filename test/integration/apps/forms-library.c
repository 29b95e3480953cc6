/* SPDX-License-Identifier: MIT */
/*
 * Built twice: as the library that forms is linked with, and (with LOADED) as the library that it
 * loads and unloads.
 */
#include <kymo/tracepoint.h>

#ifdef LOADED
__attribute__((visibility("default"))) void forms_loaded(int number);
void forms_loaded(int number)
{
	kymo_event(forms, in_loaded, kymo_i32(number, number));
}
#else
__attribute__((visibility("default"))) void forms_library(int number);
void forms_library(int number)
{
	kymo_event(forms, in_library, kymo_i32(number, number));
}
#endif
