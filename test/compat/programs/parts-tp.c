/* SPDX-License-Identifier: MIT */
#define TRACEPOINT_CREATE_PROBES
#include "parts-tp.h"

#include "more-tp.h"
