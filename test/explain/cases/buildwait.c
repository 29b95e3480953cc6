/* span: ide:complete spans: nothing|index:.* expect: (index:file|held in index) */
#include "common.h"
static pthread_mutex_t tree = PTHREAD_MUTEX_INITIALIZER, names = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int stop;
static void *indexer(void *x)
{
	name_thread("indexer");
	while (!stop) {
		snooze(15000 + 10000 * uniform());
		kymo_span_begin(index, file, kymo_i32(lines, below(9000)));
		pthread_mutex_lock(&names);
		spin(about(1900));
		pthread_mutex_unlock(&names);
		kymo_span_end(index, file);
	}
	return x;
}
static void *outline(void *x)
{
	name_thread("outline");
	while (!stop) {
		kymo_span_begin(outline, update);
		pthread_mutex_lock(&tree);
		pthread_mutex_lock(&names);
		spin(about(10));
		pthread_mutex_unlock(&names);
		pthread_mutex_unlock(&tree);
		kymo_span_end(outline, update);
		snooze(300);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	spin(1);
	pthread_create(&t[0], 0, indexer, 0);
	pthread_create(&t[1], 0, outline, 0);
	for (int i = 0; i < 1500; i++) {
		kymo_span_begin(ide, complete, kymo_i32(prefix, below(8)));
		spin(about(30));
		pthread_mutex_lock(&tree);
		spin(about(10));
		pthread_mutex_unlock(&tree);
		spin(about(10));
		kymo_span_end(ide, complete);
		snooze(250);
	}
	stop = 1;
	pthread_join(t[0], 0);
	pthread_join(t[1], 0);
}
