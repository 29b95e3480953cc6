/* SPDX-License-Identifier: MIT */
/*
 * Processes and their threads: kymo_process:process, :thread and, last, :processes, in a state
 * dump; and kymo_process:ended, when the session daemon has seen the end of a program. The state
 * dump has all data that every user can read in /proc. A process that exits while it is being read
 * is left out.
 */
#include "collectd/process.h"

#include <kymo/tracepoint.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "collectd/provider.h"
#include "collectd/text.h"

#define NAME_MAX_BYTES 72	  /* kernel threads have long names */
#define STATUS_MAX     (64 << 10) /* for some thousand groups */

struct process {
	pid_t pid, ppid;
	pid_t vpid; /* in its own PID namespace */
	uint32_t uid;
	uint64_t start_ticks; /* since the system started */
	uint64_t pid_ns;      /* inode of that namespace, 0: not visible to this user */
	char name[NAME_MAX_BYTES];
	char cgroup[CGROUP_MAX];
};

struct count {
	uint32_t n, n_threads;
};

/* Reads "0::/user.slice" or, in version 1, lines as "8:pids,cpu:/docker/1234". */
void process_cgroup(pid_t pid, char path[CGROUP_MAX])
{
	char text[8 * CGROUP_MAX], *line, *rest, *p;

	*path = '\0';
	text_read(text, sizeof(text), "/proc/%d/cgroup", (int)pid);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		p = strchr(line, ':');
		p = p ? strchr(p + 1, ':') : NULL;
		if (p && strlen(p + 1) > strlen(path))
			snprintf(path, CGROUP_MAX, "%s", p + 1);
	}
}

/* Parses "17 (a name) S 1 ..": a name may contain any character, also parentheses. */
static bool take_stat(struct process *p, const char *stat)
{
	const char *name = strchr(stat, '('), *end = strrchr(stat, ')');
	unsigned long long start;

	if (!name || !end ||
		sscanf(end,
			") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
			"%*d %llu",
			&p->ppid, &start) != 2)
		return false;
	p->start_ticks = start;
	snprintf(p->name, sizeof(p->name), "%.*s", (int)(end - name - 1), name + 1);
	return true;
}

/*
 * Returns the last number of "NSpid: 4711 12 1"; a kernel without PID namespaces has no such line.
 */
static pid_t innermost(const char *status, pid_t otherwise)
{
	const char *value = text_value(status, "\nNSpid:");
	size_t len = value ? strcspn(value, "\n") : 0;

	while (len && value[len - 1] != '\t')
		len--;
	return value ? (pid_t)atoi(value + len) : otherwise;
}

static bool read_process(struct process *p, pid_t pid)
{
	char text[STATUS_MAX];
	const char *uids;
	struct stat st;

	p->pid = pid;
	text_read(text, sizeof(text), "/proc/%d/stat", (int)pid);
	if (!take_stat(p, text))
		return false;
	text_read(text, sizeof(text), "/proc/%d/status", (int)pid);
	uids = text_value(text, "\nUid:");
	if (!uids || sscanf(uids, "%*u %u", &p->uid) != 1)
		return false;
	p->vpid = innermost(text, pid);
	snprintf(text, sizeof(text), "/proc/%d/ns/pid", (int)pid);
	p->pid_ns = stat(text, &st) ? 0 : st.st_ino;
	process_cgroup(pid, p->cgroup);
	return true;
}

/* Reads the thread's number in the process's namespace only if it may differ. */
static pid_t vtid_of(const struct process *p, pid_t tid)
{
	char text[STATUS_MAX];

	if (p->vpid == p->pid)
		return tid;
	text_read(text, sizeof(text), "/proc/%d/task/%d/status", (int)p->pid, (int)tid);
	return innermost(text, tid);
}

struct threads {
	const struct process *process;
	uint32_t *n;
};

static void record_thread(pid_t tid, void *data)
{
	const struct threads *t = data;
	char name[NAME_MAX_BYTES];

	if (text_read_line(name, sizeof(name), "/proc/%d/task/%d/comm", (int)t->process->pid,
		    (int)tid) < 0)
		return;
	(*t->n)++;
	kymo_event(kymo_process, thread, kymo_i32(tid, tid), kymo_i32(pid, t->process->pid),
		kymo_i32(vtid, vtid_of(t->process, tid)), kymo_string(name, name));
}

static void record_threads(const struct process *p, uint32_t *n)
{
	struct threads threads = {p, n};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)p->pid);
	text_each_number(path, record_thread, &threads);
}

static void record_process(pid_t pid, void *data)
{
	struct count *count = data;
	struct process p;

	if (!read_process(&p, pid))
		return;
	count->n++;
	kymo_event(kymo_process, process, kymo_i32(pid, p.pid), kymo_i32(ppid, p.ppid),
		kymo_i32(vpid, p.vpid), kymo_string(name, p.name), kymo_u32(uid, p.uid),
		kymo_u64(start_time, p.start_ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK))),
		kymo_u64(pid_ns, p.pid_ns), kymo_string(cgroup, p.cgroup));
	if (kymo_event_enabled(kymo_process, thread))
		record_threads(&p, &count->n_threads);
}

static void record_state(void)
{
	struct count count = {0};

	if (!kymo_event_enabled(kymo_process, process) &&
		!kymo_event_enabled(kymo_process, thread) &&
		!kymo_event_enabled(kymo_process, processes))
		return;
	text_each_number("/proc", record_process, &count);
	kymo_event(kymo_process, processes, kymo_u32(n, count.n),
		kymo_u32(n_threads, count.n_threads),
		kymo_u64(boot_time, ky_clock_ns(CLOCK_REALTIME) - ky_clock_ns(CLOCK_BOOTTIME)));
}

static void record_end(const struct ky_ended *e)
{
	bool known = e->status != KY_ENDED_UNKNOWN, exited = known && WIFEXITED(e->status);

	kymo_event(kymo_process, ended, kymo_i32(pid, e->pid), kymo_string(name, e->name),
		kymo_u32(uid, e->uid), kymo_i32(exit_status, exited ? WEXITSTATUS(e->status) : -1),
		kymo_i32(signal, !known	  ? -1
				 : exited ? 0
					  : WTERMSIG(e->status)),
		kymo_bool(dumped_core, known && WCOREDUMP(e->status)),
		kymo_u32(n_missed, e->n_missed));
}

const struct provider process_provider = {
	.name = "process", .record_state = record_state, .ended = record_end};
