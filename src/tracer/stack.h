/* SPDX-License-Identifier: MIT */
/*
 * Return addresses of the thread's callers, found by frame pointers. Code without frame pointers
 * ends the list early, or is missing in it. It never makes the walk leave the thread's stack.
 */
#ifndef TRACER_STACK_H
#define TRACER_STACK_H

#include "tracer/context.h"

/* Writes n addresses of 8 bytes to `to`, innermost first, with zeros behind the last. */
void stack_walk(const struct tracer_caller *caller, uint8_t *to, uint32_t n);

#endif
