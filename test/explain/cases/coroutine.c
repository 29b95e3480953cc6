/* span: co:fiber expect: co:crypto */
#include "clock.h"
#define F 6
int main(void)
{
	int step[F] = {0};
	uint64_t id[F], next = 1;
	for (int i = 0; i < F; i++) {
		id[i] = next++;
		kymo_async_begin(co, fiber, id[i], kymo_i32(kind, pick(4)));
	}
	for (int n = 0; n < 4500; n++) {
		int f = n % F;
		busy(12);
		if (!pick(300)) {
			kymo_span_begin(co, crypto);
			busy(3000);
			kymo_span_end(co, crypto);
		}
		if (++step[f] == 8) {
			kymo_async_end(co, fiber, id[f]);
			id[f] = next++;
			step[f] = 0;
			kymo_async_begin(co, fiber, id[f], kymo_i32(kind, pick(4)));
		}
	}
}
