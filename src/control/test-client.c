/* SPDX-License-Identifier: MIT */
/* Tests the client against a server that sends the answer of the test, in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <kymo/ctl.h>

#include "base/util.h"

struct server {
	char dir[32];
	char path[64];
	const char *const *pieces; /* sent one by one after the first request line; then the end */
	enum {
		LEAVES,
		STAYS,	       /* keeps the connection open until the client has disconnected */
		READS_NOTHING, /* sends the pieces at once */
	} manner;
	int listen_fd;
	char request[256];
	pthread_t thread;
};

static void *serve_one_client(void *arg)
{
	struct server *s = arg;
	_cleanup_close_ int fd = accept(s->listen_fd, NULL, NULL);
	char rest[64];
	size_t n = 0;

	while (s->manner != READS_NOTHING && n < sizeof(s->request) - 1 &&
		read(fd, s->request + n, 1) == 1 && s->request[n] != '\n')
		n++;
	s->request[n] = '\0';
	for (const char *const *p = s->pieces; p && *p; p++)
		send(fd, *p, strlen(*p), MSG_NOSIGNAL);
	while (s->manner == STAYS && read(fd, rest, sizeof(rest)) > 0)
		;
	return NULL;
}

static void start_server(struct server *s, const char *const *pieces, int manner)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	*s = (struct server){.dir = "/tmp/kymo-test-XXXXXX", .pieces = pieces, .manner = manner};
	assert_non_null(mkdtemp(s->dir));
	snprintf(s->path, sizeof(s->path), "%s/control.sock", s->dir);
	strcpy(addr.sun_path, s->path);
	s->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->listen_fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(s->listen_fd, 1), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, serve_one_client, s), 0);
}

static void end_server(struct server *s)
{
	pthread_join(s->thread, NULL);
	close(s->listen_fd);
	unlink(s->path);
	rmdir(s->dir);
}

/* Makes one call. Returns its result, and on success the reply. */
static int call_once(struct server *s, const struct kymo_value *params, struct kymo_value **reply)
{
	struct kymo_ctl *ctl = NULL;
	int r;

	assert_int_equal(kymo_ctl_open(s->dir, &ctl), 0);
	assert_string_equal(kymo_ctl_rundir(ctl), s->dir);
	kymo_ctl_set_timeout(ctl, s->manner == STAYS ? 50 : 10000);
	r = kymo_ctl_call(ctl, "hello", params, reply);
	/* after an error the connection is unusable, and reports it */
	if (r < 0)
		assert_int_equal(kymo_ctl_call(ctl, "hello", NULL, reply), -EPIPE);
	kymo_ctl_close(ctl);
	end_server(s);
	return r;
}

static void test_call(void **state)
{
	static const char *const pieces[] = {
		"{\"ok\": tr", "ue, \"n\": 18446744073709551615", "}\n", NULL};
	struct kymo_value *params = kymo_value_new(), *reply = NULL;
	struct server s;

	kymo_value_set_string(params, "session", "a \"b\"\n");
	kymo_value_add_string(params, "patterns", "x");
	kymo_value_add_string(params, "patterns", "y");
	kymo_value_set_u64(params, "size", 7);
	kymo_value_set_bool(params, "all", 1);
	start_server(&s, pieces, LEAVES);
	assert_int_equal(call_once(&s, params, &reply), 0);
	assert_string_equal(s.request,
		"{\"command\":\"hello\",\"session\":\"a \\\"b\\\"\\n\",\"patterns\":[\"x\",\"y\"],"
		"\"size\":7,\"all\":true}");
	assert_true(kymo_reply_ok(reply));
	assert_true(kymo_value_u64(kymo_value_get(reply, "n")) == UINT64_MAX);
	kymo_value_free(reply);
	kymo_value_free(params);
}

static void test_refusal(void **state)
{
	static const char *const pieces[] = {
		"{\"ok\":false,\"code\":\"busy\",\"error\":\"later\"}\nmore", NULL};
	struct kymo_value *reply = NULL;
	struct server s;

	start_server(&s, pieces, LEAVES);
	assert_int_equal(call_once(&s, NULL, &reply), 0);
	assert_false(kymo_reply_ok(reply));
	assert_string_equal(kymo_reply_code(reply), "busy");
	assert_string_equal(kymo_reply_error(reply), "later");
	kymo_value_free(reply);
}

/* A daemon that has no room for the client says so, and closes the connection. */
static void test_refusal_of_client(void **state)
{
	static const char *const pieces[] = {"{\"ok\":false,\"code\":\"busy\"}\n", NULL};
	struct kymo_value *reply = NULL;
	struct kymo_ctl *ctl = NULL;
	struct server s;

	start_server(&s, pieces, READS_NOTHING);
	assert_int_equal(kymo_ctl_open(s.dir, &ctl), 0);
	end_server(&s);
	assert_int_equal(kymo_ctl_call(ctl, "hello", NULL, &reply), 0);
	assert_string_equal(kymo_reply_code(reply), "busy");
	kymo_value_free(reply);
	kymo_ctl_close(ctl);
}

static void fails(const char *const *pieces, int manner, int error)
{
	struct kymo_value *reply = NULL;
	struct server s;

	start_server(&s, pieces, manner);
	assert_int_equal(call_once(&s, NULL, &reply), error);
	assert_null(reply);
}

static void test_bad_replies(void **state)
{
	static const char *const garbage[] = {"no json\n", NULL}, *const list[] = {"[1]\n", NULL},
				 *const empty[] = {"\n", NULL},
				 *const cut[] = {"{\"ok\":true", NULL};

	fails(garbage, LEAVES, -EPROTO);
	fails(list, LEAVES, -EPROTO);
	fails(empty, LEAVES, -EPROTO);
	fails(cut, LEAVES, -EPIPE);
	fails(NULL, LEAVES, -EPIPE);
	fails(cut, STAYS, -ETIMEDOUT);
}

static void test_too_long(void **state)
{
	size_t len = 2u << 20;
	char *text = calloc(1, len + 1);
	struct kymo_value *params = kymo_value_new(), *reply = NULL;
	struct server s;

	memset(text, 'x', len);
	kymo_value_set_string(params, "session", text);
	start_server(&s, NULL, STAYS);
	assert_int_equal(call_once(&s, params, &reply), -EMSGSIZE);
	kymo_value_free(params);
	free(text);
}

/* A reply beyond the limit makes the connection unusable, but not the next one. */
static void test_reopen(void **state)
{
	static const char *const good[] = {"{\"ok\":true}\n", NULL};
	static const char *endless[66];
	char *part = calloc(1, (1u << 20) + 1);
	struct kymo_value *reply = NULL;
	struct kymo_ctl *ctl = NULL;
	struct server s;

	memset(part, 'x', 1u << 20);
	for (size_t i = 0; i < KY_ARRAY_SIZE(endless) - 1; i++)
		endless[i] = part;
	start_server(&s, endless, LEAVES);
	assert_int_equal(kymo_ctl_open(s.dir, &ctl), 0);
	assert_int_equal(kymo_ctl_call(ctl, "hello", NULL, &reply), -EMSGSIZE);
	pthread_join(s.thread, NULL);
	s.pieces = good;
	assert_int_equal(pthread_create(&s.thread, NULL, serve_one_client, &s), 0);
	assert_int_equal(kymo_ctl_reopen(ctl), 0);
	assert_int_equal(kymo_ctl_call(ctl, "hello", NULL, &reply), 0);
	assert_true(kymo_reply_ok(reply));
	kymo_value_free(reply);
	kymo_ctl_close(ctl);
	end_server(&s);
	free(part);
}

static void test_no_daemon(void **state)
{
	struct kymo_ctl *ctl = NULL;
	char path[200] = "/";

	memset(path + 1, 'x', 150);
	assert_int_equal(kymo_ctl_open("/nonexistent", &ctl), -ENOENT);
	assert_int_equal(kymo_ctl_open(path, &ctl), -ENAMETOOLONG);
	assert_null(ctl);
	kymo_ctl_close(NULL);
}

static void test_values(void **state)
{
	struct kymo_value *v = kymo_value_new(), *inner = kymo_value_new();
	const struct kymo_value *list;

	assert_int_equal(kymo_value_set_string(inner, "name", "i"), 0);
	assert_int_equal(kymo_value_add(v, "list", inner), 0);
	assert_int_equal(kymo_value_set(v, "one", inner), 0);
	assert_int_equal(kymo_value_set_list(v, "none"), 0);
	kymo_value_free(inner);
	list = kymo_value_get(v, "list");
	assert_int_equal(kymo_value_count(list), 1);
	assert_string_equal(kymo_value_string(kymo_value_get(kymo_value_at(list, 0), "name")), "i");
	assert_null(kymo_value_at(list, 1));
	assert_int_equal(kymo_value_count(kymo_value_get(v, "none")), 0);
	assert_int_equal(kymo_value_add_string(v, "one", "x"), -EINVAL);
	assert_string_equal(kymo_value_json(kymo_value_get(v, "one")), "{ \"name\": \"i\" }");
	/* a missing member, or one of another type, reads as empty */
	assert_null(kymo_value_get(list, "name"));
	assert_null(kymo_value_get(NULL, "name"));
	assert_string_equal(kymo_value_string(list), "");
	assert_true(
		kymo_value_u64(list) == 0 && kymo_value_i64(NULL) == 0 && !kymo_value_bool(list));
	assert_int_equal(kymo_value_count(NULL), 0);
	kymo_value_free(v);
	kymo_value_free(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call),
		cmocka_unit_test(test_refusal),
		cmocka_unit_test(test_refusal_of_client),
		cmocka_unit_test(test_bad_replies),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_reopen),
		cmocka_unit_test(test_no_daemon),
		cmocka_unit_test(test_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
