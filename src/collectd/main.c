/* SPDX-License-Identifier: MIT */
/*
 * kymo-collectd: the state of the system as events. The session daemon starts it, and it is an
 * ordinary application: it records changes (live events), and reports the existing state to
 * sessions that start (state dumps).
 *
 * One thread sleeps until the kernel or the daemon sends something. State dumps run in libkymo's
 * thread, which calls one provider after the other. A provider does nothing while no session
 * records its events.
 */
#include <fcntl.h>
#include <getopt.h>
#include <kymo/statedump.h>

#include "base/standard-files.h"
#include "collectd/uevents.h"
#include "svc/log.h"
#include "svc/print.h"

static const char help[] =
	"kymo-collectd - record the state of the system\n"
	"\n"
	"Usage: kymo-collectd [--without=NAME[,NAME]...] FIFO\n"
	"\n"
	"kymo-sessiond starts it. It writes a byte to FIFO when it is ready, and ends when its standard\n"
	"input, a pipe, is closed at its other end.\n"
	"\n"
	"Options:\n"
	"      --without=NAME   leave out the events kymo_NAME:*; NAME is one of\n"
	"                       block    block devices and partitions\n"
	"                       cgroup   containers, by their control groups\n"
	"                       cpu      processors\n"
	"                       mount    mounted file systems\n"
	"                       net      network interfaces\n"
	"                       process  processes and their threads\n"
	"                       vm       virtual machines of KVM\n"
	"  -h, --help           show this help\n"
	"  -V, --version        show the version\n";

/* In the order in which a state dump reports them. */
static const struct provider *providers[] = {
	&cpu_provider,
	&block_provider,
	&net_provider,
	&mount_provider,
	&process_provider,
	&cgroup_provider,
	&vm_provider,
};
static size_t n_providers = KY_ARRAY_SIZE(providers);

static void record_state(void *data)
{
	for (size_t i = 0; i < n_providers; i++)
		if (providers[i]->record_state)
			providers[i]->record_state();
}

static struct kymo_statedump state = {sizeof(state), 0, record_state, NULL};

static int start_providers(struct ky_loop *loop)
{
	int ret;

	uevents_start(loop, providers, n_providers);
	for (size_t i = 0; i < n_providers; i++)
		if (providers[i]->start)
			providers[i]->start(loop);
	ret = kymo_statedump_register(&state);
	if (ret < 0)
		ky_error("cannot register the state dump: %s", strerror(-ret));
	return ret;
}

static void stop_providers(void)
{
	kymo_statedump_unregister(&state);
	for (size_t i = 0; i < n_providers; i++)
		if (providers[i]->stop)
			providers[i]->stop();
	uevents_stop();
}

/* A message of the daemon is shorter than PIPE_BUF: it comes whole. */
static void daemon_wrote(struct ky_watch *w, uint32_t events)
{
	struct ky_ended ended;
	ssize_t n = read(w->fd, &ended, sizeof(ended));

	if (n <= 0)
		ky_loop_stop(w->loop);
	ended.name[sizeof(ended.name) - 1] = '\0';
	for (size_t i = 0; i < n_providers && n == sizeof(ended); i++)
		if (providers[i]->ended)
			providers[i]->ended(&ended);
}

static int report_ready(const char *path)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && write(fd, "", 1) == 1)
		return 0;
	ky_error("cannot report to the session daemon through %s: %s", path, strerror(errno));
	return -errno;
}

static int run_collector(const char *fifo)
{
	struct ky_watch life = {0};
	struct ky_loop loop;
	int ret = ky_loop_init(&loop);

	if (ret < 0)
		return ret;
	ret = ky_watch_add(&loop, &life, STDIN_FILENO, EPOLLIN, daemon_wrote);
	if (ret < 0)
		ky_error("standard input is no pipe: kymo-sessiond starts this program");
	if (!ret)
		ret = start_providers(&loop);
	if (!ret)
		ret = report_ready(fifo);
	if (!ret)
		ret = ky_loop_run(&loop);
	stop_providers();
	ky_watch_remove(&life);
	ky_loop_deinit(&loop);
	return ret;
}

static void __attribute__((noreturn)) exit_with_usage(const char *why)
{
	if (why)
		fprintf(stderr, "kymo-collectd: %s; ", why);
	fprintf(stderr, "try 'kymo-collectd --help'\n");
	exit(2);
}

static void leave_out(const char *name)
{
	for (size_t i = 0; i < n_providers; i++) {
		if (strcmp(providers[i]->name, name) != 0)
			continue;
		n_providers--;
		memmove(providers + i, providers + i + 1, (n_providers - i) * sizeof(*providers));
		return;
	}
	fprintf(stderr, "kymo-collectd: unknown kind '%s' in --without; ", name);
	exit_with_usage(NULL);
}

static void parse_options(int argc, char **argv)
{
	static const struct option options[] = {
		{"without", required_argument, NULL, 'w'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{0},
	};
	char *name, *rest;
	int c;

	while ((c = getopt_long(argc, argv, "hV", options, NULL)) != -1) {
		switch (c) {
		case 'w':
			for (name = strtok_r(optarg, ",", &rest); name;
				name = strtok_r(NULL, ",", &rest))
				leave_out(name);
			break;
		case 'h':
			ky_print_and_exit(help);
		case 'V':
			ky_print_and_exit("kymo-collectd " KYMO_VERSION "\n");
		default:
			exit_with_usage(NULL);
		}
	}
	if (optind + 1 != argc)
		exit_with_usage("one argument, a FIFO, is needed");
}

int main(int argc, char **argv)
{
	ky_occupy_standard_files();
	ky_log_init("kymo-collectd", KY_LOG_INFO);
	parse_options(argc, argv);
	return run_collector(argv[optind]) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
