/* span: kv:get expect: user:4242 */
#include "clock.h"
static void *client(void *x)
{
	for (int i = 0; i < 600; i++) {
		char key[32];
		int hot = !pick(25);
		snprintf(key, sizeof(key), "user:%d", hot ? 4242 : 1000 + pick(700));
		kymo_span_begin(kv, get, kymo_string(key, key));
		busy(30 + pick(20));
		if (hot)
			busy(600 + pick(200));
		kymo_span_end(kv, get);
		usleep(150);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	start(t, 2, client);
	finish(t, 2);
}
