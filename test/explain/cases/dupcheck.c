/* span: set:add expect: later */
#include "clock.h"
int main(void)
{
	static int v[4000];
	volatile int hit = 0;
	for (int i = 0; i < 2500; i++) {
		kymo_span_begin(set, add, kymo_u32(hash, (unsigned)pick(1 << 30)));
		for (int r = 0; r < 40; r++)
			for (int j = 0; j < i; j++)
				hit += v[j] == -1;
		v[i] = i;
		kymo_span_end(set, add);
	}
}
