/* SPDX-License-Identifier: MIT */
#include "sessiond/kernel/statedump.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "abi/kernel.h"
#include "base/small-file.h"
#include "kernel/program.h"
#include "sessiond/kernel/dump-room.h"

#define PART_MAX    (60u << 10) /* bytes in a message */
#define THREADS_MAX 16384u	/* of all users but root */
#define FILES_MAX   32768u	/* likewise */

/* Kinds of namespaces, as /proc/PID/ns names them. */
enum { NS_PID, NS_USER, NS_CGROUP, NS_IPC, NS_MNT, NS_NET, NS_TIME, NS_UTS, N_NS };
static const char *const namespace_names[N_NS] = {
	[NS_PID] = "pid",
	[NS_USER] = "user",
	[NS_CGROUP] = "cgroup",
	[NS_IPC] = "ipc",
	[NS_MNT] = "mnt",
	[NS_NET] = "net",
	[NS_TIME] = "time",
	[NS_UTS] = "uts",
};

/* In the order of their identifiers. */
enum {
	DUMP_START,
	DUMP_END,
	DUMP_PROCESS,
	DUMP_FILE,
	DUMP_INTERRUPT,
	DUMP_BLOCK,
	DUMP_NETWORK,
	DUMP_CPU,
	DUMP_NAMESPACES, /* and those of the other kinds */
	N_DUMPS = DUMP_NAMESPACES + N_NS,
};

#define INT(name, bytes)                                                                           \
	{                                                                                          \
		KYMO_FIELD_INT, 0, bytes, 0, 0, name, NULL                                         \
	}
#define UINT(name, bytes)                                                                          \
	{                                                                                          \
		KYMO_FIELD_UINT, 0, bytes, 0, 0, name, NULL                                        \
	}
#define TEXT(name, bytes)                                                                          \
	{                                                                                          \
		KYMO_FIELD_TEXT, KYMO_FIELD_UINT, 1, 0, bytes, name, NULL                          \
	}

static const struct kymo_field no_fields[] = {{0}};
static const struct kymo_field process_fields[] = {INT("tid", 4), INT("pid", 4), INT("ppid", 4),
	TEXT("name", 16), INT("type", 4), INT("mode", 4), INT("submode", 4), INT("status", 4),
	UINT("cpu", 4), UINT("file_table_address", 8), {0}};

#define STRING(name)                                                                               \
	{                                                                                          \
		KYMO_FIELD_STRING, 0, 0, 0, 0, name, NULL                                          \
	}
static const struct kymo_field file_fields[] = {INT("pid", 4), UINT("file_table_address", 8),
	INT("fd", 4), UINT("flags", 4), UINT("fmode", 4), STRING("filename"), {0}};
static const struct kymo_field interrupt_fields[] = {
	UINT("irq", 4), STRING("name"), STRING("action"), INT("tid", 4), {0}};
static const struct kymo_field block_fields[] = {UINT("dev", 4), STRING("diskname"), {0}};
static const struct kymo_field network_fields[] = {STRING("name"), UINT("address_ipv4", 4), {0}};
static const struct kymo_field cpu_fields[] = {STRING("architecture"), UINT("cpu_id", 2),
	STRING("vendor"), UINT("family", 1), UINT("model", 1), STRING("model_name"),
	UINT("physical_id", 2), UINT("core_id", 2), UINT("cores", 2), {0}};
static const struct kymo_field pid_ns_fields[] = {INT("tid", 4), INT("vtid", 4), INT("vpid", 4),
	INT("vppid", 4), INT("ns_level", 4), UINT("ns_inum", 4), {0}};
static const struct kymo_field user_ns_fields[] = {INT("tid", 4), UINT("vuid", 4), UINT("vgid", 4),
	INT("ns_level", 4), UINT("ns_inum", 4), {0}};
static const struct kymo_field ns_fields[] = {INT("tid", 4), UINT("ns_inum", 4), {0}};

static const struct dumped {
	const char *name;
	const struct kymo_field *fields;
} dumped[] = {
	[DUMP_START] = {"lttng_statedump_start", no_fields},
	[DUMP_END] = {"lttng_statedump_end", no_fields},
	[DUMP_PROCESS] = {"lttng_statedump_process_state", process_fields},
	[DUMP_FILE] = {"lttng_statedump_file_descriptor", file_fields},
	[DUMP_INTERRUPT] = {"lttng_statedump_interrupt", interrupt_fields},
	[DUMP_BLOCK] = {"lttng_statedump_block_device", block_fields},
	[DUMP_NETWORK] = {"lttng_statedump_network_interface", network_fields},
	[DUMP_CPU] = {"lttng_statedump_cpu_topology", cpu_fields},
	[DUMP_NAMESPACES + NS_PID] = {"lttng_statedump_process_pid_ns", pid_ns_fields},
	[DUMP_NAMESPACES + NS_USER] = {"lttng_statedump_process_user_ns", user_ns_fields},
	[DUMP_NAMESPACES + NS_CGROUP] = {"lttng_statedump_process_cgroup_ns", ns_fields},
	[DUMP_NAMESPACES + NS_IPC] = {"lttng_statedump_process_ipc_ns", ns_fields},
	[DUMP_NAMESPACES + NS_MNT] = {"lttng_statedump_process_mnt_ns", ns_fields},
	[DUMP_NAMESPACES + NS_NET] = {"lttng_statedump_process_net_ns", ns_fields},
	[DUMP_NAMESPACES + NS_TIME] = {"lttng_statedump_process_time_ns", ns_fields},
	[DUMP_NAMESPACES + NS_UTS] = {"lttng_statedump_process_uts_ns", ns_fields},
};

static_assert(N_DUMPS <= STATEDUMP_EVENTS, "identifiers");

void statedump_describe(struct ky_buf *text, uint32_t stream_id)
{
	for (uint32_t i = 0; i < N_DUMPS; i++)
		ky_kernel_tsdl_event(text, dumped[i].name, dumped[i].fields, stream_id,
			STATEDUMP_ID + i, NULL, 0);
}

/* --- threads --- */

/* As /proc/PID/task/TID/stat has it. */
struct thread {
	int tid, pid, ppid;
	char name[16]; /* recorded in full: zeros after the NUL */
	char state;
	bool is_kernel;
	int cpu;
};

/*
 * The name of a worker is "kworker/1:2" or "kworker/u8:2". Its file also has its work,
 * after "-" or "+". Events have the name alone.
 */
static void cut_worker_name(char name[16])
{
	size_t n = strcspn(name, "-+");

	if (!strncmp(name, "kworker/", 8) && (name[8] == 'u' || isdigit((unsigned char)name[8])))
		memset(name + n, 0, 16 - n);
}

/* "12 (name) S 1 12 12 0 -1 flags ...": the 39th field is the CPU. */
static bool parse_stat(struct thread *t, char *text)
{
	char *name = strchr(text, '('), *end = strrchr(text, ')'), *p;
	unsigned long flags = 0;
	unsigned field = 3;

	if (!name || !end || end < name)
		return false;
	snprintf(t->name, sizeof(t->name), "%.*s", (int)(end - name - 1), name + 1);
	t->cpu = 0;
	for (p = end + 1; *p; field++) {
		while (*p == ' ')
			p++;
		if (field == 3)
			t->state = *p;
		else if (field == 4)
			t->ppid = atoi(p);
		else if (field == 9)
			flags = strtoul(p, NULL, 10);
		else if (field == 39)
			t->cpu = atoi(p);
		while (*p && *p != ' ')
			p++;
	}
	t->is_kernel = flags & 0x00200000; /* PF_KTHREAD */
	if (t->is_kernel)
		cut_worker_name(t->name);
	return field > 39;
}

/*
 * The real user, who has started the process. The owner of its directory would be root for a
 * process that is not dumpable, or has root's rights for a moment.
 */
static uid_t user_of(int proc, int pid)
{
	char path[32], text[1024];
	const char *at;

	snprintf(path, sizeof(path), "%d/status", pid);
	at = ky_read_text(proc, path, text, sizeof(text)) > 0 ? strstr(text, "\nUid:") : NULL;
	return at ? (uid_t)strtoul(at + 5, NULL, 10) : 0;
}

/*
 * Returns whether the owner of a process has had its share. This is asked first, because a user may
 * have very many processes, and to read a file of each takes longer.
 */
static bool is_left_out(int proc, const char *pid, const struct dump_room *room)
{
	struct stat st;

	return !fstatat(proc, pid, &st, 0) && dump_room_is_full(room, st.st_uid);
}

static void each_thread_of(int tasks, int pid, uid_t uid, struct dump_room *room,
	void (*each)(void *arg, const struct thread *t), void *arg)
{
	DIR *dir = fdopendir(tasks);
	const struct dirent *entry;
	char path[64], text[1024];

	while (dir && (entry = readdir(dir))) {
		struct thread t = {0};

		if (!isdigit((unsigned char)*entry->d_name))
			continue;
		if (!dump_room_take(room, uid))
			break;
		t.tid = atoi(entry->d_name);
		t.pid = pid;
		snprintf(path, sizeof(path), "%d/stat", t.tid);
		if (ky_read_text(dirfd(dir), path, text, sizeof(text)) > 0 && parse_stat(&t, text))
			each(arg, &t);
	}
	if (dir)
		closedir(dir);
	else
		close(tasks);
}

static void each_thread(
	struct dump_room *room, void (*each)(void *arg, const struct thread *t), void *arg)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	char path[64];
	int tasks;

	while (proc && (entry = readdir(proc))) {
		if (!isdigit((unsigned char)*entry->d_name) ||
			is_left_out(dirfd(proc), entry->d_name, room))
			continue;
		snprintf(path, sizeof(path), "%.20s/task", entry->d_name);
		tasks = openat(dirfd(proc), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (tasks >= 0)
			each_thread_of(tasks, atoi(entry->d_name),
				user_of(dirfd(proc), atoi(entry->d_name)), room, each, arg);
	}
	if (proc)
		closedir(proc);
}

struct threads {
	const struct kernel_set *set;
	void (*send)(void *arg, const struct kernel_set *set, const struct ky_bytes *threads);
	void *arg;
	struct ky_buf list;
};

static void send_threads(struct threads *t)
{
	const struct ky_bytes bytes = {t->list.data, (uint32_t)t->list.len};

	if (t->list.len && !t->list.error)
		t->send(t->arg, t->set, &bytes);
	ky_buf_deinit(&t->list);
	t->list = (struct ky_buf){0};
}

static void add_thread(void *arg, const struct thread *t)
{
	struct threads *threads = arg;
	struct ky_kernel_thread found = {.tid = t->tid, .pid = t->pid};

	memcpy(found.name, t->name, sizeof(found.name));
	ky_buf_append(&threads->list, &found, sizeof(found));
	if (threads->list.len > PART_MAX)
		send_threads(threads);
}

void statedump_threads(const struct kernel_set *set,
	void (*send)(void *arg, const struct kernel_set *set, const struct ky_bytes *threads),
	void *arg)
{
	struct threads threads = {.set = set, .send = send, .arg = arg};
	struct dump_room room = {.max = THREADS_MAX};

	each_thread(&room, add_thread, &threads);
	send_threads(&threads);
}

/* --- the dump --- */

/* Of a process. Numbers are those of its innermost namespaces, levels are below the daemon's. */
struct namespaces {
	uint32_t inum[N_NS]; /* 0: not known */
	int32_t pid, ppid, pid_level;
	uint32_t uid, gid;
	int32_t user_level;
};

struct dump {
	const struct kernel_set *set;
	uint32_t part;
	struct ky_buf records;
	struct namespaces own; /* the daemon's */
	struct namespaces of;  /* of the process whose threads are dumped, and its number */
	int32_t of_pid;
};

static void send_part(struct dump *d, bool last)
{
	const struct ky_bytes bytes = {d->records.data, (uint32_t)d->records.len};

	if (!d->records.error)
		OBSERVE(d->set->channel->session->env, kernel_state_dumped, d->set, ++d->part, last,
			&bytes);
	ky_buf_deinit(&d->records);
	d->records = (struct ky_buf){0};
}

static void add_record(struct dump *d, uint32_t kind, const void *payload, size_t len)
{
	const struct ky_kernel_dump_record head = {STATEDUMP_ID + kind, (uint32_t)len};

	if (d->records.len + sizeof(head) + len > PART_MAX)
		send_part(d, false);
	ky_buf_append(&d->records, &head, sizeof(head));
	ky_buf_append(&d->records, payload, len);
}

/* LTTng's numbers for the letters of /proc. */
static int32_t status_of(char state)
{
	switch (state) {
	case 'R':
		return 2;
	case 'Z':
		return 4;
	case 'X':
		return 7;
	default:
		return 5;
	}
}

static void dump_state(struct dump *d, const struct thread *t)
{
	struct __attribute__((packed)) {
		int32_t tid, pid, ppid;
		char name[16];
		int32_t type, mode, submode, status;
		uint32_t cpu;
		uint64_t file_table;
	} record = {.tid = t->tid,
		.pid = t->pid,
		.ppid = t->ppid,
		.type = t->is_kernel,
		.mode = 5,
		.status = status_of(t->state),
		.cpu = (uint32_t)t->cpu,
		.file_table = (uint64_t)t->pid};

	memcpy(record.name, t->name, sizeof(record.name));
	add_record(d, DUMP_PROCESS, &record, sizeof(record));
}

/* --- namespaces --- */

/* "NSpid:\t4711\t12": returns the number at the level, the innermost one for -1; 0: none. */
static int32_t number_at(const char *status, const char *key, int level, int32_t *ret_level)
{
	const char *at = strstr(status, key);
	int32_t number = 0, n;
	char *end;

	*ret_level = 0;
	if (!at)
		return 0;
	at += strlen(key);
	for (int32_t i = 0; i <= level || level < 0; i++) {
		n = (int32_t)strtol(at, &end, 10);
		if (end == at)
			return level < 0 ? number : 0;
		number = n;
		*ret_level = i;
		at = end;
	}
	return number;
}

static int32_t number_in(int32_t pid, const char *key, int level, int32_t *ret_level)
{
	char path[64], text[4096];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	ky_read_text(AT_FDCWD, path, text, sizeof(text));
	return number_at(text, key, level, ret_level);
}

/* "0 1000 1\n": numbers inside from, and outside from, and how many. Returns that inside. */
static uint32_t map_id(int32_t pid, const char *file, uint32_t id)
{
	unsigned inside, outside, n;
	char path[64], text[4096], *line, *rest = text;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	ky_read_text(AT_FDCWD, path, text, sizeof(text));
	while ((line = strsep(&rest, "\n")))
		if (sscanf(line, "%u %u %u", &inside, &outside, &n) == 3 && id - outside < n)
			return inside + (id - outside);
	return 65534; /* as the kernel shows numbers without a counterpart */
}

/* Counts the namespaces around that of the process, up to the daemon's. */
static int32_t user_level_of(int32_t pid, uint32_t own)
{
	char path[64];
	struct stat st;
	int32_t level = 0;
	int fd, parent;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && !fstat(fd, &st) && st.st_ino != own) {
		parent = ioctl(fd, NS_GET_PARENT);
		ky_close(fd);
		fd = parent;
		level += fd >= 0;
	}
	ky_close(fd);
	return level;
}

static void read_inums(struct namespaces *ns, int32_t pid)
{
	char path[64], text[64];

	for (unsigned i = 0; i < N_NS; i++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, namespace_names[i]);
		n = readlink(path, text, sizeof(text) - 1);
		text[n > 0 ? n : 0] = '\0';
		ns->inum[i] = (uint32_t)strtoul(text + strcspn(text, "0123456789"), NULL, 10);
	}
}

/* A process that is not in namespaces of its own needs no more than their numbers. */
static void read_namespaces(struct dump *d, const struct thread *t)
{
	struct namespaces *ns = &d->of;
	int32_t level;

	d->of_pid = t->pid;
	*ns = (struct namespaces){.pid = t->pid, .ppid = t->ppid};
	read_inums(ns, t->pid);
	if (ns->inum[NS_PID] != d->own.inum[NS_PID]) {
		ns->pid = number_in(t->pid, "\nNStgid:", -1, &ns->pid_level);
		ns->ppid = number_in(t->ppid, "\nNStgid:", ns->pid_level, &level);
	}
	ns->uid = (uint32_t)number_in(t->pid, "\nUid:", 0, &level);
	ns->gid = (uint32_t)number_in(t->pid, "\nGid:", 0, &level);
	if (ns->inum[NS_USER] != d->own.inum[NS_USER]) {
		ns->uid = map_id(t->pid, "uid_map", ns->uid);
		ns->gid = map_id(t->pid, "gid_map", ns->gid);
		ns->user_level = user_level_of(t->pid, d->own.inum[NS_USER]);
	}
}

static void dump_namespaces(struct dump *d, const struct thread *t)
{
	const struct namespaces *ns = &d->of;
	int32_t level, vtid = t->tid;

	if (ns->pid_level)
		vtid = number_in(t->tid, "\nNSpid:", -1, &level);
	for (unsigned i = 0; i < N_NS; i++) {
		uint32_t record[6] = {(uint32_t)t->tid}, n = 1;

		if (!ns->inum[i] || (i != NS_PID && t->tid != t->pid))
			continue;
		if (i == NS_PID) {
			record[n++] = (uint32_t)vtid;
			record[n++] = (uint32_t)ns->pid;
			record[n++] = (uint32_t)ns->ppid;
			record[n++] = (uint32_t)ns->pid_level;
		} else if (i == NS_USER) {
			record[n++] = ns->uid;
			record[n++] = ns->gid;
			record[n++] = (uint32_t)ns->user_level;
		}
		record[n++] = ns->inum[i];
		add_record(d, DUMP_NAMESPACES + i, record, n * sizeof(*record));
	}
}

/* A process's first thread comes first: it stands for the others, but for their numbers. */
static void dump_thread(void *arg, const struct thread *t)
{
	struct dump *d = arg;

	dump_state(d, t);
	if (t->tid == t->pid)
		read_namespaces(d, t);
	if (d->of_pid == t->pid)
		dump_namespaces(d, t);
}

/* --- files --- */

static void put_u32(struct ky_buf *b, uint32_t v)
{
	ky_buf_append(b, &v, sizeof(v));
}

static void put_u16(struct ky_buf *b, uint16_t v)
{
	ky_buf_append(b, &v, sizeof(v));
}

/* Appends at most 1023 bytes, and the NUL. */
static void put_text(struct ky_buf *b, const char *text)
{
	ky_buf_append(b, text, KY_MIN(strlen(text), (size_t)1023));
	ky_buf_append(b, "", 1);
}

static void add_buf(struct dump *d, uint32_t kind, struct ky_buf *b)
{
	if (!b->error)
		add_record(d, kind, b->data, b->len);
	ky_buf_deinit(b);
	*b = (struct ky_buf){0};
}

/* "flags:\t0100002\n" in /proc/PID/fdinfo/FD. */
static uint32_t flags_of(int proc, int pid, const char *fd)
{
	char path[64], text[512], *at;

	snprintf(path, sizeof(path), "%d/fdinfo/%.10s", pid, fd);
	at = ky_read_text(proc, path, text, sizeof(text)) > 0 ? strstr(text, "flags:") : NULL;
	return at ? (uint32_t)strtoul(at + 6, NULL, 8) : 0;
}

static void dump_files_of(struct dump *d, struct dump_room *room, int proc, int pid)
{
	const uid_t uid = user_of(proc, pid);
	char path[64], name[PATH_MAX];
	const struct dirent *entry;
	struct ky_buf b = {0};
	int fd;
	DIR *dir;

	snprintf(path, sizeof(path), "%d/fd", pid);
	fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	while (dir && (entry = readdir(dir))) {
		ssize_t n = readlinkat(fd, entry->d_name, name, sizeof(name) - 1);
		uint32_t flags;

		if (n < 0 || !isdigit((unsigned char)*entry->d_name))
			continue;
		if (!dump_room_take(room, uid))
			break;
		name[n] = '\0';
		flags = flags_of(proc, pid, entry->d_name);
		put_u32(&b, (uint32_t)pid);
		ky_buf_append(&b, &(uint64_t){(uint64_t)pid}, 8);
		put_u32(&b, (uint32_t)atoi(entry->d_name));
		put_u32(&b, flags);
		/* FMODE_READ and FMODE_WRITE, from O_ACCMODE */
		put_u32(&b, (flags & O_ACCMODE) + 1);
		put_text(&b, name);
		add_buf(d, DUMP_FILE, &b);
	}
	if (dir)
		closedir(dir);
	else
		ky_close(fd);
}

static void dump_files(struct dump *d, struct dump_room *room)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;

	while (proc && (entry = readdir(proc)))
		if (isdigit((unsigned char)*entry->d_name) &&
			!is_left_out(dirfd(proc), entry->d_name, room))
			dump_files_of(d, room, dirfd(proc), atoi(entry->d_name));
	if (proc)
		closedir(proc);
}

/* --- devices --- */

/* Calls each for the entries of a directory. */
static void each_entry(
	struct dump *d, const char *path, void (*each)(struct dump *d, int dir, const char *name))
{
	DIR *dir = opendir(path);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (*entry->d_name != '.')
			each(d, dirfd(dir), entry->d_name);
	if (dir)
		closedir(dir);
}

/* Reads the first line of DIR/NAME/FILE; "" if there is none. */
static void read_member(int dir, const char *name, const char *file, char *buf, size_t size)
{
	char path[300];

	snprintf(path, sizeof(path), "%.250s/%.40s", name, file);
	ky_read_text(dir, path, buf, size);
	buf[strcspn(buf, "\n")] = '\0';
}

/* Of /sys/kernel/irq/N: those that have an action. */
static void dump_interrupt(struct dump *d, int dir, const char *name)
{
	char chip[64], actions[256];
	struct ky_buf b = {0};

	read_member(dir, name, "actions", actions, sizeof(actions));
	if (!*actions)
		return;
	read_member(dir, name, "chip_name", chip, sizeof(chip));
	put_u32(&b, (uint32_t)atoi(name));
	put_text(&b, chip);
	put_text(&b, actions);
	put_u32(&b, 0);
	add_buf(d, DUMP_INTERRUPT, &b);
}

/* Of /sys/class/block: the number as the kernel's dev_t has it. */
static void dump_block(struct dump *d, int dir, const char *name)
{
	unsigned major, minor;
	struct ky_buf b = {0};
	char text[32];

	read_member(dir, name, "dev", text, sizeof(text));
	if (sscanf(text, "%u:%u", &major, &minor) != 2)
		return;
	put_u32(&b, major << 20 | minor);
	put_text(&b, name);
	add_buf(d, DUMP_BLOCK, &b);
}

static void dump_interfaces(struct dump *d)
{
	struct ifaddrs *list = NULL, *i;
	struct ky_buf b = {0};

	if (getifaddrs(&list) < 0)
		return;
	for (i = list; i; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET)
			continue;
		put_text(&b, i->ifa_name);
		put_u32(&b,
			((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr.s_addr);
		add_buf(d, DUMP_NETWORK, &b);
	}
	freeifaddrs(list);
}

/* A processor of /proc/cpuinfo. */
struct processor {
	char vendor[64], model_name[128];
	unsigned long cpu, family, model, physical_id, core_id, cores;
};

static void dump_processor(struct dump *d, const char *architecture, const struct processor *p)
{
	const uint8_t kinds[] = {(uint8_t)p->family, (uint8_t)p->model};
	struct ky_buf b = {0};

	put_text(&b, architecture);
	put_u16(&b, (uint16_t)p->cpu);
	put_text(&b, p->vendor);
	ky_buf_append(&b, kinds, sizeof(kinds));
	put_text(&b, p->model_name);
	put_u16(&b, (uint16_t)p->physical_id);
	put_u16(&b, (uint16_t)p->core_id);
	put_u16(&b, (uint16_t)p->cores);
	add_buf(d, DUMP_CPU, &b);
}

/* Takes "KEY : VALUE". */
static void take_line(struct processor *p, const char *key, const char *value)
{
	const struct {
		const char *key;
		unsigned long *number;
	} numbers[] = {{"processor", &p->cpu}, {"cpu family", &p->family}, {"model", &p->model},
		{"physical id", &p->physical_id}, {"core id", &p->core_id},
		{"cpu cores", &p->cores}};

	for (size_t i = 0; i < KY_ARRAY_SIZE(numbers); i++)
		if (!strcmp(numbers[i].key, key))
			*numbers[i].number = strtoul(value, NULL, 10);
	if (!strcmp(key, "vendor_id"))
		snprintf(p->vendor, sizeof(p->vendor), "%.63s", value);
	if (!strcmp(key, "model name"))
		snprintf(p->model_name, sizeof(p->model_name), "%.127s", value);
}

/* An empty line ends a processor. */
static void dump_processors(struct dump *d)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	struct processor p = {.cores = 1};
	char line[4096], *colon;
	struct utsname u = {0};

	uname(&u);
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		colon = strchr(line, ':');
		if (!*line)
			dump_processor(d, u.machine, &p);
		if (!colon)
			continue;
		line[strcspn(line, "\t:")] = '\0';
		take_line(&p, line, colon[1] ? colon + 2 : "");
	}
	if (f)
		fclose(f);
}

/* A snapshot does not begin when its session does: it has no dump. */
static bool has_dumps(const struct kernel_set *set)
{
	return !set->channel->session->snapshot;
}

void statedump_begin(struct kernel_set *set, uint64_t clock)
{
	struct dump d = {.set = set};

	if (!has_dumps(set))
		return;
	set->n_dumps++;
	set->dump_clock = clock;
	add_record(&d, DUMP_START, "", 0);
	send_part(&d, false);
}

static void report_full(
	const struct kernel_set *set, const struct dump_room *room, const char *what)
{
	for (uint32_t i = 0; i < KY_ARRAY_SIZE(room->users); i++) {
		if (!room->users[i].is_full)
			continue;
		if (i < DUMP_ROOM_USERS)
			session_notice(set->channel->session,
				"the state dump of the kernel has %u %s of user %u, and leaves out the others",
				room->users[i].n, what, room->users[i].uid);
		else
			session_notice(set->channel->session,
				"the state dump of the kernel leaves out %s of some users, because there are so many users",
				what);
	}
}

void statedump_send(const struct kernel_set *set)
{
	struct dump d = {.set = set, .part = 1};
	struct dump_room threads = {.max = THREADS_MAX}, files = {.max = FILES_MAX};

	if (!has_dumps(set))
		return;
	read_inums(&d.own, getpid());
	each_thread(&threads, dump_thread, &d);
	dump_files(&d, &files);
	report_full(set, &threads, "threads");
	report_full(set, &files, "descriptors");
	each_entry(&d, "/sys/kernel/irq", dump_interrupt);
	each_entry(&d, "/sys/class/block", dump_block);
	dump_interfaces(&d);
	dump_processors(&d);
	add_record(&d, DUMP_END, "", 0);
	send_part(&d, true);
}
