/* span: api:get expect: mutex .*conf:save spans: conf:save */
#include "clock.h"
static pthread_mutex_t conf = PTHREAD_MUTEX_INITIALIZER;
static int done;
static void *saver(void *x)
{
	char path[] = "/tmp/confXXXXXX";
	int fd = mkstemp(path);
	prctl(PR_SET_NAME, "conf-saver");
	while (!__atomic_load_n(&done, 0)) {
		usleep(30000);
		pthread_mutex_lock(&conf);
		kymo_span_begin(conf, save);
		for (int i = 0; i < 4; i++) {
			if (pwrite(fd, path, sizeof(path), i * 8192) < 0)
				break;
			usleep(700);
		}
		kymo_span_end(conf, save);
		pthread_mutex_unlock(&conf);
	}
	close(fd);
	unlink(path);
	return x;
}
static void *client(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(api, get, kymo_i32(id, pick(1000)));
		busy(50);
		pthread_mutex_lock(&conf);
		busy(5);
		pthread_mutex_unlock(&conf);
		busy(50);
		kymo_span_end(api, get);
		usleep(400);
	}
	return x;
}
int main(void)
{
	pthread_t t[3], s;
	pthread_create(&s, 0, saver, 0);
	start(t, 3, client);
	finish(t, 3);
	__atomic_store_n(&done, 1, 0);
	pthread_join(s, 0);
}
