/* SPDX-License-Identifier: MIT */
/* Uses what was generated from sample.tp. */
#include "generated.h"

int main(void)
{
	tracepoint(sample, message, "generated", 255);
	lttng_ust_tracepoint(sample, other, -1);
	return 0;
}
