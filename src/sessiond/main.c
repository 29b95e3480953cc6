/* SPDX-License-Identifier: MIT */
/*
 * kymo-sessiond: keeps the sessions of one user, or of the machine; see ARCHITECTURE.md.
 */
#include <getopt.h>
#include <sys/syscall.h>

#include "base/children.h"
#include "base/paths.h"
#include "base/standard-files.h"
#include "sessiond/daemon.h"
#include "sessiond/launch.h"
#include "sessiond/model/quota.h"
#include "sessiond/preset.h"
#include "svc/log.h"
#include "svc/precedence.h"
#include "svc/print.h"
#include "svc/sigbus.h"

#define PROGRAM "kymo-sessiond"

static struct launch launch;

static const char help[] = PROGRAM
	" - manage tracing sessions, for one user or for the machine\n"
	"\n"
	"Usage: " PROGRAM " [OPTION]...\n"
	"\n"
	"Options:\n"
	"  -d, --daemonize      run in the background, log to RUNDIR/log; return when the daemon is ready\n"
	"  -b, --background     run in the background, stay attached to the terminal; return when ready\n"
	"  -S, --sig-parent     send SIGUSR1 to the parent process when the daemon is ready\n"
	"      --bound          shut down when standard input, a pipe, is closed at its other end\n"
	"      --while-used     shut down when no application and no client has been connected for a\n"
	"                       second (before the first application: five); ignore SIGTERM and SIGINT\n"
	"  -g, --group=NAME     group whose members may control root's daemon (default: tracing)\n"
	"      --max-memory-per-user=SIZE\n"
	"                       limit for the buffers and metadata of one user's applications, with K, M\n"
	"                       or G (default: half of the machine's memory)\n"
	"      --take-over      replace a daemon that runs already: it hands over its sessions, which\n"
	"                       continue meanwhile; to restart it, or to change to another version\n"
	"      --no-collectd[=NAME,..]\n"
	"                       start no collector of system state, or one that leaves out these:\n"
	"                       block, cgroup, cpu, mount, net, process, vm; see kymo-collectd(8)\n"
	"      --sessions=DIR   create the sessions in DIR/*.json that do not exist (default\n"
	"                       of the system's daemon: " PRESET_DIRECTORY ")\n"
	"      --allow-commands\n"
	"                       let triggers run commands, as the owners of the sessions\n"
	"      --no-precedence  keep the nice value (default: root's daemon changes 0 to -10)\n"
	"      --pidfile=FILE   write the daemon's process number to FILE\n"
	"  -v, --verbose        log more\n"
	"  -h, --help           show this help\n"
	"  -V, --version        show the version\n"
	"\n"
	"Environment:\n"
	"  KYMO_RUNDIR          run directory (default: /run/kymo for root; for other users\n"
	"                       $XDG_RUNTIME_DIR/kymo, or else $HOME/.kymo)\n"
	"  KYMO_CLOCK           clock of traces: monotonic or tsc\n"
	"  KYMO_LIBEXECDIR      directory of kymo-consumerd and kymo-collectd\n";

enum {
	OPT_BOUND = 256,
	OPT_WHILE_USED,
	OPT_MAX_MEMORY,
	OPT_TAKE_OVER,
	OPT_NO_COLLECTD,
	OPT_SESSIONS,
	OPT_PIDFILE,
	OPT_ALLOW_COMMANDS,
	OPT_NO_PRECEDENCE,
};

static const struct option long_options[] = {
	{"daemonize", no_argument, NULL, 'd'},
	{"background", no_argument, NULL, 'b'},
	{"sig-parent", no_argument, NULL, 'S'},
	{"bound", no_argument, NULL, OPT_BOUND},
	{"while-used", no_argument, NULL, OPT_WHILE_USED},
	{"group", required_argument, NULL, 'g'},
	{"max-memory-per-user", required_argument, NULL, OPT_MAX_MEMORY},
	{"take-over", no_argument, NULL, OPT_TAKE_OVER},
	{"no-collectd", optional_argument, NULL, OPT_NO_COLLECTD},
	{"sessions", required_argument, NULL, OPT_SESSIONS},
	{"allow-commands", no_argument, NULL, OPT_ALLOW_COMMANDS},
	{"no-precedence", no_argument, NULL, OPT_NO_PRECEDENCE},
	{"pidfile", required_argument, NULL, OPT_PIDFILE},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{0},
};

static void __attribute__((noreturn)) exit_for_misuse(const char *why)
{
	if (why)
		fprintf(stderr, PROGRAM ": %s\n", why);
	fprintf(stderr, "Try '" PROGRAM " --help'.\n");
	exit(2);
}

static void parse_options(int argc, char **argv, struct daemon_options *o)
{
	enum ky_log_level level = KY_LOG_INFO;
	int c;

	while ((c = getopt_long(argc, argv, "dbSg:vhV", long_options, NULL)) != -1) {
		switch (c) {
		case 'd':
			launch.background = launch.detach = true;
			break;
		case 'b':
			launch.background = true;
			break;
		case 'v':
			level = KY_LOG_DEBUG;
			break;
		case 'S':
			launch.sig_parent = true;
			break;
		case OPT_BOUND:
			o->bound = true;
			break;
		case OPT_WHILE_USED:
			o->while_used = true;
			break;
		case 'g':
			o->group = optarg;
			break;
		case OPT_MAX_MEMORY:
			if (quota_parse(optarg, &o->user_memory_max) < 0)
				exit_for_misuse("--max-memory-per-user wants a size, such as 512M");
			break;
		case OPT_TAKE_OVER:
			o->take_over = true;
			break;
		case OPT_NO_COLLECTD:
			o->no_collectd = !optarg;
			o->without = optarg ? optarg : "";
			break;
		case OPT_SESSIONS:
			o->sessions = optarg;
			break;
		case OPT_ALLOW_COMMANDS:
			o->allow_commands = true;
			break;
		case OPT_NO_PRECEDENCE:
			o->no_precedence = true;
			break;
		case OPT_PIDFILE:
			o->pidfile = optarg;
			break;
		case 'h':
			ky_print_and_exit(help);
		case 'V':
			ky_print_and_exit(PROGRAM " " KYMO_VERSION "\n");
		default:
			exit_for_misuse(NULL);
		}
	}
	if (optind < argc)
		exit_for_misuse("it takes no arguments");
	if (launch.detach && o->bound)
		exit_for_misuse("--bound and --daemonize exclude each other");
	ky_log_init(PROGRAM, level);
	ky_sigbus_survive();
}

/* A clock that was not meant would be in each trace. Returns false after a report. */
static bool check_clock(void)
{
	const char *wish = ky_env("KYMO_CLOCK");

	if (!wish || !strcmp(wish, "monotonic") || !strcmp(wish, "tsc"))
		return true;
	ky_error("KYMO_CLOCK is '%s': set it to monotonic or tsc, or unset it", wish);
	return false;
}

/* The daemon that serves all users must not wait while one of them keeps all processors busy. */
static bool wants_precedence(const struct daemon_options *o)
{
	return geteuid() == 0 && !o->bound && !o->while_used && !o->no_precedence;
}

/*
 * Closes all but the standard descriptors. The caller's locks and pipes must not stay open in a
 * daemon that outlives the call.
 */
static void close_inherited(void)
{
	syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
}

static struct daemon d;

static void on_ready(struct op *op, int status, const char *message)
{
	ky_debug("ready in %s", d.run.path);
	launch_ready(&launch);
	collector_start(&d.collector);
	agents_start(&d.agents);
	preset_load(&d.env, d.options.sessions);
}

int main(int argc, char **argv)
{
	struct daemon_options options = {.without = ""};
	struct op ready = {on_ready};
	int ret;

	ky_occupy_standard_files();
	ky_heed_children();
	parse_options(argc, argv, &options);
	if (!check_clock())
		return EXIT_FAILURE;
	if (launch.background || options.bound || options.while_used)
		close_inherited();
	ret = launch_begin(&launch);
	if (ret < 0) {
		ky_error("cannot start the daemon: %s", strerror(-ret));
		return EXIT_FAILURE;
	}
	options.take_over = options.take_over && !launch.restarted;
	ret = daemon_init(&d, &options);
	if (!ret) {
		d.env.users.time.rests = ky_precedence_init(
			wants_precedence(&options), launch.background || getsid(0) == getpid());
		launch_log(&launch, rundir_path(&d.run, "log"));
		ret = daemon_begin(&d, &ready);
	}
	if (!ret) {
		ret = ky_loop_run(&d.env.loop);
		if (ret < 0)
			ky_error("cannot wait for events: %s; the daemon ends", strerror(-ret));
	}
	if (!ret)
		ret = d.error;
	if (!ret && d.env.handing_over && d.n_unready) {
		ky_error("another session daemon took over before this one was ready");
		ret = -EBUSY;
	}
	daemon_deinit(&d);
	if (ret == -EBUSY)
		return KY_RUN_BUSY;
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}
