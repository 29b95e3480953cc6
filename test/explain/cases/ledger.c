/* span: pay:post spans: ledger:close expect: waits for mutex .*ledger:close */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void post(void)
{
	pthread_mutex_lock(&m);
	spin(about(8));
	pthread_mutex_unlock(&m);
}
static void *work(void *x)
{
	char name[16];
	snprintf(name, sizeof(name), "clerk-%d", (int)(intptr_t)x);
	name_thread(name);
	for (int i = 0; i < 250; i++) {
		if (x == (void *)3 && i % 40 == 39) {
			kymo_span_begin(ledger, close);
			pthread_mutex_lock(&m);
			spin(2000);
			pthread_mutex_unlock(&m);
			kymo_span_end(ledger, close);
		}
		kymo_span_begin(pay, post, kymo_i32(amount, below(500)));
		spin(about(25));
		post();
		spin(about(10));
		kymo_span_end(pay, post);
		snooze(800);
	}
	return x;
}
int main(void)
{
	run_threads(10, work);
}
