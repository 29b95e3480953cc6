/* SPDX-License-Identifier: MIT */
/*
 * A thread keeps its values in one structure, the same for all lists. A list is compiled to steps,
 * and one step copies neighbours among the kept values. So the common case is three comparisons and
 * a copy.
 *
 * Signal handlers may run at any point. Code that fills the structure increments a count. A thread
 * that copied meanwhile sees the count, and copies again. A handler that interrupts the filling
 * does not change the structure, and uses the values that it read itself. (If the handler jumps
 * out, nothing is kept any more: correct, but slow.)
 *
 * The clock of a record is read here, once: it determines the age of the kept values, and the
 * record gets the same value. (A second reading would cost more than the common contexts.)
 */
#include "tracer/context.h"

#include <alloca.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/sys.h"
#include "tracer/app-context.h"
#include "tracer/counter.h"
#include "tracer/tracer.h"

/* Factor for how long values are valid: reading them costs less than a hundredth of the time. */
#define BELIEVE_FACTOR 128
#define BELIEVE_MAX    ((uint64_t)1 << 22) /* nanoseconds, or cycles */
/*
 * A thread's numbers do not change. They are read again all the same, about once a second: a child
 * of vfork() that records, which it must not, leaves its own numbers here.
 */
#define BELIEVE_IDENTITY ((uint64_t)1 << 31)

#define LISTS_MAX 1024u

/* The kinds that lists have requested so far: 1 << kind. */
static uint32_t requested;

/* The kept values, packed as in records. */
struct values {
	int32_t vpid, vtid;
	char procname[KY_CTX_PROCNAME_SIZE];
	uint32_t users[3], groups[3];
	uint64_t pthread_id;
	uint64_t ns[8];
} __attribute__((packed));

struct found {
	struct values v;
	uint8_t slack[KYMO_SCRATCH_SLACK]; /* read by wide copies */
};

static __thread struct {
	struct found values;
	uint32_t kinds; /* the kinds that were read: 1 << kind */
	uint32_t turn;	/* tracer_contexts_turn when they were read; 0: being filled */
	uint32_t fills;
	bool filling;		 /* this structure, or tracer_kept */
	bool changed;		 /* by this thread, since they were read */
	uint64_t found, believe; /* when they were read; how long they are valid */
	uint64_t identified;	 /* when those of IDENTITY were read */
	struct tracer_caller caller;
} mine KY_THREAD_TLS;

__thread struct tracer_kept tracer_kept KY_THREAD_TLS;

/* Increments when values that threads keep are stale. Never 0. */
uint32_t tracer_contexts_turn = 1;

/*
 * Not 0: threads keep the values that they have, because a filter of system calls may end a thread
 * that reads them (kymo_contexts_keep). Then `kept_values`, of these kinds, are those of the thread
 * that installs the filter. Release: pairs with the load in find_out.
 */
static int keeping;
static struct values kept_values;
static uint32_t kept_kinds;

enum op { OP_COPY, OP_CPU, OP_IP, OP_COUNTER, OP_APP, OP_STACK };

struct step {
	uint8_t op, kind;
	uint16_t offset; /* COPY: in struct values */
	uint32_t n;	 /* COPY: bytes; STACK: frames; COUNTER: its number */
	struct app_context *app;
};

struct tracer_contexts {
	struct tracer_contexts *next;
	struct ky_bytes key; /* the list as it was sent */
	uint32_t n;	     /* number of contexts */
	uint32_t kinds;	     /* kinds that are kept: 1 << kind */
	uint32_t size;	     /* bytes of the longest values, at most KY_CTX_RECORD_MAX */
	bool want_caller;
	bool kept_only; /* it consists of copies of kept values alone */
	uint32_t n_steps;
	struct step steps[];
};

static struct {
	struct tracer_contexts *first;
	uint32_t n;
} lists KY_WRITTEN_EARLY;

#define KEPT(member) offsetof(struct values, member), sizeof(((struct values *)0)->member)

/* Place and size of each kind in the kept values; size 0: not kept. */
static const struct {
	uint16_t offset, size;
} kept[KY_CTX_KINDS] = {
	[KY_CTX_VPID] = {KEPT(vpid)},
	[KY_CTX_VTID] = {KEPT(vtid)},
	[KY_CTX_PROCNAME] = {KEPT(procname)},
	[KY_CTX_VUID] = {KEPT(users[0])},
	[KY_CTX_VEUID] = {KEPT(users[1])},
	[KY_CTX_VSUID] = {KEPT(users[2])},
	[KY_CTX_VGID] = {KEPT(groups[0])},
	[KY_CTX_VEGID] = {KEPT(groups[1])},
	[KY_CTX_VSGID] = {KEPT(groups[2])},
	[KY_CTX_PTHREAD_ID] = {KEPT(pthread_id)},
	[KY_CTX_CGROUP_NS] = {KEPT(ns[0])},
	[KY_CTX_IPC_NS] = {KEPT(ns[1])},
	[KY_CTX_MNT_NS] = {KEPT(ns[2])},
	[KY_CTX_NET_NS] = {KEPT(ns[3])},
	[KY_CTX_PID_NS] = {KEPT(ns[4])},
	[KY_CTX_TIME_NS] = {KEPT(ns[5])},
	[KY_CTX_USER_NS] = {KEPT(ns[6])},
	[KY_CTX_UTS_NS] = {KEPT(ns[7])},
};

/* --- the values of this thread --- */

#define BIT(kind) (1u << (kind))
static_assert(KY_CTX_KINDS <= 32, "masks of kinds have 32 bits");
#define IDENTITY (BIT(KY_CTX_VPID) | BIT(KY_CTX_VTID) | BIT(KY_CTX_PTHREAD_ID))
#define THREADS	 (BIT(KY_CTX_VTID) | BIT(KY_CTX_PTHREAD_ID)) /* each thread has its own */

static void find_namespaces(struct values *v, uint32_t kinds)
{
	static const char *const files[] = {"/proc/thread-self/ns/cgroup",
		"/proc/thread-self/ns/ipc", "/proc/thread-self/ns/mnt", "/proc/thread-self/ns/net",
		"/proc/thread-self/ns/pid", "/proc/thread-self/ns/time",
		"/proc/thread-self/ns/user", "/proc/thread-self/ns/uts"};
	struct stat st;

	for (uint32_t i = 0; i < KY_ARRAY_SIZE(files); i++) {
		if (!(kinds & BIT(KY_CTX_CGROUP_NS + i)))
			continue;
		v->ns[i] = ky_sys_stat(files[i], &st) == 0 ? st.st_ino : 0;
	}
}

#ifdef SYS_getresuid32 /* the other one has 16 bits */
#define GETRESUID SYS_getresuid32
#define GETRESGID SYS_getresgid32
#else
#define GETRESUID SYS_getresuid
#define GETRESGID SYS_getresgid
#endif

/* Real, effective, saved. */
static void find_three(long number, unsigned int *ids)
{
	ky_call(number, &ids[0], &ids[1], &ids[2]);
}

static void find_values(struct values *v, uint32_t kinds)
{
	uid_t u[3] = {0};
	gid_t g[3] = {0};

	memset(v, 0, sizeof(*v));
	if (kinds & BIT(KY_CTX_VPID))
		v->vpid = ky_process_number();
	if (kinds & BIT(KY_CTX_VTID))
		v->vtid = ky_thread_number();
	if (kinds & BIT(KY_CTX_PROCNAME))
		ky_thread_name(v->procname);
	if (kinds & BIT(KY_CTX_PTHREAD_ID))
		v->pthread_id = (uintptr_t)pthread_self();
	if (kinds & (BIT(KY_CTX_VUID) | BIT(KY_CTX_VEUID) | BIT(KY_CTX_VSUID)))
		find_three(GETRESUID, u);
	if (kinds & (BIT(KY_CTX_VGID) | BIT(KY_CTX_VEGID) | BIT(KY_CTX_VSGID)))
		find_three(GETRESGID, g);
	memcpy(v->users, u, sizeof(u));
	memcpy(v->groups, g, sizeof(g));
	find_namespaces(v, kinds);
}

/* Copies the values of these kinds. */
static void copy_values(struct values *v, const struct values *from, uint32_t kinds)
{
	for (uint32_t kind = 0; kind < KY_CTX_KINDS; kind++)
		if (kinds & BIT(kind))
			memcpy((uint8_t *)v + kept[kind].offset,
				(const uint8_t *)from + kept[kind].offset, kept[kind].size);
}

/*
 * Starts to fill: nobody else fills before end_filling. Returns false if this is a handler that
 * interrupted the filling.
 */
static bool begin_filling(void)
{
	if (mine.filling)
		return false;
	mine.filling = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return true;
}

static void end_filling(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	mine.filling = false;
}

/*
 * Reads the values of these kinds and all that lists have requested so far, but for the thread's
 * numbers that are known. After some time, reads only those of these kinds. While threads keep
 * their values, reads only what is not known of this thread or of the process. Keeps them if
 * possible, and counts that in *fills.
 */
static __attribute__((cold, noinline)) void find_out(
	uint32_t kinds, uint64_t now, uint32_t clock, struct found *ret_values, uint32_t *fills)
{
	uint32_t before = __atomic_load_n(&tracer_contexts_turn, __ATOMIC_RELAXED), known = 0,
		 of_process = 0;
	uint64_t end, identified = now;
	int saved = errno;

	if (__atomic_load_n(&keeping, __ATOMIC_ACQUIRE) && !mine.changed) {
		known = mine.turn ? mine.kinds : 0;
		of_process = kept_kinds & ~known & ~THREADS;
		kinds |= known;
	} else {
		if (mine.turn == before && now - mine.found < mine.believe)
			kinds |= mine.kinds;
		if (mine.turn == before && now - mine.identified < BELIEVE_IDENTITY)
			known = mine.kinds & IDENTITY;
	}
	mine.changed = false;
	if (known & IDENTITY)
		identified = mine.identified;
	find_values(&ret_values->v, kinds & ~known & ~of_process);
	copy_values(&ret_values->v, &mine.values.v, known);
	copy_values(&ret_values->v, &kept_values, of_process);
	kinds |= known | of_process;
	errno = saved;
	end = ky_clock_read(clock);
	if (!begin_filling())
		return;
	mine.turn = 0;
	*fills = ++mine.fills;
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* a handler sees that it is being filled */
	mine.values.v = ret_values->v;
	mine.kinds = kinds;
	mine.found = now;
	mine.identified = identified;
	mine.believe = KY_MIN((end - now) * BELIEVE_FACTOR, BELIEVE_MAX);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	mine.turn = before;
	end_filling();
}

/* True if this thread's values stay valid until it changes them itself. */
static inline bool keeps_values(void)
{
	return ky_unlikely(__atomic_load_n(&keeping, __ATOMIC_RELAXED)) && mine.turn &&
	       !mine.changed;
}

/* The values of the list are valid for less than this time after *ret_from. */
static inline uint64_t valid_for(const struct tracer_contexts *l, uint64_t *ret_from)
{
	bool is_identity = !(l->kinds & ~IDENTITY);

	if (keeps_values()) {
		*ret_from = 0;
		return UINT64_MAX;
	}
	*ret_from = is_identity ? mine.identified : mine.found;
	return is_identity ? BELIEVE_IDENTITY : mine.believe;
}

static inline bool is_fresh(const struct tracer_contexts *l, uint64_t now)
{
	uint64_t from, valid = valid_for(l, &from);

	return (mine.turn == __atomic_load_n(&tracer_contexts_turn, __ATOMIC_RELAXED) ||
		       keeps_values()) &&
	       !(l->kinds & ~mine.kinds) && now - from < valid;
}

/*
 * For the application: names, credentials or namespaces of a thread have changed. Called in any
 * thread and signal handler.
 */
__attribute__((visibility("default"))) void kymo_contexts_invalidate(void)
{
	mine.changed = true;
	/* Wraps after 2^32 turns: a thread that slept for exactly that many would not notice. */
	if (!__atomic_add_fetch(&tracer_contexts_turn, 1, __ATOMIC_SEQ_CST))
		__atomic_add_fetch(&tracer_contexts_turn, 1, __ATOMIC_SEQ_CST);
}

/* All calls that this thread's events may need are made here, before the filter applies. */
static void keep_for_filter(void)
{
	uint32_t kinds = __atomic_load_n(&requested, __ATOMIC_RELAXED), fills;
	struct found own;

	if (!kinds)
		return;
	find_out(kinds, ky_clock_counter(), ky_clock_of_machine(), &own, &fills);
	kept_values = own.v;
	__atomic_store_n(&kept_kinds, kinds, __ATOMIC_RELAXED);
}

__attribute__((visibility("default"))) int kymo_contexts_keep(int keep)
{
	int before;

	if (keep && !__atomic_load_n(&keeping, __ATOMIC_RELAXED))
		keep_for_filter();
	before = __atomic_exchange_n(&keeping, keep, __ATOMIC_ACQ_REL);
	if (!keep)
		kymo_contexts_invalidate(); /* what threads have kept meanwhile */
	return before;
}

struct tracer_caller tracer_context_caller(struct tracer_caller caller)
{
	struct tracer_caller before = mine.caller;

	mine.caller = caller;
	return before;
}

/* --- records --- */

static inline uint8_t *put_sized(uint8_t *to, const void *value, size_t size)
{
	memcpy(to, value, size);
	return to + size;
}

/* Copies 16 bytes at a time: both sides have slack. */
static inline uint8_t *copy_with_slack(uint8_t *to, const uint8_t *from, uint32_t n)
{
	uint32_t i = 0;

	do {
		memcpy(to + i, from + i, 16);
		i += 16;
	} while (i < n);
	return to + n;
}

static __attribute__((noinline)) uint8_t *put_special(const struct step *s, uint8_t *to)
{
	uint64_t v;
	int32_t cpu;

	switch (s->op) {
	case OP_CPU:
		cpu = sched_getcpu();
		return put_sized(to, &cpu, sizeof(cpu));
	case OP_IP:
		v = mine.caller.ip;
		return put_sized(to, &v, sizeof(v));
	case OP_COUNTER:
		v = counter_read(s->n);
		return put_sized(to, &v, sizeof(v));
	case OP_STACK:
		stack_walk(&mine.caller, to, s->n);
		return to + s->n * sizeof(uint64_t);
	default:
		return to + app_context_read(s->app, (char *)to) + 1;
	}
}

/*
 * Keeps values for the next records: those written to `from` when the count of fills was `fills`.
 */
static void keep_values(const struct tracer_contexts *l, const uint8_t *from, uint32_t fills)
{
	uint64_t since, valid = valid_for(l, &since);

	if (!begin_filling())
		return;
	tracer_kept.of = NULL;
	tracer_kept.changes++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	memcpy(tracer_kept.bytes, from, l->size);
	tracer_kept.size = l->size;
	tracer_kept.until = since + valid - 1;
	tracer_kept.turn = keeps_values() ? __atomic_load_n(&tracer_contexts_turn, __ATOMIC_RELAXED)
					  : mine.turn;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	/* Unless a handler has read other values meanwhile. */
	if (fills == mine.fills)
		tracer_kept.of = l;
	end_filling();
}

uint8_t *tracer_contexts_put(
	const struct tracer_contexts *l, uint8_t *to, uint64_t now, uint32_t clock)
{
	const struct step *s, *end = l->steps + l->n_steps;
	const struct found *from;
	struct found own;
	uint32_t fills;
	uint8_t *p;

	do {
		from = &mine.values;
		fills = __atomic_load_n(&mine.fills, __ATOMIC_RELAXED);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (l->kinds && ky_unlikely(!is_fresh(l, now))) {
			find_out(l->kinds, now, clock, &own, &fills);
			from = &own;
		}
		for (p = to, s = l->steps; s < end; s++) {
			if (ky_likely(s->op == OP_COPY))
				p = copy_with_slack(p, (const uint8_t *)&from->v + s->offset, s->n);
			else
				p = put_special(s, p);
		}
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	} while (from != &own &&
		 ky_unlikely(fills != __atomic_load_n(&mine.fills, __ATOMIC_RELAXED)));
	if (l->kept_only && l->size <= KY_FRONT_MAX)
		keep_values(l, to, fills);
	return p;
}

bool tracer_context_integer(const struct tracer_contexts *one, int64_t *ret_value)
{
	const struct step *s = one->steps;
	uint8_t room[KY_CTX_STRING_MAX + KYMO_SCRATCH_SLACK];
	uint32_t size = one->size;
	uint32_t u32;

	if (s->op == OP_APP || s->op == OP_STACK || s->kind == KY_CTX_PROCNAME)
		return false;
	tracer_contexts_put(one, room, ky_clock_counter(), ky_clock_of_machine());
	if (size == sizeof(*ret_value)) {
		memcpy(ret_value, room, size);
		return true;
	}
	memcpy(&u32, room, sizeof(u32));
	*ret_value = ky_ctx_type(s->kind)->field == KYMO_FIELD_INT ? (int64_t)(int32_t)u32 : u32;
	return true;
}

bool tracer_context_string(const struct tracer_contexts *one, char *text)
{
	uint8_t room[KY_CTX_STRING_MAX + KYMO_SCRATCH_SLACK] = {0};

	if (one->steps->op != OP_APP && one->steps->kind != KY_CTX_PROCNAME)
		return false;
	tracer_contexts_put(one, room, ky_clock_counter(), ky_clock_of_machine());
	memcpy(text, room, KY_CTX_STRING_MAX);
	return true;
}

bool tracer_context_real(const struct tracer_contexts *one, double *ret_value)
{
	union kymo_context_value v;
	char text[KY_CTX_STRING_MAX];
	size_t len;

	switch (one->steps->op == OP_APP ? app_context_value(one->steps->app, &v, text, &len) : 0) {
	case KYMO_CONTEXT_I64:
		*ret_value = (double)v.i64;
		return true;
	case KYMO_CONTEXT_U64:
		*ret_value = (double)v.u64;
		return true;
	case KYMO_CONTEXT_F64:
		*ret_value = v.f64;
		return true;
	default:
		return false;
	}
}

/* --- whole records --- */

/* A record up to this size is assembled on the stack; a larger one is passed in pieces. */
#define ROOM 512u

/* Records the contexts, with the application's own list behind them, or its payload as a piece. */
static __attribute__((noinline)) void record_pieces(struct ky_hook *hook, const uint8_t *contexts,
	size_t size, const void *payload, size_t len, const struct kymo_piece *pieces,
	size_t n_pieces, uint64_t now)
{
	const struct kymo_piece whole = {payload, (uint32_t)len, KYMO_PIECE_SCRATCH};
	struct kymo_piece *list;

	if (len > UINT32_MAX - size) {
		/* too large: this call counts it */
		ky_record_hook(hook, payload, len, pieces, n_pieces);
		return;
	}
	if (!n_pieces) {
		pieces = &whole;
		n_pieces = 1;
	}
	/* On the stack, as the application's own list is. */
	list = alloca((n_pieces + 1) * sizeof(*list));
	list[0] = (struct kymo_piece){contexts, (uint32_t)size, KYMO_PIECE_SCRATCH};
	memcpy(list + 1, pieces, n_pieces * sizeof(*list));
	ky_record_hook_at(hook, NULL, size + len, list, n_pieces + 1, now);
}

static __attribute__((noinline)) void record_large(struct ky_hook *hook,
	const struct tracer_contexts *l, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces, uint64_t now)
{
	uint8_t *room = alloca(l->size + KYMO_SCRATCH_SLACK);
	uint8_t *end = tracer_contexts_put(l, room, now, hook->clock);

	record_pieces(hook, room, (size_t)(end - room), payload, len, pieces, n_pieces, now);
}

void tracer_record_prepended(struct ky_hook *hook, const struct tracer_contexts *l,
	const void *payload, size_t len, const struct kymo_piece *pieces, size_t n_pieces)
{
	uint8_t room[ROOM + KYMO_SCRATCH_SLACK] __attribute__((aligned(16)));
	uint64_t now = ky_clock_read(hook->clock);
	uint8_t *end;

	if (ky_unlikely(n_pieces || len > ROOM || l->size > ROOM - len)) {
		record_large(hook, l, payload, len, pieces, n_pieces, now);
		return;
	}
	end = tracer_contexts_put(l, room, now, hook->clock);
	for (size_t i = 0; i < len; i += 16)
		memcpy(end + i, (const uint8_t *)payload + i, 16); /* both sides have slack */
	ky_record_hook_at(hook, room, (size_t)(end - room) + len, NULL, 0, now);
}

/* --- lists --- */

/* Adds the context to the list. Returns false if it is unknown. */
static bool compile_step(struct tracer_contexts *l, uint32_t kind, const char *argument)
{
	struct step *last = l->n_steps ? &l->steps[l->n_steps - 1] : NULL;
	struct step s = {.kind = (uint8_t)kind};
	uint32_t size = ky_ctx_record_size(kind, argument);

	if (!size || size > KY_CTX_RECORD_MAX - l->size)
		return false;
	l->size += size;
	switch (kind) {
	case KY_CTX_CPU_ID:
		s.op = OP_CPU;
		break;
	case KY_CTX_IP:
		s.op = OP_IP;
		l->want_caller = true;
		break;
	case KY_CTX_PERF:
		s.op = OP_COUNTER;
		s.n = counter_number(argument);
		break;
	case KY_CTX_APP:
		s.op = OP_APP;
		s.app = app_context_get(argument);
		if (!s.app)
			return false;
		break;
	case KY_CTX_CALLSTACK:
		s.op = OP_STACK;
		s.n = ky_ctx_depth(argument);
		l->want_caller = true;
		break;
	default:
		l->kinds |= BIT(kind);
		s.offset = kept[kind].offset;
		s.n = kept[kind].size;
		if (last && last->op == OP_COPY && last->offset + last->n == s.offset) {
			last->n += s.n;
			return true;
		}
	}
	l->steps[l->n_steps++] = s;
	return true;
}

/*
 * Makes a list of the first n contexts. Writes the part of the original that they take to *ret_key.
 */
static bool cut_list(struct ky_bytes list, uint32_t n, struct ky_bytes *ret_key)
{
	struct ky_reader r = {.buf = list.data, .len = list.len};

	for (uint32_t i = 0; i < n && !r.error; i++) {
		ky_read_u32(&r);
		ky_read_str(&r);
	}
	*ret_key = (struct ky_bytes){list.data, (uint32_t)r.pos};
	return n && n <= KY_CTX_MAX && !r.error;
}

static struct tracer_contexts *compile_list(struct ky_bytes key, uint32_t n)
{
	struct ky_reader r = {.buf = key.data, .len = key.len};
	size_t steps = n * sizeof(struct step);
	struct tracer_contexts *l;

	if (lists.n >= LISTS_MAX)
		return NULL;
	l = tracer_alloc(sizeof(*l) + steps + key.len, false);
	if (!l)
		return NULL;
	lists.n++;
	memcpy((char *)l->steps + steps, key.data, key.len);
	l->key = (struct ky_bytes){(char *)l->steps + steps, key.len};
	l->n = n;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t kind = ky_read_u32(&r);
		const char *argument = ky_read_str(&r);

		if (!compile_step(l, kind, argument)) {
			l->n = 0; /* kept as unknown, so that it is not compiled again */
			break;
		}
	}
	__atomic_fetch_or(&requested, l->kinds, __ATOMIC_RELAXED);
	l->kept_only = true;
	for (uint32_t i = 0; i < l->n_steps; i++)
		l->kept_only = l->kept_only && l->steps[i].op == OP_COPY;
	l->next = lists.first;
	lists.first = l;
	return l;
}

const struct tracer_contexts *tracer_contexts_intern(struct ky_bytes list, uint32_t n)
{
	struct tracer_contexts *l;
	struct ky_bytes key;

	if (!cut_list(list, n, &key))
		return NULL;
	for (l = lists.first; l; l = l->next)
		if (l->key.len == key.len && !memcmp(l->key.data, key.data, key.len))
			break;
	l = l ? l : compile_list(key, n);
	return l && l->n ? l : NULL;
}

const struct tracer_contexts *tracer_contexts_first(const struct tracer_contexts *l, uint32_t n)
{
	if (!l || n > l->n)
		return NULL;
	return n == l->n ? l : tracer_contexts_intern(l->key, n);
}

void tracer_contexts_probe(const struct tracer_contexts *l)
{
	for (uint32_t i = 0; i < l->n_steps; i++)
		if (l->steps[i].op == OP_COUNTER)
			counter_probe(l->steps[i].n);
}

bool tracer_contexts_want_caller(const struct tracer_contexts *l)
{
	return l->want_caller;
}

void tracer_contexts_reset(void)
{
	keeping = 0; /* a child with a filter is not traced */
	kymo_contexts_invalidate();
	counter_reset();
	app_context_reset();
}

void tracer_contexts_release_thread(void)
{
	counter_release_thread();
}
