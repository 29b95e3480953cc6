/* span: kv:read expect: (shard = .?3|net:attempt) */
#include "clock.h"
static void *w(void *x)
{
	for (int i = 0; i < 450; i++) {
		int shard = pick(10), tries = 0;
		kymo_span_begin(kv, read, kymo_i32(shard, shard), kymo_i32(key, pick(1 << 20)));
		for (;;) {
			kymo_span_begin(net, attempt);
			busy(40 + pick(10));
			kymo_span_end(net, attempt);
			if (shard != 3 || tries == 4 || pick(2))
				break;
			usleep(150u << tries++);
		}
		kymo_span_end(kv, read);
		usleep(150);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	start(t, 2, w);
	finish(t, 2);
}
