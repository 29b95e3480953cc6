/* span: pkt:classify expect: stats:rollup */
#include "common.h"
static struct {
	_Atomic long hits;
	_Atomic long total;
} c;
static atomic_int stop;
static void *roll(void *x)
{
	name_thread("stats");
	while (!stop) {
		snooze(exponential(15000) + 3000);
		kymo_span_begin(stats, rollup);
		double end = now_us() + 1500;
		while (now_us() < end)
			for (int i = 0; i < 2000; i++)
				c.total++;
		kymo_span_end(stats, rollup);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, NULL, roll, NULL);
	for (int i = 0; i < 3000; i++) {
		kymo_span_begin(pkt, classify, kymo_i32(port, 1024 + below(1000)));
		for (int k = 0; k < 20000; k++)
			c.hits++;
		kymo_span_end(pkt, classify);
		snooze(100);
	}
	stop = 1;
	pthread_join(t, NULL);
}
