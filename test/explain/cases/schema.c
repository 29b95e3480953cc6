/* span: orm:save expect: ddl:migrate|waits for mutex .*ddl */
#include "clock.h"
static pthread_mutex_t meta = PTHREAD_MUTEX_INITIALIZER;
static void *migrate(void *x)
{
	prctl(PR_SET_NAME, "migration");
	for (int i = 0; i < 8; i++) {
		usleep(70000);
		kymo_span_begin(ddl, migrate, kymo_i32(version, i));
		pthread_mutex_lock(&meta);
		usleep(6000);
		pthread_mutex_unlock(&meta);
		kymo_span_end(ddl, migrate);
	}
	return x;
}
static void *save(void *x)
{
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(orm, save, kymo_string(model, pick(2) ? "User" : "Post"));
		kymo_span_begin(orm, validate);
		busy(25);
		kymo_span_end(orm, validate);
		pthread_mutex_lock(&meta);
		pthread_mutex_unlock(&meta);
		kymo_span_begin(sql, insert);
		busy(60);
		kymo_span_end(sql, insert);
		kymo_span_end(orm, save);
		usleep(500);
	}
	return x;
}
int main(void)
{
	pthread_t t[3], g;
	pthread_create(&g, 0, migrate, 0);
	start(t, 3, save);
	finish(t, 3);
	pthread_join(g, 0);
}
