/* SPDX-License-Identifier: MIT */
/*
 * Runs a consumer from its first order to its last, with real rings and real files. The
 * applications that record are in the same process, and the session daemon is simulated. The input
 * defines the order of records, orders, time, and faults. Faults occur in calls that change files:
 * a call fails, writes less than it should, or the consumer is killed before, in or after it, and a
 * new consumer continues. In each case, every event must be in the trace once, complete and with
 * the time when it was recorded, or be counted as discarded. The reader library must find exactly
 * that, in the order of time.
 *
 * Nothing depends on the machine's time: the clock advances when it is read, and when the input
 * says so. All calls of a killed consumer fail without effect, until it notices that it must exit.
 * Then the memory that outlives it is restored to its state at the moment of the kill.
 */
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "consumerd/confine.h"
#include "consumerd/connection.h"
#include "consumerd/consumerd.h"
#include "ctf/tsdl.h"
#include "ctf/watermark.h"
#include "ring/writer.h"
#include "sessiond/model/memory.h"
#include "svc/log.h"

#include "read-back.h"

#define N_SETS	   2
#define INPUT_MAX  1024
#define EVENTS_MAX (1u << 16)
#define TEXT_MAX   600
#define TURNS_MAX  200 /* turns until a reply, when nothing fails */
#define DIR_NAME   "ust/uid/0/64-bit"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static const struct kymo_field fields[] = {{KYMO_FIELD_UINT, 0, 8, 0, 0, "seq", NULL},
	{KYMO_FIELD_STRING, 0, 0, 0, 0, "s", NULL}, {0}};
static const uint64_t uuid[2] = {0x0102030405060708, 0x090a0b0c0d0e0f10};

struct record {
	uint64_t seq;
	char text[TEXT_MAX + KYMO_SCRATCH_SLACK];
} __attribute__((packed));

struct test_set {
	struct ky_cons_ring_set order;
	struct ky_cons_timers timers; /* the last timers that were sent; set 0: never */
	struct ring_memory memory;
	/* mapping of the consumed positions, and a copy from the moment of a kill */
	void *consumed;
	void *copy;
	struct ky_set set;
	struct ky_hook hook;
};

struct input {
	const uint8_t *data;
	size_t len;
};

static char top[64], trace[80];
static struct test_set sets[N_SETS];
static struct ky_resume_session *session, session_copy;
static int session_fd, log_fd;
static uint64_t now_ns;
static uint32_t n_emitted;
static bool seen[EVENTS_MAX];
static uint64_t emitted_ns[EVENTS_MAX]; /* the clock that each event's writer read last */
static int64_t last_read_ns;
static cpu_set_t allowed_cpus;
static int cpu;
static bool limited; /* stream files are limited: the oldest are removed */

static struct consumerd consumer;
static struct ky_timer pause_timer;
static int daemon_fd;
static uint32_t last_cookie, rotate_cookie; /* rotate_cookie: 0 when ROTATE was answered */
static struct ky_cons_rotate rotate_order;
static char archive[16];
static struct ky_cons_stats stats; /* the last ones received */

/* --- time and faults --- */

enum call_fault {
	FAULT_NONE,
	FAULT_FAIL,  /* calls fail */
	FAULT_SHORT, /* calls write half of what they should */
	FAULT_DIE,   /* the consumer is killed before a call */
	FAULT_TORN,  /* the consumer is killed after a call, or in the middle of a write */
	N_FAULTS,
};

static struct {
	enum call_fault kind;
	unsigned after; /* number of calls that succeed */
	unsigned n;	/* number of calls after them that fail */
	int error;
} plan;
static bool at_work;   /* the consumer is the caller */
static bool dead;      /* it was killed */
static bool disturbed; /* a call failed during this consumer's lifetime */

int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
void __wrap_confine(const int *dirs, size_t n);
int __wrap_openat64(int dir, const char *path, int flags, mode_t mode);
ssize_t __wrap_pwritev64(int fd, const struct iovec *iov, int n, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t len, off_t at);
int __wrap_mkdirat(int dir, const char *path, mode_t mode);
int __wrap_renameat(int from, const char *path, int to, const char *new_path);
int __wrap_unlinkat(int dir, const char *path, int flags);
int __wrap_ftruncate64(int fd, off_t size);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	now_ns += 100;
	*ts = (struct timespec){(time_t)(now_ns / 1000000000), (long)(now_ns % 1000000000)};
	return 0;
}

/* Does nothing: it would confine the fuzzer. */
void __wrap_confine(const int *dirs, size_t n)
{
}

static void read_answers(void);

static void pause_loop(struct ky_timer *t)
{
	ky_loop_stop(&consumer.loop);
}

static void die(void)
{
	if (dead)
		return;
	read_answers();
	dead = true;
	session_copy = *session;
	for (int i = 0; i < N_SETS; i++)
		memcpy(sets[i].copy, sets[i].consumed, ky_consumed_size(sets[i].order.n_rings));
}

/* Decides the result of a call: -1: nothing is done; 1: half of it, if it has halves; 0: all. */
static int consult(void)
{
	enum call_fault kind = plan.kind;

	if (!at_work || (!dead && kind == FAULT_NONE))
		return 0;
	errno = EIO;
	if (dead)
		return -1;
	if (plan.after) {
		plan.after--;
		return 0;
	}
	disturbed = true;
	if (!--plan.n)
		plan.kind = FAULT_NONE;
	if (kind == FAULT_DIE || kind == FAULT_TORN)
		die();
	errno = plan.error;
	return kind == FAULT_SHORT || kind == FAULT_TORN ? 1 : -1;
}

int __wrap_openat64(int dir, const char *path, int flags, mode_t mode)
{
	return consult() < 0 ? -1 : (int)syscall(SYS_openat, dir, path, flags, mode);
}

ssize_t __wrap_pwritev64(int fd, const struct iovec *iov, int n, off_t at)
{
	struct iovec half = *iov;
	int how = consult();

	half.iov_len /= 2;
	if (how < 0)
		return -1;
	return how ? syscall(SYS_pwritev, fd, &half, 1, at, 0)
		   : syscall(SYS_pwritev, fd, iov, n, at, 0);
}

ssize_t __wrap_pwrite64(int fd, const void *buf, size_t len, off_t at)
{
	int how = consult();

	return how < 0 ? -1 : syscall(SYS_pwrite64, fd, buf, how ? len / 2 : len, at);
}

int __wrap_mkdirat(int dir, const char *path, mode_t mode)
{
	return consult() < 0 ? -1 : (int)syscall(SYS_mkdirat, dir, path, mode);
}

int __wrap_renameat(int from, const char *path, int to, const char *new_path)
{
	return consult() < 0 ? -1 : (int)syscall(SYS_renameat2, from, path, to, new_path, 0);
}

/*
 * Does not fail while files are limited: the consumer counts a file as removed although it cannot
 * be removed, and a user who limits the files then sees too many.
 */
int __wrap_unlinkat(int dir, const char *path, int flags)
{
	return consult() < 0 && (dead || !limited) ? -1
						   : (int)syscall(SYS_unlinkat, dir, path, flags);
}

int __wrap_ftruncate64(int fd, off_t size)
{
	return consult() < 0 ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

/* --- the session daemon --- */

static void post(struct ky_writer *w, const int *fds, size_t n_fds)
{
	union {
		char buf[CMSG_SPACE(N_SETS * sizeof(int) + sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {w->buf, w->len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *cmsg;

	if (n_fds) {
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, n_fds * sizeof(int));
	}
	if (!dead && sendmsg(daemon_fd, &msg, MSG_NOSIGNAL) < 0 && errno != EPIPE &&
		errno != EAGAIN)
		abort();
}

static struct ky_writer order(void)
{
	static uint8_t buf[KY_MSG_MAX];

	return (struct ky_writer){.buf = buf, .cap = sizeof(buf)};
}

static void read_answers(void)
{
	static uint8_t buf[KY_MSG_MAX];
	struct ky_cons_rotated rotated;
	struct ky_reader r;
	ssize_t n;

	if (dead)
		return;
	while ((n = recv(daemon_fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
		switch (ky_msg_open(&r, buf, (size_t)n)) {
		case KY_CONS_STATS:
			if (ky_cons_stats_decode(&r, &stats) < 0)
				abort();
			break;
		case KY_CONS_ROTATED:
			if (ky_cons_rotated_decode(&r, &rotated) < 0)
				abort();
			if (rotated.cookie == rotate_cookie)
				rotate_cookie = 0;
			break;
		case KY_CONS_ERROR:
		case KY_CONS_GROWN:
			break;
		default:
			abort();
		}
	}
}

static void send_rotate(void)
{
	struct ky_writer w = order();

	ky_cons_rotate_encode(&w, &rotate_order);
	post(&w, NULL, 0);
}

static void send_timers(const struct test_set *s)
{
	struct ky_writer w = order();

	ky_cons_timers_encode(&w, &s->timers);
	post(&w, NULL, 0);
}

static void send_set(const struct test_set *s)
{
	const int fds[] = {memory_open_read_only(s->memory.rings_fd), s->memory.consumed_fd,
		memory_open_read_only(log_fd)};
	struct ky_writer w = order();

	ky_cons_ring_set_encode(&w, &s->order);
	post(&w, fds, KY_ARRAY_SIZE(fds));
	ky_close(fds[0]);
	ky_close(fds[2]);
	if (s->timers.set)
		send_timers(s);
}

/*
 * Starts a consumer, and sends it all orders that its predecessor had not executed, or forgot when
 * it died.
 */
static void begin_consumer(bool resume)
{
	const struct ky_cons_init init = {.version = KY_PROTO_VERSION,
		.session = "s",
		.output = trace,
		.resume = resume,
		.rendezvous = ""};
	struct ky_writer w = order();
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		abort();
	dead = disturbed = false;
	daemon_fd = fds[0];
	if (consumerd_init(&consumer) < 0 || connection_open(&consumer, fds[1]) < 0)
		abort();
	ky_timer_init(&pause_timer, pause_loop);
	ky_cons_init_encode(&w, &init);
	post(&w, &session_fd, 1);
	for (int i = 0; i < N_SETS; i++)
		send_set(&sets[i]);
	if (rotate_cookie)
		send_rotate();
}

static void end_consumer(void)
{
	consumerd_deinit(&consumer);
	daemon_fd = ky_close(daemon_fd);
}

static void bury(void)
{
	end_consumer();
	*session = session_copy;
	for (int i = 0; i < N_SETS; i++)
		memcpy(sets[i].consumed, sets[i].copy, ky_consumed_size(sets[i].order.n_rings));
}

/* Runs some turns of the loop, of the consumer and of its successors. */
static void turn(void)
{
	do {
		if (dead) {
			bury();
			begin_consumer(true);
		}
		at_work = true;
		for (int i = 0; i < 3 && !dead; i++) {
			consumer.loop.stopped = false;
			ky_timer_set(&consumer.loop, &pause_timer, 0);
			consumerd_run(&consumer);
		}
		at_work = false;
		read_answers();
		if (!dead &&
			/* it cannot continue and reports it; allowed only if a call failed */
			consumer.exit_status) {
			if (!disturbed)
				abort();
			die();
		}
	} while (dead);
}

/* --- applications --- */

static uint32_t text_length(uint64_t seq)
{
	return (uint32_t)(seq * 2654435761u >> 16) % TEXT_MAX >> (seq & 3) * 2;
}

static char text_char(uint64_t seq)
{
	return (char)('a' + seq % 26);
}

static void emit(struct test_set *s, unsigned n)
{
	struct record r;

	for (; n && n_emitted < EVENTS_MAX; n--) {
		uint32_t len = text_length(n_emitted);

		r.seq = n_emitted;
		memset(r.text, text_char(n_emitted), len);
		r.text[len] = '\0';
		ky_record_hook(&s->hook, &r, sizeof(r.seq) + len + 1, NULL, 0);
		emitted_ns[n_emitted++] = now_ns;
	}
}

/* Changes to the next CPU of the machine. */
static void move_on(void)
{
	cpu_set_t one;

	do
		cpu = (cpu + 1) % CPU_SETSIZE;
	while (!CPU_ISSET(cpu, &allowed_cpus));
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0)
		abort();
}

/* Moves the application to another CPU or, for rings of threads, to another thread. */
static void go_elsewhere(struct test_set *s)
{
	if (s->order.mode == KY_SET_PER_THREAD)
		ky_thread_release(&s->set);
	else
		move_on();
}

/* --- operations --- */

static uint8_t take_byte(struct input *in)
{
	if (!in->len)
		return 0;
	in->len--;
	return *in->data++;
}

static void arm(struct input *in)
{
	static const int errors[] = {ENOSPC, EIO, EDQUOT, EMFILE};
	uint8_t how = take_byte(in);

	plan.kind = how % N_FAULTS;
	plan.error = errors[how >> 4 & 3];
	plan.after = take_byte(in) & 31;
	plan.n = how & 128 ? take_byte(in) + 1u : 1;
}

static void change_timers(struct test_set *s, uint8_t how)
{
	s->timers = (struct ky_cons_timers){.set = s->order.set,
		.switch_us = how & 15 ? (uint64_t)(how & 15) << 10 : 0,
		.read_us = how >> 4 ? (uint64_t)(how >> 4) << 7 : 0};
	send_timers(s);
}

/* The session daemon runs one rotation at a time. */
static void rotate(bool clear)
{
	if (rotate_cookie)
		return;
	rotate_cookie = ++last_cookie;
	snprintf(archive, sizeof(archive), "a%u", rotate_cookie);
	rotate_order = (struct ky_cons_rotate){.cookie = rotate_cookie,
		.chunk = session->chunk + 1,
		.archive = clear ? "" : archive};
	send_rotate();
}

static void flush(void)
{
	struct ky_writer w = order();

	ky_cons_flush_encode(&w, &(struct ky_cons_flush){.cookie = ++last_cookie});
	post(&w, NULL, 0);
}

static void operate(struct input *in)
{
	uint8_t op = take_byte(in);
	struct test_set *s = &sets[op >> 3 & 1];

	switch (op & 7) {
	case 0:
	case 1:
		emit(s, take_byte(in) >> (op >> 4 & 7));
		break;
	case 2:
		now_ns += (uint64_t)take_byte(in) << (op >> 4) * 2;
		break;
	case 3:
		go_elsewhere(s);
		break;
	case 4:
		arm(in);
		return;
	case 5:
		if (op >> 4 < 12)
			flush();
		else
			die();
		break;
	case 6:
		rotate(op >> 4 == 15);
		break;
	case 7:
		change_timers(s, take_byte(in));
		break;
	}
	turn();
}

/* --- the end --- */

static void finish(void)
{
	struct ky_writer w = order();

	plan.kind = FAULT_NONE;
	for (int i = 0; rotate_cookie; i++) {
		turn();
		now_ns += 1000000000;
		if (i == TURNS_MAX)
			abort();
	}
	ky_cons_quit_encode(&w, &(struct ky_cons_quit){.cookie = ++last_cookie});
	post(&w, NULL, 0);
	turn();
	if (!consumer.quitting || stats.cookie != last_cookie || consumer.exit_status)
		abort();
	end_consumer();
}

/* Checks that an event is complete, not read twice, and read with the time of its writer. */
static void check_event(const struct read_event *event)
{
	uint64_t seq = event->number;

	if (seq >= n_emitted || seen[seq] || event->len != text_length(seq))
		abort();
	for (uint64_t i = 0; i < event->len; i++)
		if (event->text[i] != text_char(seq))
			abort();
	seen[seq] = true;
	if ((uint64_t)event->ns != emitted_ns[seq] || event->ns < last_read_ns)
		abort();
	last_read_ns = event->ns;
}

static void check_all(void)
{
	char moving[sizeof(trace) + 16];
	struct read_back there;

	last_read_ns = 0;
	snprintf(moving, sizeof(moving), "%s/" KY_MOVING_NAME, trace);
	if (!access(moving, F_OK))
		abort();
	read_back(trace, check_event, &there);
	if (stats.status || stats.unwritten || stats.n_quarantined)
		abort();
	if (stats.recorded + stats.discarded != n_emitted)
		abort();
	if (there.n_events + stats.removed + stats.cleared != stats.recorded)
		abort();
	/* Losses in a chunk that was cleared, or in a removed file, are in no packet. */
	if (stats.removed || stats.cleared ? there.n_discarded > stats.discarded
					   : there.n_discarded != stats.discarded)
		abort();
}

static void *map(int fd, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static void begin_set(int i, uint32_t mode, uint32_t n_rings, uint32_t n_home, uint32_t n_blocks)
{
	struct test_set *s = &sets[i];
	uint32_t turn = s->set.turn + 1;

	memset(s, 0, sizeof(*s));
	s->set = (struct ky_set){.id = (uint32_t)i + 1,
		.turn = turn,
		.pool = n_rings,
		.geo = {.mode = mode,
			.clock = KY_CLOCK_MONOTONIC,
			.n_rings = n_rings,
			.n_blocks = n_blocks,
			.n_home = n_home,
			.block_size = KY_BLOCK_MIN}};
	if (ky_geometry_init(&s->set.geo) < 0 ||
		ring_memory_make(&s->memory, &s->set.geo, -1, s->set.id, uuid) < 0)
		abort();
	s->order = (struct ky_cons_ring_set){.set = s->set.id,
		.stream_id = (uint32_t)i,
		.dir = DIR_NAME,
		.name = i ? "threads" : "cpus",
		.uuid_hi = uuid[0],
		.uuid_lo = uuid[1],
		.file_size = limited ? 4 * KY_BLOCK_MIN : 0,
		.n_files = limited ? 2 : 0};
	KY_GEOMETRY_COPY(&s->order, &s->set.geo);
	s->set.base = map(s->memory.rings_fd, s->set.geo.total_size);
	ky_parts_set_whole(&s->set.parts, s->set.base);
	s->consumed = map(s->memory.consumed_fd, ky_consumed_size(n_rings));
	s->set.consumed = s->consumed;
	s->copy = malloc(ky_consumed_size(n_rings));
	s->set.used = calloc(n_rings, 1);
	if (!s->copy || !s->set.used)
		abort();
	ky_hook_init(&s->hook, &s->set, i ? 1000 : 3); /* headers are long, or short */
	ky_hook_switch(&s->hook, true);
}

static void end_set(struct test_set *s)
{
	ky_hook_switch(&s->hook, false);
	if (s->order.mode == KY_SET_PER_THREAD)
		ky_thread_release(&s->set);
	munmap(s->set.base, s->set.geo.total_size);
	munmap(s->consumed, ky_consumed_size(s->order.n_rings));
	ring_memory_close(&s->memory);
	free(s->copy);
	free(s->set.used);
}

static void write_log(void)
{
	const struct kymo_event event = {
		.size = sizeof(event), .provider = "p", .name = "e", .fields = fields};
	struct ky_tsdl_trace t = {.hostname = "h",
		.session = "s",
		.machine_id = "",
		.product_uuid = "",
		.boot_id = "2a6422d0-6cee-11e0-8c08-cb07d7b3a564",
		.abi_bits = 64,
		.clock = {.clock = KY_CLOCK_MONOTONIC,
			.freq = 1000000000,
			.description = "simulated"}};
	uint8_t bytes[256];
	struct ky_writer desc = {.buf = bytes, .cap = sizeof(bytes)};
	struct ky_buf text = {0};

	for (int i = 0; i < 16; i++)
		t.uuid[i] = (uint8_t)(uuid[i / 8] >> (7 - i % 8) * 8);
	ky_desc_encode(&desc, &event);
	ky_tsdl_trace(&text, &t);
	for (uint32_t i = 0; i < N_SETS; i++) {
		ky_tsdl_stream(&text, i, sets[i].order.mode, false);
		ky_tsdl_event(&text, i, sets[i].hook.id,
			(struct ky_bytes){bytes, (uint32_t)desc.len}, NULL, 0);
	}
	if (text.error || write(log_fd, text.data, text.len) != (ssize_t)text.len)
		abort();
	ky_buf_deinit(&text);
}

/* Removed at the end of each run: libFuzzer ends without calling exit handlers. */
static void make_top(void)
{
	snprintf(top, sizeof(top), "%s/kymo-fuzz-XXXXXX",
		access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(top))
		abort();
	snprintf(trace, sizeof(trace), "%s/trace", top);
}

static void begin(uint8_t options)
{
	uint32_t n_home;

	now_ns = 1000000000;
	n_emitted = last_cookie = rotate_cookie = 0;
	memset(seen, 0, sizeof(seen));
	memset(&plan, 0, sizeof(plan));
	limited = options & 1;
	cpu = -1;
	move_on();
	make_top();
	session_fd = session_memory_make(-1);
	log_fd = log_memory_make(-1, uuid);
	if (session_fd < 0 || log_fd < 0)
		abort();
	session = map(session_fd, sizeof(*session));
	n_home = 2u << (options >> 1 & 1);
	begin_set(0, KY_SET_PER_CPU, possible_cpus(), n_home, options & 8 ? 8 : n_home);
	begin_set(1, KY_SET_PER_THREAD, 4, 0, 2u << (options >> 2 & 1));
	write_log();
	begin_consumer(false);
	turn();
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void end(void)
{
	for (int i = 0; i < N_SETS; i++)
		end_set(&sets[i]);
	munmap(session, sizeof(*session));
	ky_close(session_fd);
	ky_close(log_fd);
	nftw(top, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static unsigned count_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 512; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	ky_log_to_file(open("/dev/null", O_WRONLY | O_CLOEXEC), false);
	if (sched_getaffinity(0, sizeof(allowed_cpus), &allowed_cpus) < 0)
		abort();
	ky_writer_init();
	ky_thread_set_process();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, KY_MIN(size, (size_t)INPUT_MAX)};
	unsigned n_fds = count_fds();

	begin(take_byte(&in));
	while (in.len)
		operate(&in);
	finish();
	check_all();
	end();
	if (count_fds() != n_fds)
		abort();
	return 0;
}
