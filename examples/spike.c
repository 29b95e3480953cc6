/* SPDX-License-Identifier: MIT */
/*
 * A shop that is fast, and slow once in a while: while a thread counts the stock, it holds the lock
 * that each checkout needs. docs/guide/flight-recorder.md looks for the cause.
 *
 *	cc -O2 -o spike spike.c $(pkg-config --cflags --libs kymo) -pthread
 *	kymo record --with=pthread -- ./spike
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <kymo/span.h>

#define N_ORDERS    8000
#define PAUSE_US    150000 /* between two inventories */
#define COUNTING_US 60000
#define PAYING_US   100

static pthread_mutex_t stock = PTHREAD_MUTEX_INITIALIZER;

static void *count_stock(void *arg)
{
	for (;;) {
		usleep(PAUSE_US);
		pthread_mutex_lock(&stock);
		kymo_span(shop, inventory);
		usleep(COUNTING_US);
		pthread_mutex_unlock(&stock);
	}
	return arg;
}

static void checkout(uint64_t order_id)
{
	kymo_span(shop, checkout, kymo_u64(order_id, order_id));
	pthread_mutex_lock(&stock);
	usleep(PAYING_US);
	pthread_mutex_unlock(&stock);
}

int main(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, count_stock, NULL))
		return 1;
	puts("the shop is open");
	fflush(stdout);
	for (uint64_t id = 0; id < N_ORDERS; id++)
		checkout(id);
	return 0;
}
