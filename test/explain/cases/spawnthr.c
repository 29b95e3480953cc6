/* span: rpc:call expect: thr:spawn|idle|pool */
#include "common.h"
static void *child(void *x)
{
	char s[262144];
	memset(s, 1, sizeof(s));
	__asm__ volatile("" ::"r"(s) : "memory");
	spin(about(60));
	return x;
}
int main(void)
{
	spin(1);
	for (int i = 0; i < 1000; i++) {
		int dry = chance(.06);
		kymo_span_begin(rpc, call, kymo_i32(method, below(12)),
			kymo_i32(idle, dry ? 0 : 1 + below(5)));
		spin(about(100));
		if (dry) {
			pthread_t t[4];
			kymo_span_begin(thr, spawn);
			for (int k = 0; k < 4; k++)
				pthread_create(&t[k], NULL, child, NULL);
			for (int k = 0; k < 4; k++)
				pthread_join(t[k], NULL);
			kymo_span_end(thr, spawn);
		}
		spin(about(100));
		kymo_span_end(rpc, call);
		snooze(200);
	}
}
