/* SPDX-License-Identifier: MIT */
/*
 * Return addresses of the thread's callers, by frame pointers. Code without them cuts the list short, or leaves callers
 * out; it never makes the walk leave the thread's stack.
 */
#ifndef TRACER_STACK_H
#define TRACER_STACK_H

#include "tracer/context.h"

/* n addresses of 8 bytes to `to`, innermost first, zeros behind the last. */
void stack_walk(const struct tracer_caller *caller, uint8_t *to, uint32_t n);

#endif
