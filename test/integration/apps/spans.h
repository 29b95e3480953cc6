/* SPDX-License-Identifier: MIT */
/* The C++ part of spans.c. */
#ifndef SPANS_H
#define SPANS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Emits three spans: one ends by return, one by an exception, one in a template. */
void spans_cplusplus(int n);

#ifdef __cplusplus
}
#endif

#endif
