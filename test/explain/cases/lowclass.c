/* span: sched:job expect: class|low|prio */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static uint64_t hi[8192], lo[8192];
static int hin, hout, lin, lout, stop;
static void *worker(void *x)
{
	name_thread("runner");
	for (;;) {
		uint64_t id;
		pthread_mutex_lock(&m);
		while (hin == hout && lin == lout && !stop)
			pthread_cond_wait(&c, &m);
		if (hin > hout)
			id = hi[hout++];
		else if (lin > lout)
			id = lo[lout++];
		else {
			pthread_mutex_unlock(&m);
			return x;
		}
		pthread_mutex_unlock(&m);
		kymo_span_begin(job, work);
		spin(about(200));
		kymo_span_end(job, work);
		kymo_async_end(sched, job, id);
	}
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, NULL, worker, NULL);
	for (uint64_t i = 1; i <= 3000; i++) {
		int low = chance(.06);
		kymo_async_begin(sched, job, i,
			kymo_string(class, low		? "low"
					   : chance(.5) ? "high"
							: "normal"),
			kymo_i32(size, below(1000)));
		pthread_mutex_lock(&m);
		if (low)
			lo[lin++] = i;
		else
			hi[hin++] = i;
		pthread_cond_signal(&c);
		pthread_mutex_unlock(&m);
		snooze(exponential(180));
	}
	pthread_mutex_lock(&m);
	stop = 1;
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&m);
	pthread_join(t, NULL);
}
