/* span: doc:save expect: because (acl:check|in doc:save;acl:check) */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *x)
{
	for (int i = 0; i < 800; i++) {
		kymo_span_begin(doc, save, kymo_i32(doc, below(1000000)));
		kymo_span_begin(acl, check);
		spin(about(chance(.04) ? 900 : 20));
		kymo_span_end(acl, check);
		pthread_mutex_lock(&m);
		spin(60);
		pthread_mutex_unlock(&m);
		kymo_span_begin(db, query);
		spin(about(250));
		kymo_span_end(db, query);
		kymo_span_end(doc, save);
		snooze(900);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
