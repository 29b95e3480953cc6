/* SPDX-License-Identifier: MIT */
/*
 * setup: a fleet with one server on this machine. Makes a directory with a certificate authority,
 * the server's configuration and identity, and an identity for each host; starts the server, and
 * makes the streams in it. Everything that is there already stays, so the action may be repeated:
 * with more hosts, or to start the server again.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/text.h"
#include "fleet/fleet.h"

#define ADMIN	   "admin"
#define MAY_ASK	   "may-ask" /* a file in a host's directory */
#define START_MS   15000
#define POLL_MS	   50
#define DAYS	   "3650"
#define KEEP_DAYS  3
#define NS_PER_DAY ((int64_t)86400 * 1000000000)
#define STORE_MAX  ((uint64_t)10 << 30)

struct setup {
	struct fleet *fleet;
	char dir[PATH_MAX - 128];
	char address[128];
	unsigned port; /* 0: any */
};

// ---- files

static void path_of(const struct setup *s, char path[PATH_MAX], const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", s->dir, name);
}

static bool is_there(const struct setup *s, const char *name)
{
	char path[PATH_MAX];

	path_of(s, path, name);
	return !access(path, F_OK);
}

static int make_dir(struct setup *s, const char *name)
{
	char path[PATH_MAX];

	path_of(s, path, name);
	if (!mkdir(path, 0700) || errno == EEXIST)
		return FLEET_OK;
	return fleet_fail(s->fleet, "%s: %s", path, strerror(errno));
}

/* Writes a file as a whole: a server that reads it sees the one before, or this one. */
static int write_file(struct setup *s, const char *name, const struct ky_buf *text)
{
	char path[PATH_MAX], fresh[PATH_MAX + 8];
	int fd, r = 0;

	path_of(s, path, name);
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || text->error || write(fd, text->data, text->len) != (ssize_t)text->len)
		r = fd < 0 ? -errno : -EIO;
	ky_close(fd);
	if (!r && rename(fresh, path) < 0)
		r = -errno;
	return r < 0 ? fleet_fail(s->fleet, "%s: %s", path, strerror(-r)) : FLEET_OK;
}

// ---- programs

/* Starts a program, with its output in DIR/log. Returns 0 or -errno. */
static int spawn(const struct setup *s, const char *const *argv, const char *log, pid_t *ret_pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	char path[PATH_MAX];
	int r;

	path_of(s, path, log);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(
		&files, STDOUT_FILENO, path, O_WRONLY | O_CREAT | O_APPEND, 0600);
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
	int status = 0, r = spawn(s, argv, "setup.log", &pid);

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

// ---- identities

/* The authority of this fleet, and of no other. */
static int make_authority(struct setup *s)
{
	static const char config[] = "[req]\ndistinguished_name = dn\n[dn]\n";
	char cnf[PATH_MAX], key[PATH_MAX], crt[PATH_MAX];
	const struct ky_buf text = {.data = (char *)config, .len = sizeof(config) - 1};
	const char *argv[] = {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
		"ec_paramgen_curve:prime256v1", "-nodes", "-days", DAYS, "-subj", "/CN=kymo fleet",
		"-addext", "basicConstraints=critical,CA:TRUE", "-addext",
		"keyUsage=critical,keyCertSign", "-config", cnf, "-keyout", key, "-out", crt, NULL};
	int code = FLEET_OK;

	path_of(s, cnf, "openssl.cnf");
	path_of(s, key, "ca.key");
	path_of(s, crt, "ca.crt");
	if (!is_there(s, "openssl.cnf"))
		code = write_file(s, "openssl.cnf", &text);
	return code || is_there(s, "ca.crt") ? code : run_program(s, argv, "openssl");
}

/*
 * Makes NAME.crt and NAME.key at `where`. name: of the user, in the certificate; usage: as client
 * or as server, so that no host can pose as the server.
 */
static int make_identity(struct setup *s, const char *where, const char *name, const char *usage)
{
	char cnf[PATH_MAX], ca[PATH_MAX], ca_key[PATH_MAX], key[PATH_MAX], crt[PATH_MAX],
		fresh[PATH_MAX], subject[128], alt[128], use[64];
	const char *argv[] = {"openssl", "req", "-x509", "-CA", ca, "-CAkey", ca_key, "-newkey",
		"ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", DAYS, "-subj",
		subject, "-addext", "basicConstraints=critical,CA:FALSE", "-addext", alt, "-addext",
		use, "-config", cnf, "-keyout", key, "-out", fresh, NULL};
	int code;

	path_of(s, cnf, "openssl.cnf");
	path_of(s, ca, "ca.crt");
	path_of(s, ca_key, "ca.key");
	snprintf(key, sizeof(key), "%.3900s/%s.key", s->dir, where);
	snprintf(crt, sizeof(crt), "%.3900s/%s.crt", s->dir, where);
	snprintf(fresh, sizeof(fresh), "%.3900s/%s.new", s->dir, where);
	snprintf(subject, sizeof(subject), "/CN=%s", name);
	snprintf(alt, sizeof(alt), "subjectAltName=DNS:%s", name);
	snprintf(use, sizeof(use), "extendedKeyUsage=%s", usage);
	if (!access(crt, F_OK))
		return FLEET_OK;
	code = run_program(s, argv, "openssl");
	if (!code && rename(fresh, crt) < 0)
		code = fleet_fail(s->fleet, "%s: %s", crt, strerror(errno));
	return code;
}

/* The file of a host, or of the fleet's administrator: where the server is, and who one is. */
static int write_config(struct setup *s, const char *name, const char *dir, const char *identity)
{
	struct ky_buf b = {0};
	char path[PATH_MAX];
	int code;

	ky_buf_printf(&b,
		"servers = tls://%s:%u\nname = %s\ncert = %s.crt\nkey = %s.key\nca = ca.crt\n",
		s->address, s->port, name, identity, identity);
	snprintf(path, sizeof(path), "%sfleet.conf", dir);
	code = write_file(s, path, &b);
	ky_buf_deinit(&b);
	return code;
}

static int copy_ca(struct setup *s, const char *to)
{
	char path[PATH_MAX], text[8192];
	_cleanup_close_ int fd = -1;
	struct ky_buf b = {0};
	ssize_t n;
	int code;

	path_of(s, path, "ca.crt");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	if (n <= 0)
		return fleet_fail(s->fleet, "%s: %s", path, strerror(errno));
	ky_buf_append(&b, text, (size_t)n);
	code = write_file(s, to, &b);
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
		code = make_identity(s, path, name, "clientAuth");
	snprintf(path, sizeof(path), "%s/ca.crt", dir);
	if (!code)
		code = copy_ca(s, path);
	snprintf(path, sizeof(path), "%s/fleet.conf", dir);
	if (!code && !is_there(s, path)) {
		snprintf(path, sizeof(path), "%s/", dir);
		code = write_config(s, name, path, "host");
	}
	snprintf(path, sizeof(path), "%s/" MAY_ASK, dir);
	if (!code && fleet_has(s->fleet, "triggers"))
		code = write_file(s, path, &(const struct ky_buf){.data = (char *)""});
	return code;
}

static int make_hosts(struct setup *s)
{
	int code = FLEET_OK;

	for (size_t i = 0; !code && i < kymo_value_count(s->fleet->args); i++)
		code = make_host(s, kymo_value_string(kymo_value_at(s->fleet->args, i)));
	return code;
}

// ---- the server's configuration

/*
 * A host may answer and store under its own name, announce itself, and hear what all are asked. It
 * can read nothing that another host has stored. It can ask nothing, unless it may ask for
 * snapshots: then it also sees who there is.
 */
static void put_host(struct ky_buf *b, const char *name, bool may_ask)
{
	ky_buf_printf(b,
		"  { user: \"%s\", permissions: {\n"
		"    publish: [\"kymo.rep.*.%s\", \"kymo.seg.%s.>\", \"kymo.done.*.%s\", \"" FLEET_HOSTS_PREFIX
		"%s\", \"$JS.API.DIRECT.GET." FLEET_STREAM ".kymo.seg.%s.>\"",
		name, name, name, name, name, name);
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

	path_of(s, path, "hosts");
	d = opendir(path);
	if (!d)
		return fleet_fail(s->fleet, "%s: %s", path, strerror(errno));
	ky_buf_puts(&b, "# Written by 'kymo fleet setup' anew for each host: change server.conf.\n"
			"authorization { users: [\n  { user: \"" ADMIN "\" }\n");
	while ((e = readdir(d)))
		if (config_host_valid(e->d_name))
			put_host(&b, e->d_name, is_asking(s, e->d_name));
	closedir(d);
	ky_buf_puts(&b, "] }\n");
	code = write_file(s, "users.conf", &b);
	ky_buf_deinit(&b);
	return code;
}

static int write_server(struct setup *s)
{
	struct ky_buf b = {0};
	char port[16] = "-1";
	int code;

	if (s->port)
		snprintf(port, sizeof(port), "%u", s->port);
	ky_buf_printf(&b,
		"# nats-server, for a fleet of Kymo's. Start it: nats-server -c %s/server.conf\n"
		"listen: \"%s:%s\"\n"
		"server_name: kymo\n"
		"pid_file: \"%s/server.pid\"\n"
		"ports_file_dir: \"%s\"\n"
		"max_payload: 1048576\n"
		"jetstream { store_dir: \"%s/store\", max_file_store: %llu }\n"
		"tls {\n"
		"  cert_file: \"%s/server.crt\"\n"
		"  key_file: \"%s/server.key\"\n"
		"  ca_file: \"%s/ca.crt\"\n"
		"  verify_and_map: true\n"
		"  timeout: 20\n"
		"}\n"
		"include \"users.conf\"\n",
		s->dir, s->address, port, s->dir, s->dir, s->dir, (unsigned long long)STORE_MAX,
		s->dir, s->dir, s->dir);
	code = write_file(s, "server.conf", &b);
	ky_buf_deinit(&b);
	return code;
}

// ---- the server

/* Returns the process of the server if it runs, else 0. One that has ended has no program. */
static pid_t find_server(const struct setup *s)
{
	static const char name[] = "/nats-server";
	char path[PATH_MAX], link[64], *slash;
	int pid = 0;
	ssize_t n;
	FILE *f;

	path_of(s, path, "server.pid");
	f = fopen(path, "re");
	if (!f || fscanf(f, "%d", &pid) != 1)
		pid = 0;
	if (f)
		fclose(f);
	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	n = pid > 0 ? readlink(link, path, sizeof(path) - 1) : -1;
	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	return slash && !strncmp(slash, name, strlen(name)) ? pid : 0;
}

/* Reads the port that a server has chosen, from the file that it writes. 0: not yet. */
static unsigned read_port(const struct setup *s, pid_t pid)
{
	char path[PATH_MAX], text[1024];
	const char *at;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/nats-server_%d.ports", s->dir, (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	at = strstr(text, "\"nats\"");
	at = at ? strstr(at, "://") : NULL;
	at = at ? strchr(at + 3, ':') : NULL;
	return at && strchr(at, '"') ? (unsigned)strtoul(at + 1, NULL, 10) : 0;
}

static int learn_port(struct setup *s, pid_t pid)
{
	s->port = read_port(s, pid);
	if (!s->port)
		return -EAGAIN;
	return write_server(s) || write_config(s, ADMIN, "", ADMIN) ? -EIO : 0;
}

/* Waits until the server answers. Returns a code. */
static int wait_ready(struct setup *s, pid_t pid)
{
	char path[PATH_MAX], why[PATH_MAX + 128];
	struct fleet *f = s->fleet;

	path_of(s, path, "fleet.conf");
	snprintf(f->link.why, sizeof(f->link.why), "it does not answer");
	for (unsigned waited = 0; waited < START_MS; waited += POLL_MS, nats_Sleep(POLL_MS)) {
		if (pid && waitpid(pid, NULL, WNOHANG) == pid)
			return fleet_fail(f,
				"nats-server did not start: %s/server.log has the reason", s->dir);
		if (!s->port && learn_port(s, pid) < 0)
			continue;
		if (config_load(&f->config, path, why, sizeof(why)) < 0)
			return fleet_fail(f, "%s", why);
		if (!link_open(&f->link, &f->config))
			return FLEET_OK;
	}
	return fleet_fail(f, "nats-server: %s", f->link.why);
}

static int start_server(struct setup *s)
{
	char conf[PATH_MAX];
	const char *argv[] = {"nats-server", "-c", conf, NULL};
	pid_t pid = find_server(s);
	int r;

	path_of(s, conf, "server.conf");
	if (pid) {
		kill(pid, SIGHUP); /* it reads its users again */
		return wait_ready(s, 0);
	}
	r = spawn(s, argv, "server.log", &pid);
	if (r == -ENOENT)
		return fleet_fail(s->fleet,
			"nats-server is missing (Debian package nats-server); %s has all else",
			s->dir);
	return r < 0 ? fleet_fail(s->fleet, "nats-server: %s", strerror(-r)) : wait_ready(s, pid);
}

// ---- streams

/* JetStream starts behind the server. */
static bool is_starting(natsStatus s)
{
	return s == NATS_TIMEOUT || s == NATS_NO_RESPONDERS;
}

static int make_stream(struct setup *s, jsStreamConfig *c)
{
	struct fleet *f = s->fleet;
	jsErrCode error = 0;
	jsOptions wait;
	natsStatus status = NATS_TIMEOUT;

	jsOptions_Init(&wait);
	wait.Wait = START_MS / 10;
	for (unsigned n = 0; n < START_MS / POLL_MS && is_starting(status); n++) {
		jsStreamInfo *info = NULL;

		if (n)
			nats_Sleep(POLL_MS);
		status = js_GetStreamInfo(&info, f->link.js, c->Name, &wait, &error);
		jsStreamInfo_Destroy(info);
		if (status == NATS_NOT_FOUND)
			status = js_AddStream(NULL, f->link.js, c, &wait, &error);
	}
	if (status == NATS_OK)
		return FLEET_OK;
	link_fail(&f->link, status, c->Name);
	return fleet_fail(f, "%s", f->link.why);
}

static int make_streams(struct setup *s)
{
	const char *subjects[] = {"kymo.seg.>", "kymo.done.>", "kymo.note.>"};
	const char *hosts[] = {FLEET_HOSTS_PREFIX ">"};
	jsStreamConfig c;
	int code;

	jsStreamConfig_Init(&c);
	c.Name = FLEET_STREAM;
	c.Subjects = subjects;
	c.SubjectsLen = (int)KY_ARRAY_SIZE(subjects);
	c.MaxAge = KEEP_DAYS * NS_PER_DAY;
	c.MaxBytes = (int64_t)(STORE_MAX / 2);
	c.AllowDirect = true;
	code = make_stream(s, &c);
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

// ---- the action

static int choose_dir(struct setup *s)
{
	const char *given = fleet_option(s->fleet, "output"), *home = getenv("HOME");
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

static int choose_address(struct setup *s)
{
	const char *text = fleet_option(s->fleet, "listen");
	const char *colon;
	uint64_t port;

	if (!text)
		text = "127.0.0.1:4222";
	colon = strrchr(text, ':');
	if (!colon || colon == text || (size_t)(colon - text) >= sizeof(s->address) ||
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") !=
			(size_t)(colon - text) ||
		ky_parse_number(colon + 1, UINT16_MAX, &port) < 0)
		return fleet_usage(s->fleet, "--listen: '%s' is not ADDRESS:PORT", text);
	snprintf(s->address, sizeof(s->address), "%.*s", (int)(colon - text), text);
	s->port = (unsigned)port;
	return FLEET_OK;
}

/* A fleet that is there keeps its address: its hosts know that. */
static int make_server(struct setup *s)
{
	char path[PATH_MAX], why[PATH_MAX + 128];
	struct fleet_config c;
	int code = make_identity(s, "server", FLEET_SERVER_NAME, "serverAuth");

	if (!code)
		code = make_identity(s, ADMIN, ADMIN, "clientAuth");
	path_of(s, path, "fleet.conf");
	if (code || !config_load(&c, path, why, sizeof(why))) {
		if (!code && sscanf(c.servers, "tls://%127[^:]:%u", s->address, &s->port) != 2)
			return fleet_fail(s->fleet, "%s: this is not of 'kymo fleet setup'", path);
		return code;
	}
	code = write_server(s);
	if (!code && s->port)
		code = write_config(s, ADMIN, "", ADMIN);
	return code;
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

static void report(const struct setup *s)
{
	struct fleet *f = s->fleet;
	const pid_t pid = find_server(s);

	if (f->result) {
		kymo_value_set_string(f->result, "dir", s->dir);
		kymo_value_set_string(f->result, "servers", f->config.servers);
		kymo_value_set_u64(f->result, "pid", (uint64_t)pid);
		return;
	}
	printf("the fleet's server runs at %s (pid %d)\n", f->config.servers, (int)pid);
	printf("stop it: kill %d; start it: nats-server -c %s/server.conf\n", (int)pid, s->dir);
	for (size_t i = 0; i < kymo_value_count(f->args); i++)
		printf("host %s: kymo-agent %s/hosts/%s/fleet.conf\n",
			kymo_value_string(kymo_value_at(f->args, i)), s->dir,
			kymo_value_string(kymo_value_at(f->args, i)));
}

int setup_run(struct fleet *f)
{
	struct setup s = {.fleet = f};
	int code = FLEET_OK;

	if (!fleet_has(f, "local"))
		return fleet_usage(f,
			"only a server on this machine can be set up: 'kymo fleet setup --local'");
	code = check_hosts(&s);
	if (!code)
		code = choose_address(&s);
	if (!code)
		code = choose_dir(&s);
	if (!code)
		code = make_dir(&s, "hosts");
	if (!code)
		code = make_authority(&s);
	if (!code)
		code = make_server(&s);
	/* Before the first host: users.conf must be there when the server starts. */
	if (!code)
		code = write_users(&s);
	if (!code)
		code = start_server(&s);
	if (!code)
		code = make_streams(&s);
	if (!code)
		code = make_hosts(&s);
	if (!code)
		code = write_users(&s);
	if (!code && find_server(&s))
		kill(find_server(&s), SIGHUP);
	if (!code)
		report(&s);
	return code;
}
