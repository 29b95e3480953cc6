/* span: n:page expect: nothing */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 500; i++) {
		kymo_span_begin(n, page, kymo_string(lang, pick(2) ? "en" : "de"));
		for (int j = 0; j < 3; j++) {
			kymo_span_begin(n, block, kymo_i32(j, j));
			busy(15 + 30 * pow(-log(dice() + 1e-9), 1.3));
			kymo_span_end(n, block);
		}
		kymo_span_end(n, page);
		usleep(150);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
