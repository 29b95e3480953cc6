/* SPDX-License-Identifier: MIT */
/*
 * filters: for each line "PHASE N" on stdin, emits N events of each kind, which differ in n, and
 * replies "done". test-filter.py knows which of these events each filter selects.
 */
#include <stdio.h>
#include <string.h>

#include <kymo/tracepoint.h>

KYMO_ENUM(parity, KYMO_VALUE("EVEN", 0), KYMO_VALUE("ODD", 1))

static void emit(uint32_t phase, int32_t n)
{
	static const char *const words[] = {"zero", "one", "two"};
	uint16_t list[] = {(uint16_t)n, (uint16_t)(n + 1), 7};
	char text[200];

	memset(text, 'a' + n % 26, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	kymo_event(filters, item, kymo_u32(phase, phase), kymo_i32(n, n),
		kymo_string(word, words[n % 3]), kymo_u64(last, (uint64_t)n << 40));
	kymo_event(filters, kinds, kymo_u32(phase, phase), kymo_i8(a, (int8_t)-n),
		kymo_f64(half, n / 2.0), kymo_bool(odd, n & 1), kymo_enum(parity, parity, n & 1),
		kymo_net16(port, (uint16_t)((n & 0xff) << 8 | (n >> 8 & 0xff))),
		kymo_string(text, text), kymo_seq_u16(list, list, (size_t)(n % 4)),
		kymo_text(fixed, words[n % 3], 3), kymo_i32(n, n));
	kymo_event(filters, other, kymo_u32(phase, phase), kymo_i32(m, n));
}

int main(void)
{
	unsigned phase, n;

	while (scanf("%u %u", &phase, &n) == 2) {
		for (unsigned i = 0; i < n; i++)
			emit(phase, (int32_t)i);
		puts("done");
		fflush(stdout);
	}
	return 0;
}
