/* span: bank:transfer expect: mutex .*audit:all spans: audit:all */
#include "clock.h"
#define N 12
static pthread_mutex_t acc[N];
static long money[N];
static int done;
static void *audit(void *x)
{
	prctl(PR_SET_NAME, "auditor");
	while (!__atomic_load_n(&done, 0)) {
		long sum = 0;
		usleep(60000);
		kymo_span_begin(audit, all);
		for (int i = 0; i < N; i++)
			pthread_mutex_lock(&acc[i]);
		for (int i = 0; i < N; i++)
			sum += money[i], usleep(150);
		for (int i = N; i--;)
			pthread_mutex_unlock(&acc[i]);
		kymo_span_end(audit, all, kymo_i64(sum, sum));
	}
	return x;
}
static void *teller(void *x)
{
	for (int i = 0; i < 450; i++) {
		int a = pick(N), b = pick(N - 1);
		b += b >= a;
		kymo_span_begin(bank, transfer, kymo_i32(from, a), kymo_i32(to, b));
		busy(40);
		pthread_mutex_lock(&acc[a < b ? a : b]);
		pthread_mutex_lock(&acc[a < b ? b : a]);
		money[a] -= 5, money[b] += 5;
		busy(12);
		pthread_mutex_unlock(&acc[b]);
		pthread_mutex_unlock(&acc[a]);
		kymo_span_end(bank, transfer);
		usleep(600);
	}
	return x;
}
int main(void)
{
	pthread_t t[3], s;
	for (int i = 0; i < N; i++)
		pthread_mutex_init(&acc[i], 0);
	pthread_create(&s, 0, audit, 0);
	start(t, 3, teller);
	finish(t, 3);
	__atomic_store_n(&done, 1, 0);
	pthread_join(s, 0);
}
