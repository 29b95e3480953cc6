/* SPDX-License-Identifier: MIT */
#define OLDER
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "versions-tp.h"

void versions_emit(int n);
__attribute__((visibility("default"))) void versions_emit(int n)
{
	tracepoint(versions, grown, n);
	tracepoint(versions, same, n);
}
