/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reader/losses.h"

static const struct ky_trace_clock clock_ns = {.name = "ns", .freq = 1000000000};
/* Counters of 8 bits: they wrap soon. */
static const struct ky_stream_class class = {
	.clock = &clock_ns, .discarded_bits = 8, .seq_bits = 8};

static void add_packet(struct ky_losses *l, uint64_t begin, uint64_t discarded, uint64_t seq)
{
	struct ky_decoder d = {.have = 1u << KY_ROLE_TIMESTAMP_BEGIN | 1u << KY_ROLE_TIMESTAMP_END |
				       1u << KY_ROLE_DISCARDED | 1u << KY_ROLE_PACKET_SEQ};

	d.role[KY_ROLE_TIMESTAMP_BEGIN] = begin;
	d.role[KY_ROLE_TIMESTAMP_END] = begin + 5;
	d.role[KY_ROLE_DISCARDED] = discarded;
	d.role[KY_ROLE_PACKET_SEQ] = seq;
	ky_losses_add_packet(l, &class, &d, true);
}

static void test_counters(void **state)
{
	struct ky_losses l = {0};

	(void)state;
	add_packet(&l, 100, 250, 254);
	assert_int_equal(l.n_discarded, 250); /* the first count is no difference */
	assert_int_equal(l.n_packets_lost, 0);
	add_packet(&l, 200, 4, 1); /* both wrap */
	assert_int_equal(l.n_discarded, 260);
	assert_int_equal(l.events.n, 10);
	assert_int_equal(l.events.begin_ns, 105);
	assert_int_equal(l.events.end_ns, 205);
	assert_int_equal(l.n_packets_lost, 2);
	assert_int_equal(l.packets.begin_ns, 105);
	assert_int_equal(l.packets.end_ns, 200);
	add_packet(&l, 300, 2, 1); /* both go back */
	add_packet(&l, 400, 4, 2);
	assert_int_equal(l.n_discarded, 260);
	assert_int_equal(l.n_packets_lost, 2);
	assert_false(ky_losses_any(&l));
	add_packet(&l, 500, 5, 3);
	assert_int_equal(l.n_discarded, 261);
}

static void test_order(void **state)
{
	static const enum ky_item_kind kinds[] = {
		KY_ITEM_DAMAGED, KY_ITEM_LOST_EVENTS, KY_ITEM_LOST_PACKETS};
	struct ky_losses l = {0};

	(void)state;
	add_packet(&l, 100, 0, 1);
	ky_losses_begin_damage(&l, 107);
	ky_losses_begin_damage(&l, 109); /* the first one lasts */
	assert_false(ky_losses_any(&l));
	add_packet(&l, 200, 3, 5);
	for (size_t i = 0; i < 3; i++) {
		assert_true(ky_losses_any(&l));
		assert_int_equal(ky_losses_next(&l), kinds[i]);
		assert_int_equal(ky_losses_of(&l, kinds[i])->n, i == 0 ? 1 : 3);
		ky_losses_of(&l, kinds[i])->n = 0;
	}
	assert_int_equal(l.damage.begin_ns, 107);
	assert_int_equal(l.damage.end_ns, 200);
	assert_int_equal(ky_losses_next(&l), KY_ITEM_NONE);
	ky_losses_end_damage(&l, 300);
	assert_false(ky_losses_any(&l));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
