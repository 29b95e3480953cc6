/* SPDX-License-Identifier: MIT */
/*
 * Tests the owners of rings: in which order threads get slots, what they leave, and which owner
 * packets name.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "ring/slots.h"
#include "ring/test-fixture.h"

#define N_SLOTS 8

static void set_up(struct fixture *f, uint32_t n_slots, uint32_t pool, bool overwrite)
{
	setup(f, KY_SET_PER_THREAD, KY_CLOCK_MONOTONIC, n_slots, 4, 4096);
	f->set.geo.overwrite = overwrite;
	f->set.pool = pool;
	f->set.named = 1;
	f->set.n_prepared = pool;
	f->set.turn++;
}

static uint64_t word(struct fixture *f, uint32_t i)
{
	return ky_slot_word(&f->set.geo, f->set.base, i);
}

static struct ky_ring_ctl *ctl(struct fixture *f, uint32_t i)
{
	return ky_geometry_ctl(&f->set.geo, f->set.base, i);
}

/* Returns the slot that this thread owns; -1: none. */
static int own(struct fixture *f, uint64_t *known)
{
	for (uint32_t i = 0; i < f->set.geo.n_rings; i++)
		if (word(f, i) & KY_SLOT_OWNED && !(*known >> i & 1)) {
			*known |= (uint64_t)1 << i;
			return (int)i;
		}
	return -1;
}

struct member {
	struct fixture *f;
	pthread_t thread;
	pthread_barrier_t barrier; /* the thread has recorded; it may end */
	uint32_t n;
	char name[16];
	pid_t tid;
	int slot;
};

static void *live(void *arg)
{
	struct member *m = arg;

	m->tid = (pid_t)syscall(SYS_gettid);
	prctl(PR_SET_NAME, m->name);
	for (uint32_t i = 0; i < m->n; i++)
		emit(m->f, 0);
	pthread_barrier_wait(&m->barrier);
	pthread_barrier_wait(&m->barrier);
	ky_thread_leave();
	ky_thread_release(&m->f->set);
	return NULL;
}

/* Lets a thread record n events. Returns when it has, with the slot that was free before. */
static void come(struct fixture *f, struct member *m, uint32_t n, const char *name)
{
	uint64_t known = 0;

	while (own(f, &known) >= 0)
		;
	m->f = f;
	m->n = n;
	strcpy(m->name, name);
	assert_int_equal(pthread_barrier_init(&m->barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&m->thread, NULL, live, m), 0);
	pthread_barrier_wait(&m->barrier);
	m->slot = own(f, &known);
}

static void go(struct member *m)
{
	pthread_barrier_wait(&m->barrier);
	pthread_join(m->thread, NULL);
	pthread_barrier_destroy(&m->barrier);
}

static int come_and_go(struct fixture *f, uint32_t n, const char *name)
{
	struct member m;

	come(f, &m, n, name);
	go(&m);
	return m.slot;
}

/*
 * Unused slots of the pool come first, then the slot that was released first, then unprepared
 * slots.
 */
static void test_order(void **state)
{
	struct member m[N_SLOTS];
	struct fixture f;

	for (int overwrite = 0; overwrite < 2; overwrite++) {
		set_up(&f, N_SLOTS, 3, overwrite);
		for (int i = 0; i < 3; i++)
			assert_int_equal(come_and_go(&f, 1, "t"), i);
		assert_int_equal(ky_slots_claimed(&f.set.geo, f.set.base), 3);
		for (int i = 0; i < 3; i++)
			come(&f, &m[i], 1, "t");
		assert_true(m[0].slot == 0 && m[1].slot == 1 && m[2].slot == 2);
		go(&m[1]);
		go(&m[2]);
		go(&m[0]);
		assert_int_equal(come_and_go(&f, 1, "t"), 1);
		assert_int_equal(come_and_go(&f, 1, "t"), 2);
		assert_int_equal(come_and_go(&f, 1, "t"), 0);
		assert_int_equal(ky_slots_shared(f.set.base)->n_unprepared, 0);
		for (int i = 0; i < N_SLOTS; i++)
			come(&f, &m[i], 1, "t");
		assert_int_equal(m[3].slot, 3);
		assert_int_equal(ky_slots_shared(f.set.base)->n_unprepared, N_SLOTS - 3);
		assert_int_equal(f.set.n_owned, N_SLOTS);
		for (int i = 0; i < N_SLOTS; i++)
			go(&m[i]);
		assert_int_equal(f.set.n_owned, 0);
		assert_int_equal(lost(&f), 0);
		teardown(&f);
	}
}

/* A ring that nobody drains has room for as many owners as it has blocks; then another is taken. */
static void test_full_rings(void **state)
{
	struct fixture f;

	set_up(&f, N_SLOTS, 1, false);
	for (int i = 0; i < 4; i++)
		assert_int_equal(come_and_go(&f, 1, "t"), 0);
	assert_int_equal(come_and_go(&f, 1, "t"), 1);
	f.consumed[0] = 4096;
	assert_int_equal(come_and_go(&f, 1, "t"), 0);
	assert_int_equal(lost(&f), 0);
	teardown(&f);
}

static void test_exhausted(void **state)
{
	struct member m[N_SLOTS + 1];
	struct fixture f;

	set_up(&f, N_SLOTS, 2, false);
	for (int i = 0; i < N_SLOTS; i++)
		come(&f, &m[i], 1, "t");
	come(&f, &m[N_SLOTS], 5, "late");
	assert_int_equal(m[N_SLOTS].slot, -1);
	assert_int_equal(ctl(&f, 0)->lost[KY_LOST_NO_SLOT], 5);
	assert_int_equal(lost(&f), 5);
	go(&m[3]);
	assert_int_equal(come_and_go(&f, 1, "t"), 3);
	for (int i = 0; i <= N_SLOTS; i++)
		if (i != 3)
			go(&m[i]);
	teardown(&f);
}

static const struct ky_block_entry *entry_of_ring(struct fixture *f, uint32_t ring, uint64_t pos)
{
	return ky_geometry_entry(&f->set.geo, f->set.base, ring, pos);
}

/* Each block names its owner; a new owner begins a new block, but does not waste an empty one. */
static void test_owners(void **state)
{
	struct member m[3];
	struct fixture f;

	set_up(&f, N_SLOTS, 1, true);
	come(&f, &m[0], 300, "first"); /* more than a block */
	go(&m[0]);
	come(&f, &m[1], 1, "second");
	go(&m[1]);
	assert_string_equal(entry_of_ring(&f, 0, 0)->owner.name, "first");
	assert_string_equal(entry_of_ring(&f, 0, 4096)->owner.name, "first");
	assert_string_equal(entry_of_ring(&f, 0, 2 * 4096)->owner.name, "second");
	assert_int_equal(entry_of_ring(&f, 0, 0)->owner.tid, m[0].tid);
	assert_int_equal(entry_of_ring(&f, 0, 2 * 4096)->owner.tid, m[1].tid);
	assert_int_equal(entry_of_ring(&f, 0, 2 * 4096)->owner.pid, getpid());
	assert_int_equal(entry_of_ring(&f, 0, 2 * 4096)->begin_count, 300);
	/* As if the owner was killed when it had claimed the slot: the block is empty. */
	ctl(&f, 0)->head = ky_head(3 * 4096, 301);
	ctl(&f, 0)->reserve = 3 * 4096 + 77;
	come(&f, &m[2], 1, "third");
	go(&m[2]);
	assert_string_equal(entry_of_ring(&f, 0, 3 * 4096)->owner.name, "third");
	assert_int_equal((uint32_t)ctl(&f, 0)->head / 4096, 3);
	teardown(&f);
}

/* All slots of a process that exited are freed, none of others. */
static void test_process_dies(void **state)
{
	uint32_t dead, n;
	struct fixture f;

	set_up(&f, N_SLOTS, 4, false);
	emit(&f, 0);
	dead = ky_thread_process();
	ky_thread_set_process();
	emit(&f, 0);
	assert_true(word(&f, 0) >> 32 == dead && word(&f, 1) >> 32 == ky_thread_process());
	/* killed during the claim */
	*ky_geometry_slot(&f.set.geo, f.set.base, 0) |= KY_SLOT_CLAIMING;
	n = ky_slots_release_process(&f.set.geo, f.set.base, dead);
	assert_int_equal(n, 1);
	assert_false(word(&f, 0) & KY_SLOT_OWNED);
	assert_true(word(&f, 1) & KY_SLOT_OWNED);
	assert_int_equal(ky_slots_release_process(&f.set.geo, f.set.base, dead), 0);
	ky_thread_release(&f.set);
	teardown(&f);
}

/* A hint that others have overwritten does not mislead a reader that looks for claimed slots. */
static void test_hostile_hint(void **state)
{
	struct fixture f;

	set_up(&f, N_SLOTS, 2, false);
	ky_slots_shared(f.set.base)->n_claimed = UINT64_MAX;
	assert_int_equal(ky_slots_claimed(&f.set.geo, f.set.base), N_SLOTS);
	assert_int_equal(come_and_go(&f, 3, "t"), -1);
	assert_int_equal(lost(&f), 3);
	teardown(&f);
}

/* Returns the address of a slot's words in its part. */
static uint64_t *word_of(struct fixture *f, const struct ky_ring_part *p, uint32_t slot, int array)
{
	switch (array) {
	case 0:
		return &ky_geometry_ctl(&f->set.geo, p->ctl, slot)->head;
	case 1:
		return &ky_geometry_entry(&f->set.geo, p->table, slot, 0)->used;
	case 2:
		return ky_geometry_oldest(&f->set.geo, p->oldest, slot);
	default:
		return (uint64_t *)ky_geometry_data(&f->set.geo, p->data, slot);
	}
}

/* A part that a thread maps is the same memory as the part that the listener maps. */
static void test_parts(void **state)
{
	const uint32_t slots[] = {0, 15, 16, 31, 32, 63, 64, 99};
	struct ky_ring_parts by_file = {0}, by_thread = {0};
	struct ky_geometry *g;
	struct fixture f;
	int fd = memfd_create("parts", MFD_CLOEXEC);

	set_up(&f, 100, 3, false);
	g = &f.set.geo;
	assert_int_equal(ftruncate(fd, (off_t)g->total_size), 0);
	assert_null(ky_parts_extend(&by_thread, g, 0, -1));
	assert_non_null(ky_parts_extend(&by_thread, g, 0, fd));
	assert_null(ky_parts_find(&by_thread, 16));
	for (uint32_t i = 0; i < KY_ARRAY_SIZE(slots); i++) {
		const struct ky_ring_part *a = ky_parts_extend(&by_file, g, slots[i], fd);
		const struct ky_ring_part *b = ky_parts_extend(&by_thread, g, slots[i], -1);

		assert_true(a && b && b == ky_parts_find(&by_thread, slots[i]));
		for (int array = 0; array < 4; array++) {
			*word_of(&f, a, slots[i], array) = 10 * slots[i] + (uint32_t)array;
			assert_int_equal(
				*word_of(&f, b, slots[i], array), 10 * slots[i] + (uint32_t)array);
		}
	}
	ky_parts_unmap(&by_file, g);
	ky_parts_unmap(&by_thread, g);
	assert_null(ky_parts_find(&by_thread, 0));
	close(fd);
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_full_rings),
		cmocka_unit_test(test_exhausted),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_process_dies),
		cmocka_unit_test(test_hostile_hint),
		cmocka_unit_test(test_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
