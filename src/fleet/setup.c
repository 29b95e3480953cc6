/* SPDX-License-Identifier: MIT */
/*
 * setup: makes the directory of a fleet: certificate authorities, the configuration and identity of
 * each server, and an identity for each host. With --local it starts the servers here; then it
 * makes the streams in them. Everything that is there already stays, so the action may be repeated:
 * with more hosts, or to start servers again.
 */
#include "fleet/setup.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/text.h"
#include "ship/files.h"

#define ADMIN	     "admin"
#define MAY_ASK	     "may-ask" /* a file in a host's directory */
#define DAYS	     "3650"
#define ROUTE_OFFSET 2000 /* from the port for hosts to the port for other servers */

/* --- files --- */

void setup_path(const struct setup *s, char path[PATH_MAX], const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", s->dir, name);
}

static bool is_there(const struct setup *s, const char *name)
{
	char path[PATH_MAX];

	setup_path(s, path, name);
	return !access(path, F_OK);
}

static int make_dir(struct setup *s, const char *name)
{
	char path[PATH_MAX];

	setup_path(s, path, name);
	if (!mkdir(path, 0700) || errno == EEXIST)
		return FLEET_OK;
	return fleet_fail(s->fleet, "%s: %s", path, strerror(errno));
}

/* Writes a file as a whole: a server that reads it sees the one before, or this one. */
int setup_write(struct setup *s, const char *name, const struct ky_buf *text)
{
	char path[PATH_MAX], fresh[PATH_MAX + 8];
	int fd, r = text->error;

	setup_path(s, path, name);
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	fd = r ? -1 : open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (!r)
		r = fd < 0 ? -errno : files_write(fd, text->data, text->len, 0);
	if (fd >= 0 && close(fd) < 0 && !r)
		r = -errno;
	if (!r && rename(fresh, path) < 0)
		r = -errno;
	return r < 0 ? fleet_fail(s->fleet, "%s: %s", path, strerror(-r)) : FLEET_OK;
}

/* --- programs --- */

int setup_spawn(const struct setup *s, const char *const *argv, const char *where, const char *log,
	pid_t *ret_pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	char path[PATH_MAX];
	int r;

	setup_path(s, path, where);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_addchdir_np(&files, path);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(
		&files, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID);
	r = posix_spawnp(ret_pid, argv[0], &files, &attr, (char *const *)argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return -r;
}

static int run_program(struct setup *s, const char *const *argv, const char *package)
{
	pid_t pid;
	int status = 0, r = setup_spawn(s, argv, ".", "setup.log", &pid);

	if (r == -ENOENT)
		return fleet_fail(s->fleet, "%s is missing (Debian package %s)", argv[0], package);
	if (r < 0)
		return fleet_fail(s->fleet, "%s: %s", argv[0], strerror(-r));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return fleet_fail(
			s->fleet, "%s failed: %s/setup.log has the reason", argv[0], s->dir);
	return FLEET_OK;
}

/* --- identities --- */

/* openssl does not notice that a disk is full. A file of its kind ends with -----END ...-----. */
static bool is_whole(const char *path)
{
	static const char end[] = "-----\n";
	char last[sizeof(end) - 1];
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && lseek(fd, -(off_t)sizeof(last), SEEK_END) >= 0 &&
	       read(fd, last, sizeof(last)) == sizeof(last) && !memcmp(last, end, sizeof(last));
}

/* Lets openssl make the key and `fresh`, which becomes the certificate when both are whole. */
static int make_certificate(struct setup *s, const char *const *argv, const char *key,
	const char *fresh, const char *crt)
{
	int code = run_program(s, argv, "openssl");

	if (!code && (!is_whole(key) || !is_whole(fresh)))
		code = fleet_fail(s->fleet, "openssl has not written all of %s: is the disk full?",
			is_whole(key) ? fresh : key);
	if (!code && rename(fresh, crt) < 0)
		code = fleet_fail(s->fleet, "%s: %s", crt, strerror(errno));
	return code;
}

/* Makes NAME.crt and NAME.key: an authority of this fleet, and of no other. */
static int make_authority(struct setup *s, const char *name, const char *subject)
{
	static const char config[] = "[req]\ndistinguished_name = dn\n[dn]\n";
	char cnf[PATH_MAX], key[PATH_MAX], crt[PATH_MAX], fresh[PATH_MAX], file[64];
	const struct ky_buf text = {.data = (char *)config, .len = sizeof(config) - 1};
	const char *argv[] = {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
		"ec_paramgen_curve:prime256v1", "-nodes", "-days", DAYS, "-subj", subject,
		"-addext", "basicConstraints=critical,CA:TRUE", "-addext",
		"keyUsage=critical,keyCertSign", "-config", cnf, "-keyout", key, "-out", fresh,
		NULL};
	int code = FLEET_OK;

	setup_path(s, cnf, "openssl.cnf");
	snprintf(file, sizeof(file), "%s.key", name);
	setup_path(s, key, file);
	snprintf(file, sizeof(file), "%s.new", name);
	setup_path(s, fresh, file);
	snprintf(file, sizeof(file), "%s.crt", name);
	setup_path(s, crt, file);
	if (!is_there(s, "openssl.cnf"))
		code = setup_write(s, "openssl.cnf", &text);
	return code || is_there(s, file) ? code : make_certificate(s, argv, key, fresh, crt);
}

struct identity {
	const char *authority;
	const char *where; /* WHERE.crt and WHERE.key are made */
	const char *name;  /* of the user, or of the server */
	const char *kind;  /* of the name: DNS or IP */
	const char *usage; /* as client or as server, so that no host can pose as the server */
};

static int make_identity(struct setup *s, const struct identity *id)
{
	char cnf[PATH_MAX], ca[PATH_MAX], ca_key[PATH_MAX], key[PATH_MAX], crt[PATH_MAX],
		fresh[PATH_MAX], subject[160], alt[160], use[64];
	const char *argv[] = {"openssl", "req", "-x509", "-CA", ca, "-CAkey", ca_key, "-newkey",
		"ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", DAYS, "-subj",
		subject, "-addext", "basicConstraints=critical,CA:FALSE", "-addext", alt, "-addext",
		use, "-config", cnf, "-keyout", key, "-out", fresh, NULL};

	setup_path(s, cnf, "openssl.cnf");
	snprintf(ca, sizeof(ca), "%.3900s/%s.crt", s->dir, id->authority);
	snprintf(ca_key, sizeof(ca_key), "%.3900s/%s.key", s->dir, id->authority);
	snprintf(key, sizeof(key), "%.3900s/%s.key", s->dir, id->where);
	snprintf(crt, sizeof(crt), "%.3900s/%s.crt", s->dir, id->where);
	snprintf(fresh, sizeof(fresh), "%.3900s/%s.new", s->dir, id->where);
	snprintf(subject, sizeof(subject), "/CN=%s", id->name);
	snprintf(alt, sizeof(alt), "subjectAltName=%s:%s", id->kind, id->name);
	snprintf(use, sizeof(use), "extendedKeyUsage=%s", id->usage);
	return access(crt, F_OK) ? make_certificate(s, argv, key, fresh, crt) : FLEET_OK;
}

/* Writes the file of a host or of the administrator: the servers' addresses, and its identity. */
static int write_config(struct setup *s, const char *name, const char *dir, const char *identity)
{
	struct ky_buf b = {0};
	char path[PATH_MAX];
	int code;

	ky_buf_puts(&b, "servers = ");
	for (size_t i = 0; i < s->n_nodes; i++)
		ky_buf_printf(
			&b, "%stls://%s:%u", i ? "," : "", s->nodes[i].address, s->nodes[i].port);
	ky_buf_printf(&b,
		"\nname = %s\ncert = %s.crt\nkey = %s.key\nca = ca.crt\nshards = %" PRIu64 "\n",
		name, identity, identity, s->shards);
	snprintf(path, sizeof(path), "%sfleet.conf", dir);
	code = setup_write(s, path, &b);
	ky_buf_deinit(&b);
	return code;
}

static int copy_file(struct setup *s, const char *from, const char *to)
{
	char path[PATH_MAX], text[8192];
	_cleanup_close_ int fd = -1;
	struct ky_buf b = {0};
	ssize_t n = -1;
	int code;

	setup_path(s, path, from);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && (n = read(fd, text, sizeof(text))) > 0)
		ky_buf_append(&b, text, (size_t)n);
	code = n < 0 ? fleet_fail(s->fleet, "%s: %s", path, strerror(errno))
		     : setup_write(s, to, &b);
	ky_buf_deinit(&b);
	return code;
}

/* Everything that a host needs is in one directory: hosts/NAME. */
static int make_host(struct setup *s, const char *name)
{
	char dir[FLEET_HOST_MAX + 16], path[FLEET_HOST_MAX + 32];
	int code;

	snprintf(dir, sizeof(dir), "hosts/%s", name);
	code = make_dir(s, dir);
	snprintf(path, sizeof(path), "%s/host", dir);
	if (!code)
		code = make_identity(
			s, &(const struct identity){"ca", path, name, "DNS", "clientAuth"});
	snprintf(path, sizeof(path), "%s/ca.crt", dir);
	if (!code)
		code = copy_file(s, "ca.crt", path);
	snprintf(path, sizeof(path), "%s/fleet.conf", dir);
	if (!code && !is_there(s, path)) {
		snprintf(path, sizeof(path), "%s/", dir);
		code = write_config(s, name, path, "host");
	}
	snprintf(path, sizeof(path), "%s/" MAY_ASK, dir);
	if (!code && fleet_has(s->fleet, "triggers"))
		code = setup_write(s, path, &(const struct ky_buf){.data = (char *)""});
	return code;
}

static int make_hosts(struct setup *s)
{
	int code = FLEET_OK;

	for (size_t i = 0; !code && i < kymo_value_count(s->fleet->args); i++)
		code = make_host(s, kymo_value_string(kymo_value_at(s->fleet->args, i)));
	return code;
}

/* --- what hosts may do --- */

/*
 * A host may answer and store under its own name, announce itself, and hear what all are asked. It
 * can read nothing that another host has stored. It can ask nothing, unless it may ask for
 * snapshots: then it also sees who there is.
 */
static void put_host(struct ky_buf *b, uint64_t shards, const char *name, bool may_ask)
{
	const unsigned shard = config_shard(shards, name);

	ky_buf_printf(b,
		"  { user: \"%s\", permissions: {\n"
		"    publish: [\"kymo.rep.*.%s\", \"" FLEET_SEGMENTS
		".>\", \"kymo.done.*.%s\", \"" FLEET_HOSTS_PREFIX
		"%s\", \"$JS.API.DIRECT.GET." FLEET_SHARD "." FLEET_SEGMENTS ".>\"",
		name, name, shard, name, name, name, shard, shard, name);
	if (may_ask)
		ky_buf_puts(b, ", \"" FLEET_ASK "snapshot\", \"" FLEET_ASK
			       "time\", \"kymo.note.*\", \"$JS.API.DIRECT.GET." FLEET_HOSTS "\"");
	ky_buf_printf(b, "]\n    subscribe: [\"kymo.ctl.>\", \"_INBOX.%s.>\"%s] } }\n", name,
		may_ask ? ", \"kymo.rep.>\"" : "");
}

static bool is_asking(const struct setup *s, const char *host)
{
	char name[FLEET_HOST_MAX + 32];

	snprintf(name, sizeof(name), "hosts/%.63s/" MAY_ASK, host);
	return is_there(s, name);
}

static int write_users(struct setup *s)
{
	struct ky_buf b = {0};
	char path[PATH_MAX];
	struct dirent *e;
	DIR *d;
	int code;

	setup_path(s, path, "hosts");
	d = opendir(path);
	if (!d)
		return fleet_fail(s->fleet, "%s: %s", path, strerror(errno));
	ky_buf_puts(&b, "# Written by 'kymo fleet setup' anew for each host: change server.conf.\n"
			"authorization { users: [\n  { user: \"" ADMIN "\" }\n");
	while ((e = readdir(d)))
		if (config_host_valid(e->d_name))
			put_host(&b, s->shards, e->d_name, is_asking(s, e->d_name));
	closedir(d);
	ky_buf_puts(&b, "] }\n");
	code = FLEET_OK;
	for (size_t i = 0; !code && i < s->n_nodes; i++) {
		snprintf(path, sizeof(path), "nodes/%zu/users.conf", i + 1);
		code = setup_write(s, path, &b);
	}
	ky_buf_deinit(&b);
	return code;
}

/* --- the action --- */

static int choose_dir(struct setup *s)
{
	const char *given = fleet_option(s->fleet, "output"), *home = ky_env("HOME");
	char path[PATH_MAX];

	if (given)
		snprintf(path, sizeof(path), "%s", given);
	else if (home)
		snprintf(path, sizeof(path), "%s/kymo-fleet", home);
	else
		return fleet_usage(s->fleet, "where? -o DIR");
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return fleet_fail(s->fleet, "%s: %s", path, strerror(errno));
	char *full = realpath(path, NULL);
	const bool fits = full && strlen(full) < sizeof(s->dir) - 1 && !strpbrk(full, "\"\\\n$");

	snprintf(s->dir, sizeof(s->dir), "%s", full ? full : "");
	free(full);
	return fits ? FLEET_OK : fleet_fail(s->fleet, "%s cannot be the fleet's directory", path);
}

/* Returns a code. */
static int parse_address(struct setup *s, const char *text, struct node *n)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
	const char *colon = strrchr(text, ':');
	uint64_t port;

	if (!colon || colon == text || (size_t)(colon - text) >= sizeof(n->address) ||
		strspn(text, letters) != (size_t)(colon - text) ||
		ky_parse_number(colon + 1, UINT16_MAX - ROUTE_OFFSET, &port) < 0)
		return fleet_usage(s->fleet, "--listen: '%s' is not ADDRESS:PORT", text);
	if (!port && !fleet_has(s->fleet, "local"))
		return fleet_usage(s->fleet, "--listen: port 0, any, is for --local");
	snprintf(n->address, sizeof(n->address), "%.*s", (int)(colon - text), text);
	n->port = (unsigned)port;
	n->route_port = n->port + ROUTE_OFFSET;
	return FLEET_OK;
}

static int choose_addresses(struct setup *s)
{
	const char *text = fleet_option(s->fleet, "listen");
	char copy[512], *rest = copy, *one;
	int code = FLEET_OK;

	if (!text && !fleet_has(s->fleet, "local"))
		return FLEET_OK; /* a fleet that is there has them */
	if (!text)
		text = "127.0.0.1:4222";
	snprintf(copy, sizeof(copy), "%s", text);
	while (!code && (one = strsep(&rest, ","))) {
		if (s->n_nodes == NODES_MAX)
			s->n_nodes++;
		if (s->n_nodes > NODES_MAX)
			break;
		code = parse_address(s, one, &s->nodes[s->n_nodes++]);
	}
	if (!code && s->n_nodes != 1 && s->n_nodes != NODES_MAX)
		return fleet_usage(s->fleet,
			"--listen: a fleet has one server, or three: ADDRESS:PORT,ADDRESS:PORT,ADDRESS:PORT");
	for (size_t i = 0; !code && i < s->n_nodes; i++) {
		s->any_port = !s->nodes[0].port;
		if (s->any_port != !s->nodes[i].port)
			return fleet_usage(s->fleet, "--listen: port 0, any, is for all or none");
		for (size_t k = 0; k < i; k++)
			if (s->nodes[i].port && s->nodes[i].port == s->nodes[k].port &&
				!strcmp(s->nodes[i].address, s->nodes[k].address))
				return fleet_usage(s->fleet, "--listen: %s:%u is there twice",
					s->nodes[i].address, s->nodes[i].port);
	}
	return code;
}

/* --- servers --- */

static int make_node(struct setup *s, size_t i)
{
	struct node *n = &s->nodes[i];
	struct in_addr a;
	const char *const kind = inet_pton(AF_INET, n->address, &a) == 1 ? "IP" : "DNS";
	char dir[32], path[64];
	int code;

	snprintf(dir, sizeof(dir), "nodes/%zu", i + 1);
	code = make_dir(s, dir);
	snprintf(path, sizeof(path), "%s/server", dir);
	if (!code)
		code = make_identity(s, &(const struct identity){"ca", path, FLEET_SERVER_NAME,
						"DNS", "serverAuth"});
	snprintf(path, sizeof(path), "%s/ca.crt", dir);
	if (!code)
		code = copy_file(s, "ca.crt", path);
	if (code || s->n_nodes == 1)
		return code;
	snprintf(path, sizeof(path), "%s/route", dir);
	code = make_identity(s, &(const struct identity){"route-ca", path, n->address, kind,
					"serverAuth,clientAuth"});
	snprintf(path, sizeof(path), "%s/route-ca.crt", dir);
	return code ? code : copy_file(s, "route-ca.crt", path);
}

int setup_write_servers(struct setup *s)
{
	int code = FLEET_OK;

	for (size_t i = 0; !code && i < s->n_nodes; i++)
		code = servers_write(s, i);
	return code ? code : write_config(s, ADMIN, "", ADMIN);
}

/* Reads the servers of a fleet that is there: its hosts know their addresses. */
static int use_servers(struct setup *s, const char *servers)
{
	const size_t n_given = s->n_nodes;
	const char *at = servers;

	s->any_port = false;
	for (s->n_nodes = 0; at && s->n_nodes < NODES_MAX; at = strchr(at, ',')) {
		struct node *n = &s->nodes[s->n_nodes++];

		at += *at == ',';
		if (sscanf(at, "tls://%127[^:]:%u", n->address, &n->port) != 2)
			return fleet_fail(s->fleet,
				"%s/fleet.conf: this is not of 'kymo fleet setup'", s->dir);
	}
	if (fleet_option(s->fleet, "listen") && n_given != s->n_nodes)
		return fleet_fail(s->fleet,
			"the fleet in %s has %zu servers: another one needs another directory (-o DIR)",
			s->dir, s->n_nodes);
	return FLEET_OK;
}

/* Reads the number of streams for segments. Those of a fleet that is there (0: it is new) stay. */
static int choose_shards(struct setup *s, uint64_t present)
{
	const char *text = fleet_option(s->fleet, "shards");

	s->shards = present ? present : 1;
	if (!text)
		return FLEET_OK;
	if (ky_parse_number(text, FLEET_SHARDS_MAX, &s->shards) < 0 || !s->shards)
		return fleet_usage(s->fleet, "--shards: '%s' is not a number from 1 to %u", text,
			FLEET_SHARDS_MAX);
	if (present && s->shards != present)
		return fleet_fail(s->fleet,
			"the fleet in %s has --shards=%" PRIu64
			": another number needs another directory (-o DIR)",
			s->dir, present);
	return FLEET_OK;
}

static int make_servers(struct setup *s)
{
	char path[PATH_MAX], why[PATH_MAX + 128];
	struct fleet_config c;
	bool is_old;
	int code;

	setup_path(s, path, "fleet.conf");
	is_old = !config_load(&c, path, why, sizeof(why));
	code = choose_shards(s, is_old ? c.shards : 0);
	if (code)
		return code;
	if (is_old)
		return use_servers(s, c.servers);
	if (!s->n_nodes)
		return fleet_usage(s->fleet,
			"the addresses of the servers are missing: --listen=ADDRESS:PORT[,ADDRESS:PORT,ADDRESS:PORT], or --local");
	code = make_authority(s, "ca", "/CN=kymo fleet");
	if (!code && s->n_nodes > 1)
		code = make_authority(s, "route-ca", "/CN=kymo fleet servers");
	if (!code)
		code = make_identity(
			s, &(const struct identity){"ca", ADMIN, ADMIN, "DNS", "clientAuth"});
	for (size_t i = 0; !code && i < s->n_nodes; i++)
		code = make_node(s, i);
	if (!code && s->any_port)
		code = servers_choose_ports(s);
	return code ? code : setup_write_servers(s);
}

static int check_hosts(struct setup *s)
{
	const struct kymo_value *args = s->fleet->args;

	for (size_t i = 0; i < kymo_value_count(args); i++) {
		const char *name = kymo_value_string(kymo_value_at(args, i));

		if (!config_host_valid(name) || !strcmp(name, ADMIN))
			return fleet_usage(s->fleet,
				"'%s' cannot name a host: letters, digits, '-' and '_', and not '" ADMIN
				"'",
				name);
	}
	return FLEET_OK;
}

static void report_json(const struct setup *s)
{
	struct kymo_value *result = s->fleet->result;

	kymo_value_set_string(result, "dir", s->dir);
	kymo_value_set_string(result, "servers", s->fleet->config.servers);
	kymo_value_set_list(result, "nodes");
	for (size_t i = 0; i < s->n_nodes; i++) {
		struct kymo_value *v = kymo_value_new();

		kymo_value_set_u64(v, "node", i + 1);
		if (servers_find(s, i))
			kymo_value_set_u64(v, "pid", (uint64_t)servers_find(s, i));
		kymo_value_add(result, "nodes", v);
		kymo_value_free(v);
	}
}

static void report_hosts(const struct setup *s)
{
	const struct kymo_value *hosts = s->fleet->args;

	for (size_t i = 0; i < kymo_value_count(hosts); i++) {
		const char *name = kymo_value_string(kymo_value_at(hosts, i));

		printf("host %s: kymo-agent %s/hosts/%s/fleet.conf\n", name, s->dir, name);
	}
}

/* is_made: the streams are there. Otherwise no server answers, or they do not agree. */
static void report_servers(struct setup *s, bool is_made)
{
	if (s->fleet->result) {
		report_json(s);
		return;
	}
	for (size_t i = 0; i < s->n_nodes; i++) {
		const struct node *n = &s->nodes[i];
		const pid_t pid = servers_find(s, i);
		const enum server_state state = pid	  ? SERVER_RUNS
						: is_made ? servers_look(s, i)
							  : SERVER_SILENT;

		printf("server tls://%s:%u, files in %s/nodes/%zu: ", n->address, n->port, s->dir,
			i + 1);
		if (state == SERVER_SILENT)
			puts("start it there, in a copy of them: nats-server -c server.conf");
		else if (state == SERVER_DAMAGED)
			puts("it cannot use its copy of the streams (full disk, damaged copy, or no way to the others): its log has the reason; then start it again");
		else if (pid)
			printf("runs; stop it: kill %d\n", (int)pid);
		else
			puts("runs");
	}
	report_hosts(s);
}

/* With --local, the servers run here; else the user starts them where they are to run. */
static int run_servers(struct setup *s, bool is_local)
{
	int code = is_local ? servers_start(s) : FLEET_OK;

	if (!code)
		code = make_hosts(s);
	if (!code)
		code = write_users(s);
	if (!code)
		code = servers_connect(s);
	if (!code)
		code = servers_make_streams(s);
	if (!code && is_local)
		servers_reload(s);
	/* One that does not answer is to be started as this says. */
	if (!code || !is_local)
		report_servers(s, !code);
	return code;
}

int setup_run(struct fleet *f)
{
	struct setup s = {.fleet = f};
	int code = check_hosts(&s);

	if (!code)
		code = choose_addresses(&s);
	if (!code)
		code = choose_dir(&s);
	if (!code)
		code = make_dir(&s, "hosts");
	if (!code)
		code = make_dir(&s, "nodes");
	if (!code)
		code = make_servers(&s);
	/* Before the first host: users.conf must be there when a server starts. */
	if (!code)
		code = write_users(&s);
	return code ? code : run_servers(&s, fleet_has(f, "local"));
}
