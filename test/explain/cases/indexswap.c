/* span: find:query expect: index:swap */
#include "clock.h"
static int gen, done;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	int mine = 0;
	if (!k) {
		while (!__atomic_load_n(&done, 0)) {
			usleep(30000);
			kymo_span_begin(index, swap);
			busy(60);
			__atomic_fetch_add(&gen, 1, 0);
			kymo_span_end(index, swap);
		}
		return x;
	}
	for (int i = 0; i < 800; i++) {
		int g;
		kymo_span_begin(find, query, kymo_i32(terms, 1 + pick(5)));
		g = __atomic_load_n(&gen, 0);
		busy(45 + pick(15) + (g != mine ? 1000 : 0));
		mine = g;
		kymo_span_end(find, query);
		usleep(300);
	}
	__atomic_store_n(&done, 1, 0);
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 3, work);
	finish(t, 3);
}
