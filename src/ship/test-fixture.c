/* SPDX-License-Identifier: MIT */
#include "ship/test-fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctf/index.h"
#include "ship/receiver.h"

char top[64];

/* --- calls that change files --- */

static enum fate fate;
static long calls_left;

/* Returns false if the disk is full. */
static bool may_go_on(void)
{
	if (fate == FATE_NONE || calls_left-- > 0)
		return true;
	if (fate == FATE_KILLED)
		raise(SIGKILL);
	return false;
}

ssize_t __real_pwrite64(int fd, const void *p, size_t n, off64_t at);
ssize_t __wrap_pwrite64(int fd, const void *p, size_t n, off64_t at);
int __real_ftruncate64(int fd, off64_t size);
int __wrap_ftruncate64(int fd, off64_t size);
int __real_renameat(int a, const char *from, int b, const char *to);
int __wrap_renameat(int a, const char *from, int b, const char *to);
int __real_mkdirat(int dir, const char *path, mode_t mode);
int __wrap_mkdirat(int dir, const char *path, mode_t mode);

/* Tests of many connections do not wait for the disk. */
int __wrap_fdatasync(int fd);
int __wrap_syncfs(int fd);

int __wrap_fdatasync(int fd)
{
	return 0;
}

int __wrap_syncfs(int fd)
{
	return 0;
}

/* A part of the bytes is written before the end. */
ssize_t __wrap_pwrite64(int fd, const void *p, size_t n, off64_t at)
{
	const bool last = fate != FATE_NONE && calls_left == 0;

	if (last && n > 1)
		__real_pwrite64(fd, p, n / 2, at);
	if (may_go_on())
		return __real_pwrite64(fd, p, n, at);
	errno = ENOSPC;
	return -1;
}

int __wrap_ftruncate64(int fd, off64_t size)
{
	if (fate == FATE_KILLED)
		may_go_on();
	return __real_ftruncate64(fd, size);
}

int __wrap_renameat(int a, const char *from, int b, const char *to)
{
	if (fate == FATE_KILLED)
		may_go_on();
	return __real_renameat(a, from, b, to);
}

int __wrap_mkdirat(int dir, const char *path, mode_t mode)
{
	if (may_go_on())
		return __real_mkdirat(dir, path, mode);
	errno = ENOSPC;
	return -1;
}

/* --- a trace that grows --- */

void make_trace(struct made *m, const char *name)
{
	char path[128];
	const char *const dirs[] = {"", "/ust", "/ust/uid", "/ust/uid/0", "/ust/uid/0/index"};
	const struct ky_index_header h = {KY_INDEX_MAGIC, KY_INDEX_VERSION, 48, 0};

	*m = (struct made){.seed = SEED};
	for (size_t i = 0; i < KY_ARRAY_SIZE(dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s%s", top, name, dirs[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	snprintf(path, sizeof(path), "%s/%s", top, name);
	m->dir = open(path, O_RDONLY | O_DIRECTORY);
	m->stream = openat(m->dir, "ust/uid/0/channel0_0", O_RDWR | O_CREAT, 0644);
	m->index = openat(m->dir, "ust/uid/0/index/channel0_0.kyx", O_RDWR | O_CREAT, 0644);
	m->metadata = openat(m->dir, "ust/uid/0/metadata", O_RDWR | O_CREAT | O_APPEND, 0644);
	assert_true(m->dir >= 0 && m->stream >= 0 && m->index >= 0 && m->metadata >= 0);
	assert_int_equal(write(m->index, &h, sizeof(h)), sizeof(h));
}

void free_trace(struct made *m)
{
	close(m->dir);
	close(m->stream);
	close(m->index);
	close(m->metadata);
}

void add_packet(struct made *m, size_t size)
{
	struct ky_index_entry e = {.offset = m->size, .size = size, .n_events = 1};
	char text[64], *bytes = malloc(size);

	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)rand_r(&m->seed);
	snprintf(text, sizeof(text), "event {\n\tid = %llu;\n};\n", (unsigned long long)m->n);
	assert_int_equal(write(m->metadata, text, strlen(text)), strlen(text));
	assert_int_equal(write(m->stream, bytes, size), size);
	assert_int_equal(write(m->index, &e, sizeof(e)), sizeof(e));
	m->size += size;
	m->n++;
	free(bytes);
}

/* --- both ends --- */

static pid_t start_receiver(int fd, const char *far, enum fate f, long calls)
{
	pid_t pid = fork();
	struct receiver r;
	int ret;

	if (pid)
		return pid;
	fate = f;
	calls_left = calls;
	receiver_init(&r, open(far, O_RDONLY | O_DIRECTORY));
	r.in = r.out = fd;
	ret = receiver_serve(&r);
	_exit(ret > 0 ? 0 : 1);
}

int connection(struct sender *s, const char *far, enum fate f, long calls)
{
	int pair[2], ret, status;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = start_receiver(pair[1], far, f, calls);
	close(pair[1]);
	ret = sender_run(s, pair[0], -1);
	close(pair[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return ret;
}

void make_far(char far[128], const char *name)
{
	snprintf(far, 128, "%s/%s", top, name);
	assert_int_equal(mkdir(far, 0755), 0);
}

int make_top(void **state)
{
	strcpy(top, "/tmp/kymo-test-ship-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

int remove_top(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	return system(command);
}
