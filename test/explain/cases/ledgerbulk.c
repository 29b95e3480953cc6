/* span: gl:post expect: (held in gl:post|lines ≥|grows with lines|bulk) */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *x)
{
	for (int i = 0; i < 400; i++) {
		int bulk = chance(.012);
		kymo_span_begin(gl, post, kymo_i32(lines, bulk ? 4000 : 1 + below(20)));
		spin(about(20));
		pthread_mutex_lock(&m);
		spin(about(bulk ? 4000 : 15));
		pthread_mutex_unlock(&m);
		kymo_span_end(gl, post);
		snooze(exponential(800));
	}
	return x;
}
int main(void)
{
	run_threads(5, work);
}
