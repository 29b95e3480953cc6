/* SPDX-License-Identifier: MIT */
/* receive: the other end of 'kymo ship', on its standard input and output. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/params.h"
#include "confine/confine.h"
#include "ship/receiver.h"

static const struct cli_option options[] = {
	{"max", 0, "SIZE", "accept at most so many bytes of a trace; K, M and G may follow"},
	{"sync", 0, NULL, "acknowledge data only when it is on the disk"},
	{0},
};

/* A sender can reach nothing but the directory, even if it takes over this process. */
static void confine_to_dir(const int *dir)
{
	const struct ky_confinement c = {.dirs = dir, .n_dirs = 1, .writes = true};

	ky_confine_files(&c);
	ky_confine_calls(&c);
}

static int receive_trace(struct cli *cli, int dir, uint64_t max)
{
	struct receiver r;
	int ret, code = CLI_OK;

	confine_to_dir(&dir);
	receiver_init(&r, dir);
	r.max = max;
	r.sync = cli_has(cli, "sync");
	r.in = STDIN_FILENO;
	r.out = STDOUT_FILENO;
	ret = receiver_serve(&r);
	if (ret < 0)
		code = cli_fail(cli, "failed", "%s", r.why);
	else if (!ret)
		code = cli_fail(cli, "failed", "the connection ended before all data had arrived");
	receiver_deinit(&r);
	return code;
}

static int run_receive(struct cli *cli)
{
	const char *path = cli_arg(cli, 0);
	_cleanup_close_ int dir = -1;
	uint64_t max = UINT64_MAX;
	int code = cli_read_amount(cli, "max", CLI_SIZE, 0, UINT64_MAX, &max);

	if (code)
		return code;
	if (cli->json)
		return cli_usage(cli, "--json is not possible: standard output is the connection");
	signal(SIGPIPE, SIG_IGN);
	if (mkdir(path, 0750) < 0 && errno != EEXIST)
		return cli_fail(cli, "failed", "cannot make %s: %s", path, strerror(errno));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? cli_fail(cli, "failed", "cannot open %s: %s", path, strerror(errno))
		       : receive_trace(cli, dir, max);
}

const struct cli_command cmd_receive = {
	.name = "receive",
	.synopsis = "DIR [--max=SIZE] [--sync]",
	.help = "receive a trace from 'kymo ship', on standard input",
	.details =
		"'kymo ship' runs this command on the other host. The trace is written to a directory below DIR, and can\n"
		"be read at any time. 'restrict,command=\"kymo receive traces\"' in authorized_keys permits a key to run\n"
		"nothing else.\n",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.run = run_receive,
};
