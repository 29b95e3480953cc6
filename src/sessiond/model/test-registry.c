/* SPDX-License-Identifier: MIT */
/*
 * Identifiers, signatures and metadata, on a session that has neither a process nor a socket.
 */
#include "proto/app.h"
#include "sessiond/model/contents.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <cmocka.h>

struct fixture {
	struct env env;
	struct session s;
	struct channel *c;
	struct user *user;
};

static struct kymo_field order_fields[] = {{KYMO_FIELD_UINT, 0, 8, 0, 0, "id", NULL}, {0}};
static struct kymo_field other_fields[] = {{KYMO_FIELD_UINT, 0, 4, 0, 0, "id", NULL}, {0}};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	const struct session_spec spec = {.name = "s", .output = "", .shm_path = ""};

	env_init(&f->env);
	f->env.n_cpus = 2;
	f->env.clock = KY_CLOCK_MONOTONIC;
	assert_int_equal(session_init(&f->s, &f->env, &spec), 0);
	f->c = channel_new(&f->s, "c");
	channel_add(f->c);
	f->c->subbuf_size = 4096;
	f->c->num_subbuf = 2;
	f->user = user_get(&f->env.users, 1000);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	session_clear(&f->s);
	session_deinit(&f->s);
	user_unref(f->user);
	assert_true(ky_list_empty(&f->env.users.list));
	free(f);
	return 0;
}

static struct event_desc *intern_event(
	struct user *u, const char *name, struct kymo_field *fields, int level)
{
	struct kymo_event ev = {.size = sizeof(ev),
		.kind = KYMO_EVENT_PLAIN,
		.loglevel = (int16_t)level,
		.provider = "shop",
		.name = name,
		.fields = fields};
	uint8_t buf[512];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	struct event_desc *d = NULL;

	ky_desc_encode(&w, &ev);
	assert_int_equal(user_intern(u, (struct ky_bytes){buf, (uint32_t)w.len}, &d, NULL), 0);
	return d;
}

static void test_one_description_for_one_signature(void **state)
{
	struct fixture *f = *state;
	struct event_desc *a = intern_event(f->user, "order", order_fields, 13);
	struct event_desc *b = intern_event(f->user, "order", order_fields, 13);
	struct event_desc *c = intern_event(f->user, "order", other_fields, 13);
	struct event_desc *d = intern_event(f->user, "order", order_fields, 12);
	struct event_desc *bad = NULL;
	const char *why = NULL;

	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, c);
	assert_ptr_not_equal(a, d);
	assert_string_equal(a->name, "shop:order");
	assert_int_equal(user_intern(f->user, (struct ky_bytes){"abc", 3}, &bad, &why), -EBADMSG);
	assert_non_null(why);
	assert_int_equal(f->user->descs.n, 3);
	event_desc_unref(a);
	event_desc_unref(b);
	event_desc_unref(c);
	event_desc_unref(d);
	assert_int_equal(f->user->descs.n, 0);
}

/* Programs of one user cannot make the daemon keep more than that. */
static void test_bound_of_bytes(void **state)
{
	struct fixture *f = *state;
	struct event_desc *a = intern_event(f->user, "order", order_fields, 13), *d = NULL;
	struct ky_bytes bytes = event_desc_bytes(a);
	uint8_t copy[512];

	memcpy(copy, bytes.data, bytes.len);
	bytes.data = copy;
	f->user->n_bytes += USER_BYTES_MAX;			    /* more than any limit */
	assert_int_equal(user_intern(f->user, bytes, &d, NULL), 0); /* known already */
	event_desc_unref(d);
	event_desc_unref(a);
	assert_int_equal(user_intern(f->user, bytes, &d, NULL), -EDQUOT);
	f->user->n_bytes -= USER_BYTES_MAX;
	assert_int_equal(user_intern(f->user, bytes, &d, NULL), 0);
	event_desc_unref(d);
	assert_int_equal(f->user->n_bytes, 0);
}

/* However many users take as much as they can, there is something left for another one. */
static void test_bytes_of_all_users(void **state)
{
	struct fixture *f = *state;
	struct user *many[50];
	size_t sum = 0;

	f->env.users.own = 0;
	for (unsigned i = 0; i < KY_ARRAY_SIZE(many) - 1; i++) {
		many[i] = user_get(&f->env.users, 2000 + i);
		while (!user_charge(many[i], 4096))
			;
		sum += many[i]->n_bytes;
	}
	assert_true(sum > USERS_BYTES_MAX / 2 && sum < USERS_BYTES_MAX);
	many[49] = user_get(&f->env.users, 0);
	assert_int_equal(user_charge(many[49], USER_BYTES_MAX), 0); /* the daemon's own */
	user_discharge(many[0], 4096 * 1024);
	assert_int_equal(user_charge(many[40], 4096), 0);
	for (unsigned i = 0; i < KY_ARRAY_SIZE(many); i++) {
		user_discharge(many[i], many[i]->n_bytes);
		user_unref(many[i]);
	}
	assert_int_equal(f->env.users.n_bytes, 0);
}

static const struct definer me = {1, "me"};

static uint32_t register_event(struct ring_set *set, struct event_desc *d)
{
	struct set_event *e;

	assert_int_equal(ring_set_register(set, d, &me, &e), 0);
	assert_ptr_equal(ring_set_event(set, d), e);
	return e->id;
}

/* A predecessor numbered b, could not describe it, and gave the same identifier to c. */
static void test_undescribed_event(void **state)
{
	struct fixture *f = *state;
	struct event_desc *a = intern_event(f->user, "order", order_fields, 13);
	struct event_desc *b = intern_event(f->user, "cart", order_fields, 13);
	struct event_desc *c = intern_event(f->user, "cart", other_fields, 13);
	struct ring_set *set = ring_set_get(f->c, 1000, 64, KY_SET_PER_CPU, false);

	assert_int_equal(ring_set_make(set), 0);
	assert_int_equal(ring_set_restore(set, a, &me, 0, 0), 0);
	assert_int_equal(ring_set_restore(set, b, &me, 1, 0), 0);
	assert_int_equal(ring_set_restore(set, c, &me, 1, 0), 0);
	assert_int_equal(ring_set_event(set, a)->id, 0);
	assert_null(ring_set_event(set, b));
	assert_int_equal(ring_set_event(set, c)->id, 1);
	assert_null(ring_set_event(set, c)->rival);
	assert_int_equal(set->n_events, 2);
	event_desc_unref(a);
	event_desc_unref(b);
	event_desc_unref(c);
}

static void test_identifiers(void **state)
{
	struct fixture *f = *state;
	struct event_desc *a = intern_event(f->user, "order", order_fields, 13);
	struct event_desc *b = intern_event(f->user, "cart", order_fields, 13);
	struct ring_set *set = ring_set_get(f->c, 1000, 64, KY_SET_PER_CPU, false);

	assert_int_equal(ring_set_make(set), 0);
	assert_int_equal(register_event(set, a), 0);
	assert_int_equal(register_event(set, b), 1);
	assert_int_equal(register_event(set, a), 0);
	event_desc_unref(a);
	event_desc_unref(b);
}

/* The channel treats another definition of a name in the same way each time. */
static void test_conflict(void **state)
{
	struct fixture *f = *state;
	struct event_desc *a = intern_event(f->user, "order", order_fields, 13);
	struct event_desc *b = intern_event(f->user, "order", other_fields, 13);
	struct event_desc *c = intern_event(f->user, "order", order_fields, 12);
	struct rule *r = rule_new("shop:*", NULL, 0, KY_LEVEL_ALL, 0);
	struct ring_set *set;

	for (int separate = 0; separate < 2; separate++) {
		set = ring_set_get(f->c, 1000 + (uid_t)separate, 64, KY_SET_PER_CPU, false);
		f->c->separate_conflicts = separate;
		assert_int_equal(ring_set_make(set), 0);
		assert_int_equal(register_event(set, a), 0);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(register_event(set, b), separate ? 1 : KY_MAP_REFUSED);
			assert_int_equal(register_event(set, c), separate ? 2 : KY_MAP_REFUSED);
			assert_int_equal(register_event(set, a), 0);
		}
		assert_null(ring_set_event(set, a)->rival);
		assert_ptr_equal(ring_set_event(set, c)->rival, ring_set_event(set, a));
	}
	assert_int_equal(channel_count_matches(f->c, r, false), 1);
	rule_free(r);
	event_desc_unref(a);
	event_desc_unref(b);
	event_desc_unref(c);
}

/*
 * The metadata of one registry has a maximum. An event that would exceed it is refused, and leaves
 * no part of itself.
 */
static void test_bound_of_metadata(void **state)
{
	struct fixture *f = *state;
	struct event_desc *a = intern_event(f->user, "order", order_fields, 13);
	struct event_desc *b = intern_event(f->user, "cart", order_fields, 13);
	struct ring_set *set = ring_set_get(f->c, 1000, 64, KY_SET_PER_CPU, false);
	struct set_event *e;
	uint64_t size;

	assert_int_equal(ring_set_make(set), 0);
	size = set->registry->log_size;
	set->registry->log_size = METADATA_MAX - 1;
	assert_int_equal(ring_set_register(set, a, &me, &e), -EOVERFLOW);
	assert_int_equal(set->registry->log_size, METADATA_MAX - 1);
	set->registry->log_size = size;
	assert_int_equal(register_event(set, b), 0);
	event_desc_unref(a);
	event_desc_unref(b);
}

static unsigned n_streams, n_sets;

static void count_stream(const struct ring_set *kind)
{
	n_streams += kind->registry != NULL;
}

static void count_set(const struct ring_set *set)
{
	n_sets += set->described;
}

/*
 * A set whose stream cannot be described has no memory, and takes one number however often it is
 * tried: the journal has one line about it.
 */
static void test_undescribed_stream(void **state)
{
	struct observer count = {.stream_numbered = count_stream, .set_numbered = count_set};
	struct fixture *f = *state;
	struct ring_set *set = ring_set_get(f->c, 1000, 64, KY_SET_PER_CPU, false);
	struct registry *r;
	uint64_t size;
	int fd;

	ky_list_append(&f->env.observers, &count.node);
	assert_int_equal(registry_get(&f->s, 1000, 64, &r), 0);
	size = r->log_size;
	r->log_size = METADATA_MAX - 1;
	for (int i = 0; i < 3; i++)
		assert_int_equal(ring_set_make(set), -EOVERFLOW);
	assert_int_equal(n_streams, 0);
	r->log_size = size;
	fd = r->log_fd;
	r->log_fd = -1;
	for (int i = 0; i < 3; i++)
		assert_int_equal(ring_set_make(set), -EBADF);
	assert_int_equal(n_streams, 1);
	assert_int_equal(n_sets, 0);
	assert_int_equal(set->memory.rings_fd, -1);
	r->log_fd = fd;
	assert_int_equal(ring_set_make(set), 0);
	assert_int_equal(n_streams, 1);
	assert_int_equal(n_sets, 1);
	assert_int_equal(r->n_streams, 1);
	ky_list_remove(&count.node);
}

/* A successor of the daemon has to read all descriptions: however short, there are not too many. */
static void test_number_of_descriptions(void **state)
{
	struct fixture *f = *state;
	uint32_t n, n_all = 0;

	for (uid_t uid = 3000; uid < 3100; uid++) {
		struct ring_set *set = ring_set_get(f->c, uid, 64, KY_SET_PER_CPU, false);

		assert_int_equal(ring_set_make(set), 0);
		for (n = 0; registry_has_room(set->registry, 40); n++)
			registry_charge(set->registry, 40);
		assert_true(uid > 3000 || n >= USER_EVENTS_MAX);
		n_all += n;
	}
	assert_in_range(n_all, 2 * USER_EVENTS_MAX, 140000);
}

/* A user's descriptions leave room in the session for those of other users, and of the daemon's. */
static void test_shares_of_descriptions(void **state)
{
	struct fixture *f = *state;
	struct event_desc *a = intern_event(f->user, "order", order_fields, 13);
	struct ring_set *set = ring_set_get(f->c, 1000, 64, KY_SET_PER_CPU, false);
	struct ring_set *own = ring_set_get(f->c, f->env.uid, 64, KY_SET_PER_CPU, false), *other;
	struct set_event *e;

	assert_int_equal(ring_set_make(set), 0);
	assert_int_equal(ring_set_make(own), 0);
	for (uid_t uid = 2000; uid < 2010; uid++) {
		other = ring_set_get(f->c, uid, 64, KY_SET_PER_CPU, false);
		assert_int_equal(ring_set_make(other), 0);
		while (registry_has_room(other->registry, 1000))
			registry_charge(other->registry, 1000);
		assert_true(other->registry->n_desc_bytes > 10000);
	}
	assert_true(f->s.n_desc_bytes < SESSION_DESCRIPTIONS_MAX);
	assert_int_equal(ring_set_register(set, a, &me, &e), 0);
	registry_charge(other->registry, SESSION_DESCRIPTIONS_MAX - f->s.n_desc_bytes);
	assert_false(registry_has_room(set->registry, 1));
	assert_true(registry_has_room(own->registry, DESCRIPTIONS_MAX - DESCRIPTION_OVERHEAD));
	assert_false(registry_has_room(own->registry, DESCRIPTIONS_MAX));
	event_desc_unref(a);
}

static void test_a_set_for_each_key(void **state)
{
	struct fixture *f = *state;
	struct ring_set *set = ring_set_get(f->c, 1000, 64, KY_SET_PER_CPU, false);
	struct ring_set *thread = ring_set_get(f->c, 1000, 64, KY_SET_PER_THREAD, false);
	struct ring_set *user = ring_set_get(f->c, 1001, 64, KY_SET_PER_CPU, false);
	struct ring_set *narrow = ring_set_get(f->c, 1000, 32, KY_SET_PER_THREAD, false);

	assert_ptr_equal(set, ring_set_get(f->c, 1000, 64, KY_SET_PER_CPU, false));
	assert_int_equal(ring_set_make(set), 0);
	assert_int_equal(ring_set_make(thread), 0);
	assert_int_equal(ring_set_make(user), 0);
	assert_int_equal(ring_set_make(narrow), 0);
	assert_ptr_equal(set->registry, thread->registry);
	assert_ptr_not_equal(set->registry, user->registry);
	assert_ptr_not_equal(set->registry, narrow->registry);
	assert_int_equal(set->stream_id, 0);
	assert_int_equal(thread->stream_id, 1);
	assert_int_equal(user->stream_id, 0);
	assert_int_equal(set->geometry.n_rings, 2);
	assert_int_equal(thread->geometry.n_rings, 1024);
	assert_memory_not_equal(set->registry->uuid, user->registry->uuid, 16);
}

static void read_log(const struct registry *r, char *buf, size_t size)
{
	ssize_t n = pread(r->log_fd, buf, size - 1, 0);

	assert_true(n >= 0);
	buf[n] = '\0';
}

static void test_metadata_comes_first(void **state)
{
	struct fixture *f = *state;
	struct ring_set *set = ring_set_get(f->c, 1000, 64, KY_SET_PER_CPU, false);
	struct event_desc *a = intern_event(f->user, "order", order_fields, 13);
	char text[8192];

	assert_int_equal(ring_set_make(set), 0);
	read_log(set->registry, text, sizeof(text));
	assert_int_equal(strncmp(text, "/* CTF 1.8 */\n", 14), 0);
	assert_non_null(strstr(text, "stream {\n"));
	assert_null(strstr(text, "event {\n"));
	assert_int_equal(register_event(set, a), 0);
	assert_int_equal(register_event(set, a), 0);
	read_log(set->registry, text, sizeof(text));
	assert_non_null(strstr(text, "event {\n\tname = \"shop:order\";\n\tid = 0;\n"));
	assert_null(strstr(strstr(text, "event {\n") + 1, "event {\n"));
	event_desc_unref(a);
}

static void test_memory(void **state)
{
	struct fixture *f = *state;
	struct ring_set *set = ring_set_get(f->c, 1000, 64, KY_SET_PER_CPU, false);
	struct ky_set_header h;
	struct stat st;
	int ro;

	assert_int_equal(ring_set_make(set), 0);
	assert_int_equal(pread(set->memory.rings_fd, &h, sizeof(h), 0), sizeof(h));
	assert_int_equal(h.magic, KY_RING_MAGIC);
	assert_int_equal(h.total_size, set->geometry.total_size);
	assert_int_equal(fstat(set->memory.rings_fd, &st), 0);
	assert_int_equal(st.st_size, set->geometry.total_size);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(ftruncate(set->memory.rings_fd, 0), -1);
	ro = memory_open_read_only(set->memory.rings_fd);
	assert_int_equal(pread(ro, &h, sizeof(h), 0), sizeof(h));
	assert_int_equal(write(ro, "x", 1), -1);
	close(ro);
}

static void test_matches_are_counted_once(void **state)
{
	struct fixture *f = *state;
	struct event_desc *a = intern_event(f->user, "order", order_fields, 13);
	struct rule *r = rule_new("shop:*", NULL, 0, KY_LEVEL_ALL, 0);
	uint32_t modes[] = {KY_SET_PER_CPU, KY_SET_PER_THREAD};

	for (size_t i = 0; i < 2; i++) {
		struct ring_set *set = ring_set_get(f->c, 1000, 64, modes[i], false);

		assert_int_equal(ring_set_make(set), 0);
		assert_int_equal(register_event(set, a), 0);
	}
	assert_int_equal(channel_count_matches(f->c, r, false), 1);
	assert_int_equal(channel_count_matches(f->c, r, true), 0);
	ring_set_event(ring_set_get(f->c, 1000, 64, modes[1], false), a)->n_apps = 1;
	assert_int_equal(channel_count_matches(f->c, r, true), 1);
	rule_free(r);
	event_desc_unref(a);
}

/* The count of a rule's matches is kept, and is that of counting again, whatever changes. */
static void test_count_is_kept(void **state)
{
	struct fixture *f = *state;
	struct event_desc *a = intern_event(f->user, "order", order_fields, 13);
	struct event_desc *b = intern_event(f->user, "order", other_fields, 13);
	struct event_desc *c = intern_event(f->user, "cart", order_fields, 13);
	struct rule *r = rule_new("shop:*", NULL, 0, KY_LEVEL_ALL, 0);
	struct rule *rules[] = {r, NULL};
	struct ring_set *set = ring_set_get(f->c, 1000, 64, KY_SET_PER_CPU, false);
	struct ring_set *other = ring_set_get(f->c, 1000, 64, KY_SET_PER_THREAD, false);

	assert_int_equal(channel_enable_rules(f->c, rules), 0);
	assert_int_equal(ring_set_make(set), 0);
	assert_int_equal(ring_set_make(other), 0);
	assert_int_equal(channel_count_matches(f->c, r, false), 0);
	register_event(set, a);
	register_event(set, b); /* refused */
	register_event(other, a);
	assert_true(r->counted);
	assert_int_equal(channel_count_matches(f->c, r, false), 1);
	f->c->separate_conflicts = true;
	assert_int_equal(ring_set_renew(set), 0);
	register_event(other, c);
	assert_true(r->counted);
	assert_int_equal(channel_count_matches(f->c, r, false), 2);
	r->counted = false;
	assert_int_equal(channel_count_matches(f->c, r, false), 2);
	ring_set_free(other);
	assert_int_equal(channel_count_matches(f->c, r, false), 1);
	channel_disable_rule(f->c, r, true);
	event_desc_unref(a);
	event_desc_unref(b);
	event_desc_unref(c);
}

static unsigned n_conflicts;
static bool others_counted;

static void note_conflict(void *arg, const char *text)
{
	n_conflicts++;
	others_counted = strstr(text, ": 10 more events of applications of uid 1000 ");
}

/* Returns how many there were; the last one is about those that were left out. */
static unsigned count_conflicts(const struct session *s, enum conflicts which)
{
	n_conflicts = 0;
	others_counted = false;
	conflicts_report(s, which, note_conflict, NULL);
	assert_int_equal(others_counted, n_conflicts > CONFLICTS_MAX);
	return n_conflicts;
}

/* Programs that define everything in many ways do not make commands report all of it. */
static void test_conflicts_are_bounded(void **state)
{
	enum { MORE = 10 };
	struct fixture *f = *state;
	struct ring_set *set = ring_set_get(f->c, 1000, 64, KY_SET_PER_CPU, false);
	char name[16];

	assert_int_equal(ring_set_make(set), 0);
	for (unsigned i = 0; i < CONFLICTS_MAX + MORE; i++) {
		struct event_desc *a, *b;

		snprintf(name, sizeof(name), "order%u", i);
		a = intern_event(f->user, name, order_fields, 13);
		b = intern_event(f->user, name, other_fields, 13);
		register_event(set, a);
		assert_int_equal(register_event(set, b), KY_MAP_REFUSED);
		event_desc_unref(a);
		event_desc_unref(b);
	}
	assert_int_equal(count_conflicts(&f->s, CONFLICTS_REFUSED), CONFLICTS_MAX + 1);
	assert_int_equal(count_conflicts(&f->s, CONFLICTS_RECORDED), 0);
	f->c->separate_conflicts = true;
	assert_int_equal(ring_set_renew(set), 0);
	assert_int_equal(count_conflicts(&f->s, CONFLICTS_REFUSED), 0);
	assert_int_equal(count_conflicts(&f->s, CONFLICTS_RECORDED), CONFLICTS_MAX + 1);
}

/* Notices that one user's programs cause leave room for those of others. */
static void test_notices_of_users(void **state)
{
	struct fixture *f = *state;

	f->env.cause = 1000;
	for (unsigned i = 0; i < 2 * USER_NOTICES_MAX; i++)
		session_notice(&f->s, "notice %u", i);
	assert_int_equal(f->s.n_notices, USER_NOTICES_MAX);
	assert_int_equal(f->s.n_notices_lost, USER_NOTICES_MAX);
	f->env.cause = 1001;
	session_notice(&f->s, "another user's");
	assert_int_equal(f->s.n_notices, USER_NOTICES_MAX + 1);
}

static void test_possible_cpus(void **state)
{
	assert_true(possible_cpus() >= 1);
	assert_true(possible_cpus() >= (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_one_description_for_one_signature),
		TEST(test_bound_of_bytes),
		TEST(test_bytes_of_all_users),
		TEST(test_undescribed_event),
		TEST(test_identifiers),
		TEST(test_conflict),
		TEST(test_bound_of_metadata),
		TEST(test_undescribed_stream),
		TEST(test_shares_of_descriptions),
		TEST(test_number_of_descriptions),
		TEST(test_a_set_for_each_key),
		TEST(test_metadata_comes_first),
		TEST(test_memory),
		TEST(test_matches_are_counted_once),
		TEST(test_count_is_kept),
		TEST(test_conflicts_are_bounded),
		TEST(test_notices_of_users),
		cmocka_unit_test(test_possible_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
