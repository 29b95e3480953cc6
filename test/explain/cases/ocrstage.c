/* span: doc:ingest expect: st:ocr */
#include "clock.h"
static int p[2];
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	int id;
	if (k == 0) {
		for (int i = 1; i <= 450; i++) {
			kymo_async_begin(doc, ingest, (uint64_t)i, kymo_i32(pages, 1 + pick(20)));
			if (write(p[1], &i, 4) < 0)
				break;
			usleep(900);
		}
		close(p[1]);
		return x;
	}
	while (read(p[0], &id, 4) == 4) {
		kymo_async_begin(st, fetch, (uint64_t)id);
		busy(60);
		kymo_async_end(st, fetch, (uint64_t)id);
		kymo_async_begin(st, ocr, (uint64_t)id);
		busy(80);
		if (!pick(20))
			usleep(3500);
		kymo_async_end(st, ocr, (uint64_t)id);
		kymo_async_begin(st, store, (uint64_t)id);
		busy(40);
		kymo_async_end(st, store, (uint64_t)id);
		kymo_async_end(doc, ingest, (uint64_t)id);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];
	if (pipe(p))
		return 1;
	start(t, 3, work);
	finish(t, 3);
}
