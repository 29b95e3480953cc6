/* SPDX-License-Identifier: MIT */
/*
 * A library by one of the names that programs are linked with. It needs
 * liblttng-ust-tracepoint.so.1, which has all functions.
 */
void lttng_ust_init_thread(void);

extern void (*const kymo_lttng_stands_in)(void);
void (*const kymo_lttng_stands_in)(void) = lttng_ust_init_thread;
