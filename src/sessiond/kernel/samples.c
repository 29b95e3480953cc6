/* SPDX-License-Identifier: MIT */
#include "sessiond/kernel/samples.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "abi/kernel.h"
#include "base/text.h"
#include "ctf/tsdl.h"
#include "kernel/perf-record.h"
#include "proto/consumer.h"
#include "sessiond/model/env.h"
#include "sessiond/model/session.h"

#define PARANOID    "/proc/sys/kernel/perf_event_paranoid"
#define RATE_MOST   "/proc/sys/kernel/perf_event_max_sample_rate"
#define FORMAT_LOST (UINT64_C(1) << 4) /* PERF_FORMAT_LOST, Linux 6.0 */

/* Returns the number in a file, or -1000. */
static long read_number(const char *path)
{
	FILE *f = fopen(path, "re");
	long n;

	if (!f || fscanf(f, "%ld", &n) != 1)
		n = -1000;
	if (f)
		fclose(f);
	return n;
}

static int open_event(const struct samples *s, pid_t pid, int cpu)
{
	struct perf_event_attr attr;
	int fd;

	ky_perf_attr(&attr, s->frequency, s->hardware, s->kernel, !s->ns);
	if (!s->has_build_ids)
		ky_perf_attr_without_build_id(&attr);
	attr.read_format = s->counts_lost ? FORMAT_LOST : 0;
	fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Gives up what the kernel has refused, one thing at a time. Returns false if nothing is left. */
static bool demand_less(struct samples *s, int error)
{
	bool *what = error == -EINVAL && s->counts_lost	   ? &s->counts_lost
		     : error == -EINVAL			   ? &s->has_build_ids
		     : error == -EACCES || error == -EPERM ? &s->kernel
							   : &s->hardware;
	bool had = *what;

	*what = false;
	return had;
}

static int refuse_samples(char why[SAMPLES_WHY_MAX], int error, const struct samples *s)
{
	long paranoid = read_number(PARANOID), most = read_number(RATE_MOST);

	if (error == -EINVAL && most > 0 && s->frequency > most)
		snprintf(why, SAMPLES_WHY_MAX,
			"this system allows %ld CPU samples a second (kernel.perf_event_max_sample_rate): use --sample=%ld or less",
			most, most);
	else if ((error == -EACCES || error == -EPERM) && paranoid > 2)
		snprintf(why, SAMPLES_WHY_MAX,
			"CPU samples need kernel.perf_event_paranoid 2 or less, and it is %ld: sudo sysctl kernel.perf_event_paranoid=2",
			paranoid);
	else if (error == -EACCES || error == -EPERM)
		snprintf(why, SAMPLES_WHY_MAX,
			"CPU samples are forbidden here: a container or a security module refuses perf_event_open");
	else if (error == -ENOSYS)
		snprintf(why, SAMPLES_WHY_MAX,
			"this kernel has no CPU samples (CONFIG_PERF_EVENTS)");
	else
		snprintf(
			why, SAMPLES_WHY_MAX, "CPU samples are not possible: %s", strerror(-error));
	return error;
}

/* Opens an event of our own, to see what the kernel allows. */
static int try(struct samples *s, char why[SAMPLES_WHY_MAX])
{
	int fd = -1;

	s->hardware = s->kernel = s->has_build_ids = s->counts_lost = true;
	do
		fd = open_event(s, 0, -1);
	while (fd < 0 && demand_less(s, fd));
	if (fd < 0)
		return refuse_samples(why, fd, s);
	close(fd);
	return 0;
}

static int make_memory(struct samples *s)
{
	uint64_t size = ky_kernel_memory_size(s->n_cpus, KY_PERF_PAGE_SIZE);
	int fd = memfd_create("kymo-samples", MFD_CLOEXEC);

	s->memory_fd = fd;
	return fd < 0 || ftruncate(fd, (off_t)size) < 0 ? -errno : 0;
}

static int describe_samples(struct samples *s)
{
	struct ky_buf text = {0};
	int ret = registry_get(s->session, 0, KERNEL_ABI, &s->registry);

	if (ret < 0)
		return ret;
	s->stream_id = s->registry->n_streams++;
	ky_tsdl_stream(&text, s->stream_id, KY_SET_PER_CPU, false);
	ky_perf_describe(&text, s->stream_id);
	ret = registry_append(s->registry, &text);
	ky_buf_deinit(&text);
	return ret;
}

int samples_make(struct session *session, uint32_t frequency, char why[SAMPLES_WHY_MAX])
{
	struct samples *s = calloc(1, sizeof(*s));
	int ret = s ? 0 : -ENOMEM;

	*why = '\0';
	if (s) {
		s->session = session;
		s->frequency = frequency;
		s->n_cpus = session->env->n_cpus;
		s->memory_fd = -1;
		s->fds = calloc(s->n_cpus, sizeof(*s->fds));
		s->maps = calloc(s->n_cpus, sizeof(*s->maps));
		ret = s->fds && s->maps ? 0 : -ENOMEM;
		for (uint32_t i = 0; s->fds && i < s->n_cpus; i++)
			s->fds[i] = -1;
	}
	if (!ret && session->clock.clock != KY_CLOCK_MONOTONIC) {
		s->clock_at = ky_clock_read(session->clock.clock);
		s->ns = ky_clock_ns(CLOCK_MONOTONIC_RAW);
	}
	if (!ret)
		ret = try(s, why);
	if (!ret)
		ret = make_memory(s);
	if (!ret)
		ret = describe_samples(s);
	if (ret < 0) {
		if (!*why)
			snprintf(why, SAMPLES_WHY_MAX, "CPU samples are not possible: %s",
				strerror(-ret));
		samples_free(s);
		return ret;
	}
	s->number = env_next_number(session->env);
	session->samples = s;
	OBSERVE(session->env, samples_made, s);
	return 0;
}

/* A consumer that is started later maps the same buffer. */
static int open_cpu(struct samples *s, pid_t pid, uint32_t cpu)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE) + KY_PERF_RING;
	int fd = open_event(s, pid, (int)cpu);
	void *map;
	int error;

	if (fd < 0)
		return fd == -ENODEV ? 0 : fd; /* the CPU is offline */
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		error = errno;
		close(fd);
		return error == EPERM ? -ENOBUFS : -error;
	}
	s->fds[cpu] = fd;
	s->maps[cpu] = map;
	return 0;
}

int samples_begin(struct samples *s, pid_t pid, char why[SAMPLES_WHY_MAX])
{
	int ret = 0;

	for (uint32_t i = 0; i < s->n_cpus && !ret; i++)
		ret = s->fds[i] < 0 ? open_cpu(s, pid, i) : -EBUSY;
	if (ret == -ENOBUFS)
		snprintf(why, SAMPLES_WHY_MAX,
			"CPU samples have no buffers: others use what kernel.perf_event_mlock_kb allows to a user");
	else if (ret < 0)
		refuse_samples(why, ret, s);
	OBSERVE(s->session->env, samples_begun, s);
	return ret;
}

void samples_stop(struct samples *s)
{
	for (uint32_t i = 0; i < s->n_cpus; i++)
		if (s->fds[i] >= 0)
			ioctl(s->fds[i], PERF_EVENT_IOC_DISABLE, 0);
}

struct samples *samples_free(struct samples *s)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE) + KY_PERF_RING;

	for (uint32_t i = 0; s && s->maps && s->fds && i < s->n_cpus; i++) {
		if (s->maps[i])
			munmap(s->maps[i], size);
		ky_close(s->fds[i]);
	}
	if (s) {
		ky_close(s->memory_fd);
		free(s->fds);
		free(s->maps);
		free(s);
	}
	return NULL;
}
