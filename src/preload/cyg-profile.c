/* SPDX-License-Identifier: MIT */
/*
 * libkymo-cyg-profile.so: each function of programs built with -finstrument-functions as a pair of
 * events. The compiler puts calls of these two into them; the C library's do nothing.
 */
#include "preload/preload.h"

#define HOOK PRELOAD_EXPORT __attribute__((no_instrument_function))

HOOK void __cyg_profile_func_enter(void *addr, void *call_site);
HOOK void __cyg_profile_func_exit(void *addr, void *call_site);

void __cyg_profile_func_enter(void *addr, void *call_site)
{
	preload_event(
		cyg_profile, func_entry, kymo_ptr(addr, addr), kymo_ptr(call_site, call_site));
}

void __cyg_profile_func_exit(void *addr, void *call_site)
{
	preload_event(cyg_profile, func_exit, kymo_ptr(addr, addr), kymo_ptr(call_site, call_site));
}
