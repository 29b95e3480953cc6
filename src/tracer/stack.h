/* SPDX-License-Identifier: MIT */
/*
 * Return addresses of the thread's callers, found by frame pointers. Code without frame pointers
 * ends the list early, or is missing in it. It never makes the walk leave the thread's stack.
 */
#ifndef TRACER_STACK_H
#define TRACER_STACK_H

#include <stdint.h>

/* The place in the application that records an event. */
struct tracer_caller {
	uintptr_t ip;	 /* 0: not known */
	uintptr_t frame; /* frame pointer, if the application has them */
	uintptr_t stack; /* an address in its stack, below that frame */
};

/* Writes n addresses of 8 bytes to `to`, innermost first, with zeros behind the last. */
void stack_walk(const struct tracer_caller *caller, uint8_t *to, uint32_t n);

#endif
