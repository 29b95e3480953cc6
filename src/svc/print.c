/* SPDX-License-Identifier: MIT */
#include "svc/print.h"

#include "base/util.h"

void ky_print_and_exit(const char *text)
{
	if (fputs(text, stdout) >= 0 && !fflush(stdout))
		exit(EXIT_SUCCESS);
	fprintf(stderr, "%s: cannot write: %s\n", program_invocation_short_name, strerror(errno));
	exit(EXIT_FAILURE);
}
