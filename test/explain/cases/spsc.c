/* span: cons:next expect: feed:parse */
#include "common.h"
static atomic_int head;
static void *producer(void *x)
{
	name_thread("feed");
	for (int i = 0; i < 1200; i++) {
		spin(about(150));
		if (i % 50 == 20) {
			kymo_span_begin(feed, parse);
			spin(3000);
			kymo_span_end(feed, parse);
		}
		head++;
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, producer, 0);
	for (int i = 0; i < 1200; i++) {
		kymo_span_begin(cons, next);
		while (head <= i)
			;
		spin(about(30));
		kymo_span_end(cons, next);
	}
	pthread_join(t, 0);
}
