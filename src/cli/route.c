/* SPDX-License-Identifier: MIT */
#include "cli/route.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

#define PATIENCE_MS 1000 /* for a command that is asked to end */
#define PAUSE_MS    10	 /* between two looks whether it has */

#define SAID_MAX  65536 /* bytes of a command's standard error that are kept */
#define SAID_LEFT 4096	/* of these, when there are more */

/*
 * Divides r->host, "[USER@]HOST[:PORT]". An IPv6 address has brackets, with which ssh does not find
 * it. Returns false if it is malformed.
 */
static bool divide_host(struct route *r)
{
	char *at = strrchr(r->host, '@'), *host = at ? at + 1 : r->host;
	bool has_brackets = *host == '[';
	char *end = has_brackets ? strchr(host, ']') : host + strcspn(host, ":");
	char *port = end ? end + has_brackets : NULL;
	uint64_t number;

	if (!end || end == host + has_brackets || (*port && *port != ':'))
		return false;
	if (*port && (ky_parse_number(port + 1, 65535, &number) < 0 || !number))
		return false;
	if (*port)
		snprintf(r->port, sizeof(r->port), "%u", (unsigned)number);
	*end = '\0';
	if (has_brackets)
		memmove(host, host + 1, (size_t)(end - host));
	return true;
}

/* ssh://[USER@]HOST[:PORT]/DIR: DIR is below the user's home, or absolute behind "//". */
static int parse_ssh(struct cli *cli, const char *url, struct route *r)
{
	static const char *const ssh[] = {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5",
		"-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"};
	const char *rest = url + strlen("ssh://"), *slash = strchr(rest, '/');
	struct ky_buf command = {0};
	size_t n = KY_ARRAY_SIZE(ssh);
	bool valid = slash && slash[1] && *rest != '-' && (size_t)(slash - rest) < sizeof(r->host);

	if (valid)
		memcpy(r->host, rest, (size_t)(slash - rest));
	if (!valid || !divide_host(r))
		return cli_usage(cli, "'%s' is not ssh://[USER@]HOST[:PORT]/DIR", url);
	ky_buf_puts(&command, "kymo receive ");
	ky_buf_put_word(&command, slash + 1);
	if (command.error)
		return cli_fail(cli, "failed", "no memory");
	r->command = command.data;
	memcpy(r->argv, ssh, sizeof(ssh));
	if (*r->port) {
		r->argv[n++] = (char *)"-p";
		r->argv[n++] = r->port;
	}
	r->argv[n++] = (char *)"--";
	r->argv[n++] = r->host;
	r->argv[n] = r->command;
	return CLI_OK;
}

/* Returns where the path begins in "[USER@]HOST:PATH", as scp and rsync have it; or NULL. */
static const char *path_of_scp(const char *url)
{
	const char *colon = url + strcspn(url, ":/");

	return *colon == ':' && colon > url && colon[1] && strncmp(colon, "://", 3) ? colon + 1
										    : NULL;
}

static int refuse_address(struct cli *cli, const char *url)
{
	const char *path = path_of_scp(url);

	if (path)
		return cli_usage(cli, "'%s' is no address: did you mean 'ssh://%.*s/%s'?", url,
			(int)(path - url) - 1, url, path);
	return cli_usage(
		cli, "'%s' is no address: use ssh://[USER@]HOST[:PORT]/DIR or exec:COMMAND", url);
}

int route_parse(struct cli *cli, const char *url, struct route *r)
{
	*r = (struct route){0};
	if (!strncmp(url, "ssh://", 6))
		return parse_ssh(cli, url, r);
	if (!strncmp(url, "file://", 7))
		return cli_usage(cli,
			"'%s' is a directory of this host: 'kymo create --output=DIR' writes there",
			url);
	if (!strncmp(url, "net://", 6) || !strncmp(url, "net6://", 7))
		return cli_usage(cli,
			"'%s' is a relay daemon, and Kymo uses none: "
			"ssh://[USER@]HOST[:PORT]/DIR sends the trace, "
			"'kymo live' lets viewers read it",
			url);
	if (strncmp(url, "exec:", 5) != 0 || !url[5])
		return refuse_address(cli, url);
	r->argv[0] = (char *)"/bin/sh";
	r->argv[1] = (char *)"-c";
	r->argv[2] = (char *)url + 5;
	return CLI_OK;
}

void route_deinit(struct route *r)
{
	free(r->command);
}

int connection_open(const struct route *r, struct connection *c)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none;
	int pair[2], ret;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	c->fd = pair[0];
	c->err = memfd_create("kymo-ship", MFD_CLOEXEC);
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	/* A group of its own, so that all of it can be ended. */
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, pair[1], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, pair[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, c->err, STDERR_FILENO);
	ret = posix_spawnp(&c->pid, r->argv[0], &files, &attr, r->argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	close(pair[1]);
	return -ret;
}

void connection_trim(const struct connection *c)
{
	struct stat st;

	/* The command goes on writing behind it: the file gets longer, and is empty before. */
	if (fstat(c->err, &st) == 0 && st.st_blocks > SAID_MAX / 512)
		fallocate(c->err, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			st.st_size - SAID_LEFT);
}

/* Asks the command to end, and kills one that does not. */
static void stop_command(pid_t pid)
{
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};

	kill(-pid, SIGTERM);
	for (unsigned ms = 0; ms < PATIENCE_MS; ms += PAUSE_MS) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return;
		nanosleep(&pause, NULL);
	}
	kill(-pid, SIGKILL);
}

void connection_end(struct connection *c, bool done, struct ky_buf *why)
{
	static const char by_kymo[] = "kymo: ";
	char said[1024];
	const char *line;
	ssize_t n;

	close(c->fd);
	if (!done)
		stop_command(c->pid);
	while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
		;
	n = lseek(c->err, 0, SEEK_END);
	n = pread(
		c->err, said, sizeof(said) - 1, KY_MAX(n - (ssize_t)sizeof(said) + 1, (ssize_t)0));
	said[n > 0 ? n : 0] = '\0';
	line = cli_last_line(said);
	if (!strncmp(line, by_kymo, strlen(by_kymo)))
		line += strlen(by_kymo);
	/* A receiver reports its reason to both. */
	if (*line && !(why->data && strstr(why->data, line)))
		ky_buf_printf(why, ": %s", line);
	close(c->err);
}
