/* SPDX-License-Identifier: MIT */
/* A clock for the loop of a unit test: it moves when the loop waits, and when the test moves it. */
#ifndef SESSIOND_MODEL_TEST_CLOCK_H
#define SESSIOND_MODEL_TEST_CLOCK_H

#include "svc/loop.h"

static uint64_t now_ns;

static uint64_t read_clock(struct ky_loop_clock *c)
{
	(void)c;
	return now_ns;
}

static void pass_time(struct ky_loop_clock *c, uint64_t ns)
{
	(void)c;
	now_ns += ns;
}

static struct ky_loop_clock test_clock = {.now_ns = read_clock, .pass = pass_time};

#endif
