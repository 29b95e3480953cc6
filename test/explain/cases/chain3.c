/* span: ui:paint expect: waits for mutex .*held in (net:stall|net:read) */
#include "common.h"
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool stop;
static void *net(void *x)
{
	name_thread("net");
	while (!stop) {
		snooze(32000);
		kymo_span_begin(net, read);
		pthread_mutex_lock(&b);
		kymo_span_begin(net, stall);
		snooze(5000);
		kymo_span_end(net, stall);
		pthread_mutex_unlock(&b);
		kymo_span_end(net, read);
	}
	return x;
}
static void *model(void *x)
{
	name_thread("model");
	while (!stop) {
		kymo_span_begin(model, update);
		pthread_mutex_lock(&a);
		pthread_mutex_lock(&b);
		spin(about(8));
		pthread_mutex_unlock(&b);
		pthread_mutex_unlock(&a);
		kymo_span_end(model, update);
		snooze(900);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	spin(1);
	pthread_create(&t[0], 0, net, 0);
	pthread_create(&t[1], 0, model, 0);
	for (int i = 0; i < 1600; i++) {
		kymo_span_begin(ui, paint);
		spin(about(40));
		pthread_mutex_lock(&a);
		spin(about(5));
		pthread_mutex_unlock(&a);
		spin(about(30));
		kymo_span_end(ui, paint);
		snooze(350);
	}
	stop = 1;
	pthread_join(t[0], 0);
	pthread_join(t[1], 0);
}
