/* SPDX-License-Identifier: MIT */
/* recover: writes the trace of a session whose processes all died, from its buffers' files. */
#include <limits.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "cli/daemon.h"
#include "cli/locate.h"
#include "cli/params.h"

static const struct cli_option options[] = {
	{"output", 'o', "TRACE",
		"write the contents of the buffers as a trace of its own; must be new or empty"},
	{0},
};

/* The result that the consumer prints on stdout. */
struct result {
	unsigned long long recovered, discarded;
	unsigned damaged, left_out;
	char *trace; /* points into the text */
};

static int parse_result(char *text, struct result *r)
{
	int at = 0;

	sscanf(text, "recovered %llu discarded %llu damaged %u left-out %u trace %n", &r->recovered,
		&r->discarded, &r->damaged, &r->left_out, &at);
	if (!at || !strchr(text, '\n'))
		return -EBADMSG;
	r->trace = text + at;
	*strrchr(text, '\n') = '\0';
	return 0;
}

/* Reads a file as a text. The caller frees it. Returns NULL if there is no memory. */
static char *read_all(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text = size < 0 ? NULL : malloc((size_t)size + 1);
	ssize_t n = text ? pread(fd, text, (size_t)size, 0) : 0;

	if (text)
		text[n > 0 ? n : 0] = '\0';
	return text;
}

/* Runs a consumer that recovers dir. Returns its wait status, or -errno. */
static int run_consumer(char *path, char *dir, const char *output, int out, int err)
{
	char output_option[PATH_MAX + 16], dir_option[PATH_MAX + 16];
	char *argv[] = {path, dir_option, output ? output_option : NULL, NULL};
	posix_spawn_file_actions_t files;
	int status = 0, r;
	pid_t pid;

	snprintf(dir_option, sizeof(dir_option), "--recover=%s", dir);
	snprintf(output_option, sizeof(output_option), "--output=%s", output ? output : "");
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
	r = posix_spawn(&pid, path, &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	if (r)
		return -r;
	cli_report_slow("writing what the buffers hold");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	cli_report_slow(NULL);
	return status;
}

static int fail_recovery(struct cli *cli, char *said)
{
	const char *line = cli_last_line(said);

	return cli_fail(cli, "failed", "%s",
		*line ? cli_log_text(line)
		      : "kymo-consumerd ended before it had finished: try again");
}

static int report_recovered(struct cli *cli, const struct result *r)
{
	_cleanup_value_ struct kymo_value *o = cli_params_new(cli);

	if (!o)
		return CLI_FAILED;
	kymo_value_set_string(o, "output", r->trace);
	kymo_value_set_u64(o, "recovered", r->recovered);
	kymo_value_set_u64(o, "discarded", r->discarded);
	kymo_value_set_u64(o, "damaged", r->damaged);
	kymo_value_set_u64(o, "left_out", r->left_out);
	if (cli->json)
		cli_result(cli, o);
	else
		printf("%llu event%s recovered%s %s\n", r->recovered, r->recovered == 1 ? "" : "s",
			cli_has(cli, "output") ? ", in" : ": they complete the trace",
			cli_safe(cli, r->trace));
	return CLI_OK;
}

static int recover(struct cli *cli, char *path, char *dir, const char *output)
{
	_cleanup_close_ int out = memfd_create("kymo-out", MFD_CLOEXEC),
			    err = memfd_create("kymo-err", MFD_CLOEXEC);
	int r = out < 0 || err < 0 ? -errno : run_consumer(path, dir, output, out, err);
	_cleanup_free_ char *text = read_all(out), *said = read_all(err);
	struct result result;

	if (r < 0 || !text || !said)
		return cli_fail(
			cli, "failed", "cannot run %s: %s", path, strerror(r < 0 ? -r : ENOMEM));
	if (r || parse_result(text, &result) < 0)
		return fail_recovery(cli, said);
	/* The consumer has emptied it, unless work is left, but may not remove it itself. */
	if (!output)
		rmdir(dir);
	cli_warn_log(cli, said);
	return report_recovered(cli, &result);
}

static int run_recover(struct cli *cli)
{
	char path[PATH_MAX], dir[PATH_MAX], output[PATH_MAX];
	const char *given = cli_get(cli, "output");
	int r = cli_locate_consumerd(path, sizeof(path));

	if (r < 0)
		return cli_fail(cli, "failed",
			"kymo-consumerd was not found: is kymo installed completely?");
	r = cli_absolute_path(dir, sizeof(dir), cli_arg(cli, 0));
	if (!r && given)
		r = cli_absolute_path(output, sizeof(output), given);
	return r < 0 ? cli_fail(cli, "failed", "%s: %s", cli_arg(cli, 0), strerror(-r))
		     : recover(cli, path, dir, given ? output : NULL);
}

const struct cli_command cmd_recover = {
	.name = "recover",
	.synopsis = "DIR [-o TRACE]",
	.help = "complete the trace of a session that was killed, from its buffers",
	.details =
		"Use it for a session that was created with 'kymo create --shm-path=DIR', after the session daemon, its\n"
		"consumer and the applications were all killed. The command completes the session's trace, and removes\n"
		"DIR.\n"
		"With --output, it writes all that the buffers hold to a new trace, and does not change DIR. DIR may\n"
		"then be a copy that was made at any time. The session's own trace may have some of these events, too.\n",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.run = run_recover,
};
