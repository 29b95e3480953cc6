/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes libkymo with a session daemon that sends anything. The application receives the messages
 * over a real socket with real descriptors while it records, and while another application of its
 * user overwrites the rings. The input is a list of operations.
 */
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "ring/geometry.h"
#include "tracer/statedump.h"

#define N_EVENTS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static const struct kymo_field fields[] = {
	{KYMO_FIELD_UINT, 0, 8, 0, 0, "n", NULL}, {KYMO_FIELD_STRING, 0, 0, 0, 0, "s", NULL}, {0}};
static struct kymo_event_state states[N_EVENTS];
static const struct kymo_event events[N_EVENTS] = {
	{sizeof(events[0]), KYMO_EVENT_PLAIN, 3, "p", "a", fields, &states[0], "", 0, 0},
	{sizeof(events[0]), KYMO_EVENT_PLAIN, 7, "p", "b", fields, &states[1], "", 0, 0},
	{sizeof(events[0]), KYMO_EVENT_PLAIN, 14, "q", "c", fields, &states[2], "", 0, 0},
};
static const struct kymo_event *const pointers[N_EVENTS] = {&events[0], &events[1], &events[2]};
static struct kymo_object object = {
	sizeof(object), KYMO_ABI_VERSION, pointers, pointers + N_EVENTS, NULL};

static struct tracer_conn *const conn = &tracer.conns[0];
static int daemon_fd, rings_fd = -1; /* the daemon's end; the last rings that were sent */

struct input {
	const uint8_t *data;
	size_t len;
};

static uint8_t take_byte(struct input *in)
{
	if (!in->len)
		return 0;
	in->len--;
	return *in->data++;
}

static struct ky_bytes take_bytes(struct input *in)
{
	uint32_t wanted = take_byte(in), len = (uint32_t)KY_MIN((size_t)wanted, in->len);
	struct ky_bytes b = {in->data, len};

	in->data += len;
	in->len -= len;
	return b;
}

/* Sends the message, and makes the application read it and all messages before it. */
static void deliver(struct ky_writer *w, const int *fds, size_t n_fds)
{
	union {
		char buf[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	int len = ky_msg_end(w);
	struct iovec iov = {w->buf, (size_t)KY_MAX(len, 0)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	static char answer[KY_MSG_MAX];
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
	if (len < 0 || sendmsg(daemon_fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return;
	pthread_mutex_lock(&tracer.lock);
	tracer_conn_receive(conn);
	pthread_mutex_unlock(&tracer.lock);
	while (recv(daemon_fd, answer, sizeof(answer), MSG_DONTWAIT) > 0)
		;
}

/* Sends any bytes with any type. */
static void say(struct input *in)
{
	static uint8_t buf[512];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	struct ky_bytes b;

	ky_msg_begin(&w, take_byte(in) % 32);
	b = take_bytes(in);
	ky_write_raw(&w, b.data, b.len);
	deliver(&w, NULL, 0);
}

/* Sends one of the messages with a set's number and a list; the list is random. */
static void say_list(struct input *in)
{
	static const uint16_t types[] = {KY_APP_MAP, KY_APP_UNMAP, KY_APP_CONTEXTS, KY_APP_FILTERS,
		KY_APP_QUERY, KY_APP_STATEDUMP};
	static uint8_t buf[512];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};

	ky_msg_begin(&w, types[take_byte(in) % KY_ARRAY_SIZE(types)]);
	ky_write_u32(&w, take_byte(in) & 3);
	ky_write_u32(&w, take_byte(in));
	ky_write_bytes(&w, take_bytes(in));
	deliver(&w, NULL, 0);
}

/* Sends a set that can exist; `how` makes it one that cannot. */
static void say_set(struct input *in)
{
	uint8_t how = take_byte(in), number = take_byte(in) & 3;
	static uint8_t buf[512];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	struct ky_app_ring_set m = {.set = number};
	struct ky_geometry g = {.mode = how & 1,
		.overwrite = number >> 1,
		.n_rings = 4,
		.n_blocks = 2,
		.block_size = 4096};
	int fds[6] = {-1, -1};

	if (ky_geometry_init(&g) < 0)
		abort();
	KY_GEOMETRY_COPY(&m, &g);
	m.clock = how >> 1 & 3;
	fds[0] = memfd_create("rings", MFD_CLOEXEC);
	fds[1] = memfd_create("consumed", MFD_CLOEXEC);
	if (ftruncate(fds[0], (off_t)(how & 8 ? 4096 : g.total_size)) ||
		ftruncate(fds[1], how & 16 ? 0 : 4096))
		abort();
	if (how & 32)
		m.total_size += take_byte(in);
	if (how & 64)
		m.n_rings = (uint32_t)take_byte(in) << 24;
	for (int i = 2; i < 6; i++)
		fds[i] = fds[0];
	if (ky_app_ring_set_encode(&w, &m) > 0)
		deliver(&w, fds, how & 128 ? take_byte(in) % 7 : 2);
	ky_close(fds[1]);
	ky_close(rings_fd);
	rings_fd = fds[0];
}

/* Maps all events and enables or disables a set. */
static void say_order(struct input *in)
{
	static const uint16_t types[] = {KY_APP_START, KY_APP_STOP, KY_APP_DROP};
	uint8_t how = take_byte(in);
	static uint8_t buf[1024], entries[512];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	struct ky_writer list = {.buf = entries, .cap = sizeof(entries)};
	struct ky_app_map m = {.set = how & 3, .n = tracer.n_events};

	for (uint32_t i = 0; i < tracer.n_events; i++) {
		ky_write_u32(&list, i);
		ky_write_u32(&list, i * (how >> 4));
		ky_write_u32(&list, how >> 6);
		ky_write_u32(&list, 0);
	}
	m.list = (struct ky_bytes){entries, (uint32_t)list.len};
	if ((how & 12) == 12) {
		if (ky_app_map_encode(&w, &m) > 0)
			deliver(&w, NULL, 0);
		return;
	}
	ky_msg_begin(&w, types[(how >> 2 & 3) % KY_ARRAY_SIZE(types)]);
	ky_write_u32(&w, 1);
	ky_write_u32(&w, how & 3);
	deliver(&w, NULL, 0);
}

static void emit(struct input *in)
{
	struct {
		uint64_t n;
		char text[64];
	} payload = {7, "some text"};
	uint8_t how = take_byte(in);
	const struct kymo_event *ev = &events[how % N_EVENTS];

	for (int i = 0; i < (how & 128 ? 200 : 1) && ev->state->enabled; i++)
		ev->state->record(
			ev, &payload, sizeof(payload.n) + strlen(payload.text) + 1, NULL, 0);
}

/* Overwrites the rings as another application of the user can do: anywhere, with anything. */
static void scribble(struct input *in)
{
	off_t at = 4096 + take_byte(in) * 8;
	struct ky_bytes b = take_bytes(in);

	if (rings_fd >= 0 && pwrite(rings_fd, b.data, b.len, at) < 0)
		return;
}

static void (*const operations[])(struct input *in) = {
	say, say_list, say_set, say_order, emit, scribble, say_order, emit};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	ky_writer_init();
	tracer.has_rseq = ky_writer_has_rseq() &&
			  syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0,
				  0) == 0;
	ky_thread_set_process();
	if (tracer_events_add(&object) != N_EVENTS)
		abort();
	tracer_self_add();
	return 0;
}

static void connect_daemon(void)
{
	struct stat st;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0 ||
		fstat(fds[0], &st) < 0)
		abort();
	tracer_conn_init(conn, "");
	conn->socket = (struct tracer_fd){.fd = fds[0], .dev = st.st_dev, .ino = st.st_ino};
	daemon_fd = fds[1];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, KY_MIN(size, (size_t)1024)};

	connect_daemon();
	while (in.len)
		operations[take_byte(&in) % KY_ARRAY_SIZE(operations)](&in);
	pthread_mutex_lock(&tracer.lock);
	tracer_conn_close(conn);
	pthread_mutex_unlock(&tracer.lock);
	ky_close(daemon_fd);
	rings_fd = ky_close(rings_fd);
	for (int i = 0; i < N_EVENTS; i++)
		if (states[i].enabled)
			abort(); /* the library has released it */
	return 0;
}
