/* SPDX-License-Identifier: MIT */
/*
 * The fleet's servers: one, or a cluster of three of which each has a copy of all streams, so that
 * the fleet works while one of them is down. Servers know each other by an authority of their own:
 * no host can join the cluster.
 */
#include "fleet/setup.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"

#define START_MS   30000
#define AGREE_MS   60000
#define LOOK_MS	   10000
#define POLL_MS	   50
#define TRIES	   5 /* with other ports */
#define KEEP_DAYS  3
#define NS_PER_DAY ((int64_t)86400 * 1000000000)

/* An attempt may take seconds: their number is no limit. */
static uint64_t in_ms(unsigned ms)
{
	return ky_clock_ns(CLOCK_MONOTONIC) + ms * UINT64_C(1000000);
}

static void path_of(const struct setup *s, size_t i, char path[PATH_MAX], const char *name)
{
	snprintf(path, PATH_MAX, "%s/nodes/%zu%s%s", s->dir, i + 1, *name ? "/" : "", name);
}

/* --- configuration --- */

/*
 * A name may mean another address on its own machine, as in Debian's /etc/hosts: such a server
 * listens at all addresses. Nobody gets further without a certificate.
 */
static const char *listen_address(const struct setup *s, const struct node *n)
{
	struct in_addr a;
	const bool is_here = fleet_has(s->fleet, "local") ||
			     inet_pton(AF_INET, n->address, &a) == 1;

	return is_here ? n->address : "0.0.0.0";
}

static void put_cluster(const struct setup *s, size_t i, struct ky_buf *b)
{
	const char *comma = "";

	ky_buf_printf(b,
		"cluster {\n"
		"  name: \"kymo\"\n"
		"  listen: \"%s:%u\"\n"
		"  no_advertise: true\n"
		"  tls {\n"
		"    cert_file: \"route.crt\"\n"
		"    key_file: \"route.key\"\n"
		"    ca_file: \"route-ca.crt\"\n"
		"    verify: true\n"
		"    timeout: 20\n"
		"  }\n"
		"  routes: [",
		listen_address(s, &s->nodes[i]), s->nodes[i].route_port);
	for (size_t k = 0; k < s->n_nodes; k++) {
		if (k == i)
			continue;
		ky_buf_printf(
			b, "%s\"tls://%s:%u\"", comma, s->nodes[k].address, s->nodes[k].route_port);
		comma = ", ";
	}
	ky_buf_puts(b, "]\n}\n");
}

int servers_write(struct setup *s, size_t i)
{
	struct ky_buf b = {0};
	char name[64];
	int code;

	ky_buf_printf(&b,
		"# nats-server, for a fleet of Kymo's. Start it in this directory: nats-server -c server.conf\n"
		"listen: \"%s:%u\"\n"
		"server_name: \"kymo-%zu\"\n"
		"pid_file: \"server.pid\"\n"
		"max_payload: 1048576\n"
		"jetstream { store_dir: \"store\", max_file_store: %llu }\n"
		"tls {\n"
		"  cert_file: \"server.crt\"\n"
		"  key_file: \"server.key\"\n"
		"  ca_file: \"ca.crt\"\n"
		"  verify_and_map: true\n"
		"  timeout: 20\n"
		"}\n"
		"include \"users.conf\"\n",
		listen_address(s, &s->nodes[i]), s->nodes[i].port, i + 1,
		(unsigned long long)STORE_MAX);
	if (s->n_nodes > 1)
		put_cluster(s, i, &b);
	snprintf(name, sizeof(name), "nodes/%zu/server.conf", i + 1);
	code = setup_write(s, name, &b);
	ky_buf_deinit(&b);
	return code;
}

/* --- ports --- */

/* Returns a socket that holds a port of this address, or -errno. */
static int hold_port(const char *address, unsigned *ret_port)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t n = sizeof(a);
	int fd;

	if (!strcmp(address, "localhost"))
		address = "127.0.0.1";
	if (inet_pton(AF_INET, address, &a.sin_addr) != 1)
		return -EINVAL;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
		getsockname(fd, (struct sockaddr *)&a, &n) < 0) {
		const int error = errno;

		close(fd);
		return -error;
	}
	*ret_port = ntohs(a.sin_port);
	return fd;
}

/* They are different, because all are held until the last is chosen. */
int servers_choose_ports(struct setup *s)
{
	int held[2 * NODES_MAX], code = FLEET_OK;
	size_t n = 0;

	for (size_t i = 0; !code && i < s->n_nodes; i++) {
		struct node *node = &s->nodes[i];

		for (unsigned k = 0; !code && k < (s->n_nodes > 1 ? 2 : 1); k++) {
			held[n] = hold_port(node->address, k ? &node->route_port : &node->port);
			if (held[n] < 0)
				code = fleet_fail(s->fleet, "no port of '%s' can be chosen: %s",
					node->address, strerror(-held[n]));
			else
				n++;
		}
	}
	while (n)
		close(held[--n]);
	return code;
}

/* --- processes --- */

static bool link_ends(const char *link, const char *end)
{
	char path[PATH_MAX];
	const ssize_t n = readlink(link, path, sizeof(path) - 1);
	const size_t length = strlen(end);

	path[n > 0 ? n : 0] = '\0';
	return n >= (ssize_t)length && !strcmp(path + n - length, end);
}

/* One that has ended has no program, and another one with its number is elsewhere. */
pid_t servers_find(const struct setup *s, size_t i)
{
	char path[PATH_MAX], link[64];
	int pid = 0;
	FILE *f;

	path_of(s, i, path, "server.pid");
	f = fopen(path, "re");
	if (!f || fscanf(f, "%d", &pid) != 1)
		pid = 0;
	if (f)
		fclose(f);
	if (pid <= 0)
		return 0;
	path_of(s, i, path, "");
	snprintf(link, sizeof(link), "/proc/%d/cwd", pid);
	if (!link_ends(link, path))
		return 0;
	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	return link_ends(link, "/nats-server") ? pid : 0;
}

static int start_nats_server(struct setup *s, size_t i)
{
	const char *argv[] = {"nats-server", "-c", "server.conf", NULL};
	char where[64];
	int r;

	if (servers_find(s, i))
		return FLEET_OK;
	snprintf(where, sizeof(where), "nodes/%zu", i + 1);
	r = setup_spawn(s, argv, where, "server.log", &s->nodes[i].started);
	if (r == -ENOENT)
		return fleet_fail(s->fleet,
			"nats-server is missing (Debian package nats-server); %s has all else",
			s->dir);
	return r < 0 ? fleet_fail(s->fleet, "nats-server: %s", strerror(-r)) : FLEET_OK;
}

static bool has_ended(struct node *n)
{
	if (!n->started || waitpid(n->started, NULL, WNOHANG) != n->started)
		return false;
	n->started = 0;
	return true;
}

static void kill_started(struct setup *s)
{
	for (size_t i = 0; i < s->n_nodes; i++) {
		struct node *n = &s->nodes[i];

		if (n->started && !kill(n->started, SIGKILL))
			waitpid(n->started, NULL, 0);
		n->started = 0;
	}
}

/* Reads the administrator's file. Returns a code. */
static int load_fleet_conf(struct setup *s)
{
	char path[PATH_MAX], why[PATH_MAX + 128];

	setup_path(s, path, "fleet.conf");
	if (config_load(&s->fleet->config, path, why, sizeof(why)) < 0)
		return fleet_fail(s->fleet, "%s", why);
	return FLEET_OK;
}

/* Waits until a server answers. Returns 0; -ESRCH if it has ended; -ETIMEDOUT with link.why. */
static int wait_answer(struct setup *s, size_t i)
{
	struct fleet_config one = s->fleet->config;
	struct link *l = &s->fleet->link;

	snprintf(one.servers, sizeof(one.servers), "tls://%s:%u", s->nodes[i].address,
		s->nodes[i].port);
	for (const uint64_t end = in_ms(START_MS); in_ms(0) < end; nats_Sleep(POLL_MS)) {
		if (has_ended(&s->nodes[i]))
			return -ESRCH;
		if (!link_open(l, &one)) {
			link_close(l);
			return 0;
		}
	}
	return -ETIMEDOUT;
}

static bool knows_streams(const struct setup *s, const struct link *l)
{
	char name[FLEET_STREAM_MAX] = FLEET_STREAM;
	natsStatus status = NATS_OK;

	for (unsigned i = 0; status == NATS_OK && i <= s->shards; i++) {
		jsStreamInfo *info = NULL;

		status = js_GetStreamInfo(&info, l->js, name, NULL, NULL);
		jsStreamInfo_Destroy(info);
		snprintf(name, sizeof(name), FLEET_SHARD, i);
	}
	return status == NATS_OK;
}

enum server_state servers_look(struct setup *s, size_t i)
{
	enum server_state state = SERVER_SILENT;
	struct fleet_config one = s->fleet->config;
	struct link l;

	snprintf(one.servers, sizeof(one.servers), "tls://%s:%u", s->nodes[i].address,
		s->nodes[i].port);
	if (link_open(&l, &one) < 0)
		return state;
	/* One that has just started learns of the streams from the others. */
	for (const uint64_t end = in_ms(LOOK_MS); state != SERVER_RUNS && in_ms(0) < end;
		nats_Sleep(POLL_MS)) {
		state = knows_streams(s, &l) ? SERVER_RUNS : SERVER_DAMAGED;
	}
	link_close(&l);
	return state;
}

static int start_once(struct setup *s, bool is_last)
{
	int code = load_fleet_conf(s), r = 0;

	for (size_t i = 0; !code && i < s->n_nodes; i++)
		code = start_nats_server(s, i);
	for (size_t i = 0; !code && i < s->n_nodes; i++) {
		r = wait_answer(s, i);
		if (r == -ESRCH && s->any_port && !is_last)
			return -EAGAIN;
		if (r == -ESRCH)
			code = fleet_fail(s->fleet,
				"nats-server did not start: %s/nodes/%zu/server.log has the reason",
				s->dir, i + 1);
		else if (r < 0)
			code = fleet_fail(s->fleet, "nats-server: %s", s->fleet->link.why);
	}
	return code;
}

/* Somebody else may have taken a port since it was chosen: then others are tried. */
int servers_start(struct setup *s)
{
	int code = start_once(s, false);

	for (unsigned n = 2; code == -EAGAIN; n++) {
		kill_started(s);
		code = servers_choose_ports(s);
		if (!code)
			code = setup_write_servers(s);
		if (!code)
			code = start_once(s, n == TRIES);
	}
	return code;
}

int servers_connect(struct setup *s)
{
	const int code = load_fleet_conf(s);

	if (code)
		return code;
	if (link_open(&s->fleet->link, &s->fleet->config) < 0)
		return fleet_fail(s->fleet, "%s: start the servers, then repeat 'kymo fleet setup'",
			s->fleet->link.why);
	return FLEET_OK;
}

void servers_reload(const struct setup *s)
{
	for (size_t i = 0; i < s->n_nodes; i++)
		if (servers_find(s, i))
			kill(servers_find(s, i), SIGHUP);
}

/* --- streams --- */

/* JetStream starts behind the server, and a cluster is none until its servers have met. */
static bool is_starting(natsStatus s, jsErrCode error)
{
	return s == NATS_TIMEOUT || s == NATS_NO_RESPONDERS || error == JSClusterNoPeersErr ||
	       error == JSClusterNotAvailErr || error == JSClusterNotLeaderErr ||
	       error == JSClusterIncompleteErr || error == JSInsufficientResourcesErr;
}

/* Have all of this machine's servers what the stream's leader has? Others may be down for long. */
static bool is_whole(const struct setup *s, const jsStreamInfo *info)
{
	const jsClusterInfo *c = info->Cluster;
	int n = 0;

	if (s->n_nodes == 1 || !fleet_has(s->fleet, "local"))
		return true;
	for (int i = 0; c && i < c->ReplicasLen; i++)
		n += c->Replicas[i]->Current && !c->Replicas[i]->Offline;
	return c && c->Leader && *c->Leader && n == (int)s->n_nodes - 1;
}

static int make_stream(struct setup *s, jsStreamConfig *c)
{
	struct fleet *f = s->fleet;
	natsStatus status = NATS_TIMEOUT;
	jsOptions wait;

	jsOptions_Init(&wait);
	wait.Wait = START_MS / 10;
	c->Replicas = (int64_t)s->n_nodes;
	for (const uint64_t end = in_ms(AGREE_MS); in_ms(0) < end; nats_Sleep(POLL_MS)) {
		jsStreamInfo *info = NULL;
		jsErrCode error = 0;
		bool done;

		status = js_GetStreamInfo(&info, f->link.js, c->Name, &wait, &error);
		if (status == NATS_NOT_FOUND) {
			status = js_AddStream(&info, f->link.js, c, &wait, &error);
		} else if (status == NATS_OK && info->Config->SubjectsLen != c->SubjectsLen) {
			jsStreamInfo_Destroy(info); /* an older version made it, without shards */
			status = js_UpdateStream(&info, f->link.js, c, &wait, &error);
		}
		done = status == NATS_OK && is_whole(s, info);
		jsStreamInfo_Destroy(info);
		if (done)
			return FLEET_OK;
		if (status != NATS_OK && !is_starting(status, error))
			break;
	}
	if (status == NATS_OK)
		return fleet_fail(f, "the servers do not agree yet: repeat the command");
	link_fail(&f->link, status, c->Name);
	return fleet_fail(f, "%s", f->link.why);
}

/* Segments, of which there may be many, are spread over the shards. */
static int make_shard(struct setup *s, unsigned shard)
{
	char name[FLEET_STREAM_MAX], subject[FLEET_SUBJECT_MAX];
	const char *subjects[] = {subject};
	jsStreamConfig c;

	snprintf(name, sizeof(name), FLEET_SHARD, shard);
	snprintf(subject, sizeof(subject), FLEET_SEGMENTS, shard, ">");
	jsStreamConfig_Init(&c);
	c.Name = name;
	c.Subjects = subjects;
	c.SubjectsLen = 1;
	c.MaxAge = KEEP_DAYS * NS_PER_DAY;
	c.MaxBytes = (int64_t)(STORE_MAX / 2 / s->shards);
	c.AllowDirect = true;
	return make_stream(s, &c);
}

int servers_make_streams(struct setup *s)
{
	const char *subjects[] = {"kymo.done.>", "kymo.note.>"};
	const char *hosts[] = {FLEET_HOSTS_PREFIX ">"};
	jsStreamConfig c;
	int code;

	jsStreamConfig_Init(&c);
	c.Name = FLEET_STREAM;
	c.Subjects = subjects;
	c.SubjectsLen = (int)KY_ARRAY_SIZE(subjects);
	c.MaxAge = KEEP_DAYS * NS_PER_DAY;
	c.MaxBytes = (int64_t)256 << 20;
	c.AllowDirect = true;
	code = make_stream(s, &c);
	for (unsigned shard = 0; !code && shard < s->shards; shard++)
		code = make_shard(s, shard);
	if (code)
		return code;
	/* As the engine's own tools make a bucket of keys and values. */
	jsStreamConfig_Init(&c);
	c.Name = FLEET_HOSTS;
	c.Subjects = hosts;
	c.SubjectsLen = 1;
	c.MaxMsgsPerSubject = 1;
	c.AllowRollup = true;
	c.DenyDelete = true;
	c.AllowDirect = true;
	c.MaxBytes = (int64_t)64 << 20;
	return make_stream(s, &c);
}
