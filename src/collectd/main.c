/* SPDX-License-Identifier: MIT */
/*
 * kymo-collectd: the state of the system as events. Started by the session daemon, and a traced program like any other:
 * what it watches it records (live events), and what there is already it tells sessions that start (state dumps).
 *
 * One thread sleeps until the kernel or the daemon has something to say; state dumps come in libkymo's thread.
 */
#include <fcntl.h>

#include "collectd/vm.h"
#include "svc/log.h"

static const char help[] =
	"Usage: kymo-collectd FIFO\n"
	"Records the state of the system, virtual machines, for the sessions of a session daemon. Started by\n"
	"kymo-sessiond, not by hand: writes a byte into FIFO when it is ready, and ends when its standard\n"
	"input, a pipe, is closed at the other end.\n";

static void daemon_gone(struct ky_watch *w, uint32_t events)
{
	char byte;

	if (read(w->fd, &byte, 1) <= 0)
		ky_loop_stop(w->loop);
}

static int tell_ready(const char *path)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && write(fd, "", 1) == 1)
		return 0;
	ky_error("cannot tell the session daemon by %s: %s", path, strerror(errno));
	return -errno;
}

static int run(const char *fifo)
{
	struct ky_watch life = {0};
	struct ky_loop loop;
	int ret = ky_loop_init(&loop);

	if (ret < 0)
		return ret;
	ret = ky_watch_add(&loop, &life, STDIN_FILENO, EPOLLIN, daemon_gone);
	if (ret < 0)
		ky_error("standard input is no pipe: kymo-sessiond starts this program");
	if (!ret)
		ret = vm_start(&loop);
	if (!ret)
		ret = tell_ready(fifo);
	if (!ret)
		ret = ky_loop_run(&loop);
	vm_stop();
	ky_watch_remove(&life);
	ky_loop_deinit(&loop);
	return ret;
}

int main(int argc, char **argv)
{
	ky_log_init("kymo-collectd", KY_LOG_INFO);
	if (argc == 2 && !strcmp(argv[1], "--help"))
		return fputs(help, stdout) < 0 || fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
	if (argc != 2 || argv[1][0] == '-') {
		fprintf(stderr,
			"kymo-collectd: one argument, a FIFO, is needed; try 'kymo-collectd --help'\n");
		return 2;
	}
	return run(argv[1]) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
