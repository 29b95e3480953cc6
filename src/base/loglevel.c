/* SPDX-License-Identifier: MIT */
#include "base/loglevel.h"

#include <stddef.h>

const char *const ky_loglevel_names[] = {"EMERG", "ALERT", "CRIT", "ERR", "WARNING", "NOTICE",
	"INFO", "DEBUG_SYSTEM", "DEBUG_PROGRAM", "DEBUG_PROCESS", "DEBUG_MODULE", "DEBUG_UNIT",
	"DEBUG_FUNCTION", "DEBUG_LINE", "DEBUG", NULL};
