/* SPDX-License-Identifier: MIT */
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "versions-tp.h"

void versions_emit(int n);

/* Programs have macros by the names of a tracer's members. */
#define enabled 1
#define hook	2
#define probe	3
#define next	4

int main(void)
{
	for (int i = 0; i < 3; i++) {
		tracepoint(versions, grown, i);
		tracepoint(versions, same, i);
		versions_emit(10 + i);
	}
	return 0;
}
