/* SPDX-License-Identifier: MIT */
/*
 * kymo-consumerd: writes one session's trace. Started by the session daemon, with a socket to
 * it as descriptor 3; or by `kymo recover`, when that is no more.
 */
#include <fcntl.h>
#include <getopt.h>
#include <linux/sched/types.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/standard-files.h"
#include "consumerd/connection.h"
#include "consumerd/consumerd.h"
#include "consumerd/recovery.h"
#include "svc/become.h"
#include "svc/log.h"
#include "svc/print.h"
#include "svc/sigbus.h"
#include "svc/unix.h"

#define DAEMON_FD 3
#define SLICE_NS  100000

static const char help[] =
	"kymo-consumerd - write the trace of one session\n"
	"\n"
	"Usage: kymo-consumerd [-v|--verbose] [--owner=UID:GID]\n"
	"       kymo-consumerd --recover=DIR [--output=TRACE]\n"
	"\n"
	"kymo-sessiond starts it, and sends its orders over a socket, descriptor 3.\n"
	"'kymo recover' starts it with --recover; paths are absolute then.\n"
	"\n"
	"Options:\n"
	"      --owner=UID:GID   become this user first\n"
	"      --recover=DIR     complete a trace from the buffers that 'kymo create --shm-path=DIR'\n"
	"                        left, and print one line about it\n"
	"      --output=TRACE    with --recover: write a new trace, and leave DIR unchanged\n"
	"  -v, --verbose         log more\n"
	"  -h, --help            show this help\n"
	"  -V, --version         show the version\n";

/* Descriptor 3, if it is a SOCK_SEQPACKET socket: made non-blocking and close-on-exec. Or -1. */
static int get_socket(void)
{
	int type = 0, flags;
	socklen_t len = sizeof(type);

	if (getsockopt(DAEMON_FD, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_SEQPACKET)
		return -1;
	flags = fcntl(DAEMON_FD, F_GETFL);
	if (flags < 0 || fcntl(DAEMON_FD, F_SETFL, flags | O_NONBLOCK) < 0 ||
		fcntl(DAEMON_FD, F_SETFD, FD_CLOEXEC) < 0)
		return -1;
	return DAEMON_FD;
}

/*
 * The daemon says when to end. Signals that a terminal or a shutdown sends to everybody must not
 * end the recording before it: it gets them as well, and finishes its sessions in good order.
 * SIGXFSZ and SIGPIPE would kill where an error is wanted.
 */
static void ignore_signals(void)
{
	static const int ignored[] = {SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ};

	for (size_t i = 0; i < KY_ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
}

/*
 * SIGTERM: without a daemon nobody else will end us, so we complete the trace. A daemon gets the
 * signal as well.
 */
static void on_signal(struct ky_loop *loop, int signo)
{
	struct consumerd *c = ky_container_of(loop, struct consumerd, loop);

	if (!c->connected)
		connection_finish(c, "SIGTERM without a session daemon");
}

static int watch_signals(struct consumerd *c)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	return ky_loop_signals(&c->loop, &set, on_signal);
}

/*
 * Rings fill while we wait for a CPU: ask for one soon and in short slices, which is no more of it.
 * Linux 6.12; elsewhere, slices are as they are.
 */
static void ask_for_short_slices(void)
{
	struct sched_attr attr = {.size = sizeof(attr), .sched_runtime = SLICE_NS};

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0 ||
		attr.sched_policy != SCHED_NORMAL)
		return;
	attr.sched_runtime = SLICE_NS;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

static int serve_daemon(void)
{
	struct consumerd consumer;
	int fd = get_socket(), ret;

	if (fd < 0) {
		ky_error(
			"descriptor %d is no socket to a session daemon: kymo-sessiond starts this "
			"program, run that instead",
			DAEMON_FD);
		return 2;
	}
	ignore_signals();
	ask_for_short_slices();
	ret = consumerd_init(&consumer);
	if (!ret)
		ret = watch_signals(&consumer);
	if (!ret)
		ret = connection_open(&consumer, fd);
	if (ret < 0)
		ky_error("cannot start: %s", strerror(-ret));
	ret = ret < 0 ? 1 : consumerd_run(&consumer);
	consumerd_deinit(&consumer);
	return ret;
}

/* owner: UID:GID. Returns 0, or -1 with errno. */
static int become_owner(const char *owner)
{
	unsigned uid, gid;
	char end;

	if (sscanf(owner, "%u:%u%c", &uid, &gid, &end) != 2) {
		errno = EINVAL;
		return -1;
	}
	return ky_become(uid, gid);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'},
		{"output", required_argument, NULL, 'o'},
		{"owner", required_argument, NULL, 'u'},
		{"recover", required_argument, NULL, 'r'},
		{"verbose", no_argument, NULL, 'v'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	const char *recovered = NULL, *output = NULL, *owner = NULL;
	enum ky_log_level level = KY_LOG_INFO;
	int opt;

	ky_occupy_standard_files();
	while ((opt = getopt_long(argc, argv, "hvV", options, NULL)) != -1) {
		switch (opt) {
		case 'h':
			ky_print_and_exit(help);
		case 'v':
			level = KY_LOG_DEBUG;
			break;
		case 'r':
			recovered = optarg;
			break;
		case 'o':
			output = optarg;
			break;
		case 'u':
			owner = optarg;
			break;
		case 'V':
			ky_print_and_exit("kymo-consumerd " KYMO_VERSION "\n");
		default:
			return 2;
		}
	}
	ky_sigbus_survive();
	ky_raise_limits();
	ky_log_init(recovered ? "kymo" : "kymo-consumerd", recovered ? KY_LOG_WARNING : level);
	if (owner && become_owner(owner) < 0) {
		ky_error("cannot become user %s: %s", owner, strerror(errno));
		return 2;
	}
	return recovered ? recovery_run(recovered, output) : serve_daemon();
}
