/* SPDX-License-Identifier: MIT */
#include "variety-tp.h"

int main(void)
{
	static const struct variety_packet last = {7, -9, 0x123456789a, {1, 2, 3, 0xab, 0xcd, 0xef},
		{0x5000, 0xbb01}, "seven", {{1, 2, 3}, {-4, -5, -6}}, NULL, 20,
		"twenty bytes of data"};
	static const struct variety_packet first = {
		1, 15, 0, {0}, {0}, "eight..", {{0}}, &last, 0, ""};

	for (int i = 0; i < 4; i++) {
		tracepoint(variety, early, i, i & 1 ? "odd" : NULL);
		lttng_ust_tracepoint(variety, mixed, i, "x");
	}
	tracepoint(variety, packet, &last);
	lttng_ust_tracepoint(variety, packet, &first);
	tracepoint(variety, no_arguments);
	tracepoint(variety, nothing);
	tracepoint(variety,
		nabcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_,
		5);
	if (lttng_ust_tracepoint_enabled(variety, packet) && tracepoint_enabled(variety, early))
		lttng_ust_do_tracepoint(variety, packet, &last);
	tracepoint_disable_destructors();
	return 0;
}
