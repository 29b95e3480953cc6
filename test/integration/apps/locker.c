/* SPDX-License-Identifier: MIT */
/* A thread holds a mutex for long, outside any span, whenever another one is about to lock it. */
#include <kymo/span.h>
#include <pthread.h>
#include <unistd.h>

#define N_CHECKOUTS 240
#define EACH	    20
#define HOLD_US	    30000

pthread_mutex_t ledger_lock = PTHREAD_MUTEX_INITIALIZER;
static int asked, taken;

__attribute__((noinline)) void audit_ledger(int round)
{
	pthread_mutex_lock(&ledger_lock);
	__atomic_store_n(&taken, round, __ATOMIC_RELEASE);
	usleep(HOLD_US);
	pthread_mutex_unlock(&ledger_lock);
}

static void *audit(void *unused)
{
	for (int round = 1; round <= N_CHECKOUTS / EACH; round++) {
		while (__atomic_load_n(&asked, __ATOMIC_ACQUIRE) < round)
			usleep(100);
		audit_ledger(round);
	}
	return unused;
}

static void check_out(int i)
{
	kymo_span_begin(shop, checkout, kymo_i32(order, i));
	pthread_mutex_lock(&ledger_lock);
	pthread_mutex_unlock(&ledger_lock);
	kymo_span_end(shop, checkout);
}

int main(void)
{
	pthread_t auditor;

	if (pthread_create(&auditor, NULL, audit, NULL))
		return 1;
	for (int i = 1; i <= N_CHECKOUTS; i++) {
		if (i % EACH == 0) {
			__atomic_store_n(&asked, i / EACH, __ATOMIC_RELEASE);
			while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) < i / EACH)
				usleep(100);
		}
		check_out(i);
	}
	return pthread_join(auditor, NULL);
}
