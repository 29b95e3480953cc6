/* SPDX-License-Identifier: MIT */
/* What spans.c asks of its C++ part. */
#ifndef SPANS_H
#define SPANS_H

#ifdef __cplusplus
extern "C" {
#endif

/* A span each that ends by return, by an exception, and in a template. */
void spans_cplusplus(int n);

#ifdef __cplusplus
}
#endif

#endif
