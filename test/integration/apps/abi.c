/* SPDX-License-Identifier: MIT */
/*
 * abi N: emits N events of each kind, to run applications of two ABIs at the same time. abi:same is
 * the same in both ABIs. abi:word has a field as wide as a long. abi:here exists in one ABI only.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <kymo/tracepoint.h>

#if __SIZEOF_LONG__ == 8
#define HERE	here_64
#define WORD(v) kymo_event(abi, word, kymo_i64(value, v), kymo_ptr(at, NULL))
#else
#define HERE	here_32
#define WORD(v) kymo_event(abi, word, kymo_i32(value, v), kymo_ptr(at, NULL))
#endif

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	const double halves[2] = {0.5, -2.5};

	for (int i = 0; i < n; i++) {
		kymo_event(abi, same, kymo_i32(i, i), kymo_u64(wide, (uint64_t)i << 40),
			kymo_string(text, "x"), kymo_array_f64(halves, halves, 2));
		WORD(-(long)i);
		kymo_event(abi, HERE, kymo_i32(i, i));
	}
	printf("%d\n", 3 * n);
	return 0;
}
