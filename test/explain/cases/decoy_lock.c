/* span: web:render expect: tpl:compile */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(web, render, kymo_i32(id, below(9999)));
		for (int k = 0; k < 5; k++) {
			pthread_mutex_lock(&m);
			spin(about(6));
			pthread_mutex_unlock(&m);
			spin(about(6));
		}
		kymo_span_begin(tpl, compile);
		spin(about(chance(.05) ? 1100 : 25));
		kymo_span_end(tpl, compile);
		kymo_span_end(web, render);
		snooze(exponential(200));
	}
	return x;
}
int main(void)
{
	run_threads(5, work);
}
