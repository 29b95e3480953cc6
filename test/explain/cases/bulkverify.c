/* span: lib:hash expect: bulk:verify */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 900; i++) {
		int bulk = !pick(18);
		if (bulk)
			kymo_span_begin(bulk, verify);
		else
			kymo_span_begin(user, login);
		kymo_span_begin(lib, hash);
		busy(30 + pick(10) + (bulk ? 600 : 0));
		kymo_span_end(lib, hash);
		if (bulk)
			kymo_span_end(bulk, verify);
		else
			kymo_span_end(user, login);
		usleep(100);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
