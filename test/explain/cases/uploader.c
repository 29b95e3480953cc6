/* span: pic:store expect: s3:upload */
#include "clock.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int done;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	if (!k) {
		prctl(PR_SET_NAME, "uploader");
		while (!__atomic_load_n(&done, 0)) {
			usleep(45000);
			pthread_mutex_lock(&m);
			kymo_span_begin(s3, upload);
			for (int i = 0; i < 5; i++)
				usleep(900);
			kymo_span_end(s3, upload);
			pthread_mutex_unlock(&m);
		}
		return x;
	}
	for (int i = 0; i < 450; i++) {
		kymo_span_begin(pic, store, kymo_i32(kb, pick(700)));
		busy(35);
		pthread_mutex_lock(&m);
		busy(6);
		pthread_mutex_unlock(&m);
		kymo_span_end(pic, store);
		usleep(500);
	}
	__atomic_store_n(&done, 1, 0);
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 4, work);
	finish(t, 4);
}
