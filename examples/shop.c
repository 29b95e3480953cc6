/* SPDX-License-Identifier: MIT */
/*
 * A small shop, instrumented: customers (threads) fill carts and order, a counter takes the
 * payment, stock runs low and is filled up. Only the kymo_event statements deal with tracing.
 *
 *	cc -o shop shop.c $(pkg-config --cflags --libs kymo) -pthread
 *	kymo record -- ./shop
 *
 *	shop [CUSTOMERS [ORDERS-EACH]]
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <kymo/tracepoint.h>

#define MAX_CUSTOMERS 64
#define MAX_ITEMS     6
#define N_GOODS	      5
#define FULL_STOCK    40

enum payment { CARD, CASH, VOUCHER };

KYMO_ENUM(
	payment, KYMO_VALUE("CARD", CARD), KYMO_VALUE("CASH", CASH), KYMO_VALUE("VOUCHER", VOUCHER))

static const char *const goods[N_GOODS] = {"tea", "bread", "honey", "apples", "candles"};
static const double prices[N_GOODS] = {4.50, 3.20, 7.90, 2.75, 12.00};
static const char *const names[] = {
	"Ada", "Grace", "Edsger", "Barbara", "Dennis", "Jørgen", "Yukihiro", "Zoë"};

struct order {
	uint64_t id;
	const char *customer;
	uint32_t items[MAX_ITEMS];
	size_t n_items;
	double total;
};

static pthread_mutex_t counter = PTHREAD_MUTEX_INITIALIZER; /* protects all data below */
static int stock[N_GOODS] = {FULL_STOCK, FULL_STOCK, FULL_STOCK, FULL_STOCK, FULL_STOCK};
static uint64_t n_orders;
static double takings;

static unsigned int orders_each = 100;

static uint32_t elapsed_us(const struct timespec *since)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint32_t)((now.tv_sec - since->tv_sec) * 1000000 +
			  (now.tv_nsec - since->tv_nsec) / 1000);
}

static void fill_cart(struct order *order, unsigned int *seed)
{
	order->n_items = (size_t)rand_r(seed) % (MAX_ITEMS + 1);
	order->total = 0;
	for (size_t i = 0; i < order->n_items; i++) {
		order->items[i] = (uint32_t)rand_r(seed) % N_GOODS;
		order->total += prices[order->items[i]];
	}
}

static void take_from_stock(uint32_t item)
{
	if (--stock[item] > FULL_STOCK / 10)
		return;
	kymo_event_level(shop, stock_low, KYMO_NOTICE, kymo_string(item, goods[item]),
		kymo_i32(left, stock[item]));
	stock[item] = FULL_STOCK;
}

static void pay(struct order *order, enum payment payment)
{
	pthread_mutex_lock(&counter);
	order->id = ++n_orders;
	takings += order->total;
	for (size_t i = 0; i < order->n_items; i++)
		take_from_stock(order->items[i]);
	pthread_mutex_unlock(&counter);
	kymo_event(shop, order_paid, kymo_u64(order_id, order->id),
		kymo_enum(payment, payment, (int)payment), kymo_f64(total, order->total));
}

static void buy(const char *customer, unsigned int *seed)
{
	struct order order = {.customer = customer};
	struct timespec begin;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	fill_cart(&order, seed);
	if (!order.n_items) {
		kymo_event_level(shop, cart_empty, KYMO_WARNING, kymo_string(customer, customer));
		return;
	}
	kymo_event(shop, cart_filled, kymo_string(customer, customer),
		kymo_seq_u32(items, order.items, order.n_items), kymo_f64(total, order.total));
	pay(&order, (enum payment)(rand_r(seed) % 3));
	kymo_event(shop, order_placed, kymo_u64(order_id, order.id),
		kymo_string(customer, customer), kymo_f64(total, order.total),
		kymo_u32(latency_us, elapsed_us(&begin)));
}

static void *visit(void *arg)
{
	unsigned int number = (unsigned int)(uintptr_t)arg, seed = number + 1;
	const char *customer = names[number % (sizeof(names) / sizeof(names[0]))];

	for (unsigned int i = 0; i < orders_each; i++)
		buy(customer, &seed);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 1 ? (unsigned int)atoi(argv[1]) : 4;
	pthread_t customers[MAX_CUSTOMERS];

	if (argc > 2)
		orders_each = (unsigned int)atoi(argv[2]);
	if (n < 1 || n > MAX_CUSTOMERS) {
		fprintf(stderr, "usage: shop [CUSTOMERS (1 to %d) [ORDERS-EACH]]\n", MAX_CUSTOMERS);
		return 2;
	}
	kymo_event_level(shop, opened, KYMO_INFO, kymo_u32(customers, n));
	for (unsigned int i = 0; i < n; i++) {
		if (pthread_create(&customers[i], NULL, visit, (void *)(uintptr_t)i)) {
			perror("shop: cannot start a thread");
			return 1;
		}
	}
	for (unsigned int i = 0; i < n; i++)
		pthread_join(customers[i], NULL);
	kymo_event_level(
		shop, closed, KYMO_INFO, kymo_u64(orders, n_orders), kymo_f64(takings, takings));
	printf("%llu orders, %.2f taken\n", (unsigned long long)n_orders, takings);
	return 0;
}
