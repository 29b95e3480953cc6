/* span: ring:put expect: consumer:gc */
#include "clock.h"
struct ring {
	int head, tail;
};
int main(void)
{
	struct ring *r = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t p = fork();
	if (!p) {
		prctl(PR_SET_NAME, "consumer");
		for (int i = 1; i <= 1500; i++) {
			while (__atomic_load_n(&r->head, __ATOMIC_ACQUIRE) == r->tail)
				usleep(30);
			if (i % 120 == 0) {
				kymo_span_begin(consumer, gc);
				usleep(7000);
				kymo_span_end(consumer, gc);
			}
			__atomic_store_n(&r->tail, r->tail + 1, __ATOMIC_RELEASE);
		}
		_exit(0);
	}
	for (int i = 0; i < 1500; i++) {
		kymo_span_begin(ring, put, kymo_i32(len, pick(300)));
		busy(15);
		while (r->head - __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) >= 4)
			usleep(30);
		__atomic_store_n(&r->head, r->head + 1, __ATOMIC_RELEASE);
		kymo_span_end(ring, put);
		usleep(250);
	}
	waitpid(p, 0, 0);
}
