/* SPDX-License-Identifier: MIT */
/*
 * The tracer's own events, with which addresses in a trace can be resolved later: the files that
 * the application consists of (kymo_statedump:*, in a state dump), and files that are loaded and
 * unloaded (kymo_lib:*). docs/statedump.md describes them.
 *
 * They are ordinary events of the application, except that only rules that name their provider
 * match them (ky_glob_match_event). So nobody records them, or pays for them, without a request.
 *
 * Everything except tracer_self_add runs in the listener. It copies data of the application's
 * objects while the C library keeps them in place. It reads files afterwards, without any lock,
 * because a file system may hang.
 */
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <time.h>

#include "base/sys.h"
#include "tracer/notes.h"
#include "tracer/dispatch.h"
#include "tracer/statedump.h"

#define BUILD_ID_MAX  64u
#define SECTIONS_MAX  256u
#define NAMES_MAX     8192u /* bytes of a file's section names */
#define LIST_FIRST    ((size_t)16 << 10)
#define LIST_MAX      ((size_t)16 << 20)
#define NT_GNU_ID     3
#define LINK_NAME_MAX 256u
#define LINKER_MS     100

enum own {
	DUMP_START,
	DUMP_PROCNAME,
	DUMP_BIN_INFO,
	DUMP_BUILD_ID,
	DUMP_DEBUG_LINK,
	DUMP_END,
	LIB_LOAD,
	LIB_BUILD_ID,
	LIB_DEBUG_LINK,
	LIB_UNLOAD,
	N_OWN,
};

#define U64(name, flags)                                                                           \
	{                                                                                          \
		KYMO_FIELD_UINT, 0, 8, flags, 0, name, NULL                                        \
	}
#define U8(name)                                                                                   \
	{                                                                                          \
		KYMO_FIELD_UINT, 0, 1, 0, 0, name, NULL                                            \
	}
#define STRING(name)                                                                               \
	{                                                                                          \
		KYMO_FIELD_STRING, 0, 0, 0, 0, name, NULL                                          \
	}

static const struct kymo_field no_fields[] = {{0}};
static const struct kymo_field procname_fields[] = {STRING("procname"), {0}};
static const struct kymo_field bin_info_fields[] = {U64("baddr", KYMO_FIELD_HEX), U64("memsz", 0),
	STRING("path"), U8("is_pic"), U8("has_build_id"), U8("has_debug_link"), {0}};
static const struct kymo_field build_id_fields[] = {U64("baddr", KYMO_FIELD_HEX),
	{KYMO_FIELD_SEQUENCE, KYMO_FIELD_UINT, 1, KYMO_FIELD_HEX, 0, "build_id", NULL}, {0}};
static const struct kymo_field debug_link_fields[] = {U64("baddr", KYMO_FIELD_HEX),
	{KYMO_FIELD_UINT, 0, 4, KYMO_FIELD_HEX, 0, "crc", NULL}, STRING("filename"), {0}};
static const struct kymo_field unload_fields[] = {U64("baddr", KYMO_FIELD_HEX), {0}};

static struct kymo_event_state states[N_OWN] KY_WRITTEN_EARLY;

#define OWN(index, provider, name, fields)                                                         \
	[index] = {sizeof(struct kymo_event), KYMO_EVENT_PLAIN, KYMO_DEBUG_LINE, provider, name,   \
		fields, &states[index], __FILE__, __LINE__, 0}

static const struct kymo_event events[N_OWN] = {
	OWN(DUMP_START, "kymo_statedump", "start", no_fields),
	OWN(DUMP_PROCNAME, "kymo_statedump", "procname", procname_fields),
	OWN(DUMP_BIN_INFO, "kymo_statedump", "bin_info", bin_info_fields),
	OWN(DUMP_BUILD_ID, "kymo_statedump", "build_id", build_id_fields),
	OWN(DUMP_DEBUG_LINK, "kymo_statedump", "debug_link", debug_link_fields),
	OWN(DUMP_END, "kymo_statedump", "end", no_fields),
	OWN(LIB_LOAD, "kymo_lib", "load", bin_info_fields),
	OWN(LIB_BUILD_ID, "kymo_lib", "build_id", build_id_fields),
	OWN(LIB_DEBUG_LINK, "kymo_lib", "debug_link", debug_link_fields),
	OWN(LIB_UNLOAD, "kymo_lib", "unload", unload_fields),
};

void tracer_self_add(void)
{
	static const struct kymo_event *entries[N_OWN] KY_WRITTEN_EARLY;
	static struct kymo_object object = {
		sizeof(object), KYMO_ABI_VERSION, entries, entries + N_OWN, NULL};

	for (int i = 0; i < N_OWN; i++)
		entries[i] = &events[i];
	tracer_events_add(&object);
}

/* --- recording --- */

/* An event's payload. Fields that do not fit are left out, with a NUL in their place. */
struct payload {
	uint8_t bytes[PATH_MAX + 64 + KYMO_SCRATCH_SLACK];
	size_t len;
};

static void put_payload(struct payload *p, const void *data, size_t n)
{
	if (n > sizeof(p->bytes) - KYMO_SCRATCH_SLACK - p->len)
		return;
	memcpy(p->bytes + p->len, data, n);
	p->len += n;
}

static void put_u64(struct payload *p, uint64_t v)
{
	put_payload(p, &v, sizeof(v));
}

static void put_u32(struct payload *p, uint32_t v)
{
	put_payload(p, &v, sizeof(v));
}

static void put_u8(struct payload *p, uint8_t v)
{
	put_payload(p, &v, sizeof(v));
}

static void put_string(struct payload *p, const char *s)
{
	put_payload(p, s, strlen(s));
	put_u8(p, 0);
}

/* Records an event. only: NULL for all sets that the event is enabled in. */
static void record_own(enum own which, const struct tracer_mask *only, const struct payload *p)
{
	const struct kymo_event *event = &events[which];

	if (!__atomic_load_n(&event->state->enabled, __ATOMIC_ACQUIRE))
		return;
	if (only)
		tracer_record_only(only, event->state->hooks, p->bytes, p->len, NULL, 0);
	else
		ky_record_event(event, p->bytes, p->len, NULL, 0);
}

/* --- objects --- */

/* An object of the application, as the dynamic linker reports it. Packed in a list. */
struct module {
	uint64_t size; /* of this entry */
	uint64_t baddr, memsz;
	uint8_t is_pic, n_build_id;
	uint8_t build_id[BUILD_ID_MAX];
	char name[]; /* "": the program itself */
};

struct list {
	uint8_t *bytes;
	size_t cap, len, wanted;
	uint64_t turn; /* of the dynamic linker: number of objects loaded and unloaded until then */
};

/*
 * State of our calls into the dynamic linker, which has a lock of its own. If a process forks while
 * another thread holds that lock, nobody releases it in the child. So the listener calls the linker
 * without our lock: if the call never returns, the application, which takes our lock when it forks,
 * continues. STUCK: it is not called any more.
 */
enum linker { OUTSIDE, INSIDE, STUCK };

static struct {
	enum linker linker;
	struct list *known;   /* the current one of the lists; NULL: none */
	struct list lists[2]; /* the other one is room for the next */
} modules KY_WRITTEN_EARLY;

static struct module *module_at(const struct list *l, size_t pos)
{
	return pos < l->len ? (struct module *)(void *)(l->bytes + pos) : NULL;
}

#define for_each_module(m, list)                                                                   \
	for (size_t pos_ = 0; (m = module_at(list, pos_)); pos_ += (m)->size)

static bool take_build_id(const struct tracer_note *note, void *module)
{
	struct module *m = module;

	if (note->type != NT_GNU_ID || note->name_len != 4 || note->len > BUILD_ID_MAX ||
		memcmp(note->name, "GNU", 4))
		return false;
	m->n_build_id = (uint8_t)note->len;
	memcpy(m->build_id, note->bytes, note->len);
	return true;
}

static void describe_module(const struct dl_phdr_info *info, struct module *m)
{
	ElfW(Addr) begin = (ElfW(Addr)) - 1, end = 0;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD) {
			begin = KY_MIN(begin, p->p_vaddr);
			end = KY_MAX(end, p->p_vaddr + p->p_memsz);
		}
	}
	tracer_notes_find(info, take_build_id, m);
	m->is_pic = info->dlpi_addr != 0;
	m->baddr = end ? info->dlpi_addr + begin : info->dlpi_addr;
	m->memsz = end ? end - begin : 0;
}

static int add_module(struct dl_phdr_info *info, size_t size, void *list)
{
	const char *name = info->dlpi_name ? info->dlpi_name : "";
	size_t len = strnlen(name, PATH_MAX - 1);
	size_t n = ky_align_up(sizeof(struct module) + len + 1, 8);
	struct list *l = list;
	struct module *m;

	(void)size;
	l->turn = info->dlpi_adds + info->dlpi_subs;
	l->wanted += n;
	if (n > l->cap - l->len)
		return 0;
	m = (struct module *)(void *)(l->bytes + l->len);
	memset(m, 0, n);
	memcpy(m->name, name, len);
	m->size = n;
	describe_module(info, m);
	l->len += n;
	return 0;
}

/* Calls the dynamic linker. Called with the lock, which it releases meanwhile. */
static void ask_linker(int (*fn)(struct dl_phdr_info *, size_t, void *), void *data)
{
	modules.linker = INSIDE;
	tracer_give_lock();
	dl_iterate_phdr(fn, data);
	tracer_take_lock();
	modules.linker = OUTSIDE;
}

void tracer_self_before_fork(void)
{
	static const struct timespec ms = {.tv_nsec = 1000000};

	for (int waited = 0; modules.linker == INSIDE; waited++) {
		if (waited == LINKER_MS) {
			modules.linker = STUCK;
			return;
		}
		tracer_give_lock();
		ky_sys_nanosleep(&ms);
		tracer_take_lock();
	}
}

/*
 * Updates the list that is not `known`; leaves out what exceeds 16 MiB. Returns NULL if allocation
 * fails.
 */
static struct list *collect_modules(void)
{
	struct list *l = modules.known == &modules.lists[0] ? &modules.lists[1] : &modules.lists[0];

	for (;;) {
		l->len = l->wanted = 0;
		ask_linker(add_module, l);
		if (l->wanted <= l->cap || l->cap >= LIST_MAX)
			return l;
		l->cap = KY_MAX(LIST_FIRST, ky_roundup_pow2(l->wanted));
		l->bytes = l->cap <= LIST_MAX ? tracer_alloc(l->cap, false) : NULL;
		if (!l->bytes) {
			l->cap = 0;
			return NULL;
		}
	}
}

/* --- files --- */

/*
 * Writes the file's path, without links, to path. An object without a file has its name in
 * brackets.
 */
static void find_path(const char *name, char *path, size_t size)
{
	const char *file = *name ? name : "/proc/self/exe";
	char link[32];
	ssize_t n = -1;
	int fd;

	if (!strncmp(name, "linux-vdso", 10) || !strncmp(name, "linux-gate", 10)) {
		snprintf(path, size, "[vdso]");
		return;
	}
	fd = ky_sys_open(file, O_PATH | O_CLOEXEC);
	if (fd >= 0) {
		snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", fd);
		n = ky_sys_readlink(link, path, size - 1);
	}
	ky_close(fd);
	if (n > 0)
		path[n] = '\0';
	else
		snprintf(path, size, "%s", file);
}

/*
 * Reads the file's section .gnu_debuglink: a name, then, aligned to 4, a checksum. Returns false if
 * it has none.
 */
static bool read_debug_link(int fd, char name[LINK_NAME_MAX], uint32_t *ret_crc)
{
	static ElfW(Shdr) sections[SECTIONS_MAX];
	static char names[NAMES_MAX], text[LINK_NAME_MAX + 8];
	ElfW(Ehdr) h;
	ssize_t n, n_names;
	size_t len;

	if (ky_sys_pread(fd, &h, sizeof(h), 0) != sizeof(h) || memcmp(h.e_ident, ELFMAG, SELFMAG) ||
		h.e_shentsize != sizeof(sections[0]) || h.e_shnum > SECTIONS_MAX ||
		h.e_shstrndx >= h.e_shnum)
		return false;
	n = (ssize_t)(h.e_shnum * sizeof(sections[0]));
	if (ky_sys_pread(fd, sections, (size_t)n, (off_t)h.e_shoff) != n)
		return false;
	n_names = ky_sys_pread(fd, names, KY_MIN(sections[h.e_shstrndx].sh_size, sizeof(names) - 1),
		(off_t)sections[h.e_shstrndx].sh_offset);
	if (n_names <= 0)
		return false;
	names[n_names] = '\0';
	for (int i = 0; i < h.e_shnum; i++) {
		if (sections[i].sh_name >= (size_t)n_names ||
			strcmp(names + sections[i].sh_name, ".gnu_debuglink"))
			continue;
		n = ky_sys_pread(fd, text, KY_MIN(sections[i].sh_size, sizeof(text)),
			(off_t)sections[i].sh_offset);
		len = n > 0 ? strnlen(text, (size_t)n) : 0;
		if (!len || len >= LINK_NAME_MAX || ky_align_up(len + 1, 4) + 4 > (size_t)n)
			return false;
		memcpy(name, text, len + 1);
		memcpy(ret_crc, text + ky_align_up(len + 1, 4), sizeof(*ret_crc));
		return true;
	}
	return false;
}

static bool find_debug_link(const char *path, char name[LINK_NAME_MAX], uint32_t *ret_crc)
{
	int fd = path[0] == '/' ? ky_sys_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	bool found = fd >= 0 && read_debug_link(fd, name, ret_crc);

	ky_close(fd);
	return found;
}

/* --- reports --- */

/*
 * Records an object. load: it was just loaded; else a state dump reports it. Called without the
 * lock.
 */
static void record_module(const struct module *m, bool load, const struct tracer_mask *only)
{
	char path[PATH_MAX], link[LINK_NAME_MAX];
	struct payload p = {.len = 0};
	uint32_t crc;
	bool linked;

	find_path(m->name, path, sizeof(path));
	linked = find_debug_link(path, link, &crc);
	put_u64(&p, m->baddr);
	put_u64(&p, m->memsz);
	put_string(&p, path);
	put_u8(&p, m->is_pic);
	put_u8(&p, m->n_build_id > 0);
	put_u8(&p, linked);
	record_own(load ? LIB_LOAD : DUMP_BIN_INFO, only, &p);
	if (m->n_build_id) {
		p.len = 0;
		put_u64(&p, m->baddr);
		put_u32(&p, m->n_build_id);
		put_payload(&p, m->build_id, m->n_build_id);
		record_own(load ? LIB_BUILD_ID : DUMP_BUILD_ID, only, &p);
	}
	if (linked) {
		p.len = 0;
		put_u64(&p, m->baddr);
		put_u32(&p, crc);
		put_string(&p, link);
		record_own(load ? LIB_DEBUG_LINK : DUMP_DEBUG_LINK, only, &p);
	}
}

static void record_procname(const struct tracer_mask *only)
{
	struct payload p = {.len = 0};
	char name[64];

	tracer_process_name(name, sizeof(name));
	put_string(&p, name);
	record_own(DUMP_PROCNAME, only, &p);
}

static bool has_module(const struct list *l, const struct module *wanted)
{
	const struct module *m;

	for_each_module(
		m, l) if (m->baddr == wanted->baddr && !strcmp(m->name, wanted->name)) return true;
	return false;
}

/* Records the differences of two lists. Called without the lock. */
static void record_changes(const struct list *before, const struct list *now)
{
	struct payload p;
	const struct module *m;

	for_each_module(m, before)
	{
		if (has_module(now, m))
			continue;
		p.len = 0;
		put_u64(&p, m->baddr);
		record_own(LIB_UNLOAD, NULL, &p);
	}
	for_each_module(m, now) if (!has_module(before, m)) record_module(m, true, NULL);
}

static int read_turn(struct dl_phdr_info *info, size_t size, void *turn)
{
	(void)size;
	*(uint64_t *)turn = info->dlpi_adds + info->dlpi_subs;
	return 1;
}

void tracer_self_look(void)
{
	const struct list *before = modules.known;
	uint32_t wanted = 0;
	uint64_t turn = 0;

	for (int i = LIB_LOAD; i <= LIB_UNLOAD; i++)
		wanted |= states[i].enabled;
	if (!wanted || modules.linker == STUCK) {
		modules.known = NULL;
		return;
	}
	ask_linker(read_turn, &turn);
	if (before && before->turn == turn)
		return;
	modules.known = collect_modules();
	if (!before || !modules.known)
		return;
	tracer_give_lock();
	record_changes(before, modules.known);
	tracer_take_lock();
}

static bool wants_dump(const struct tracer_mask *only)
{
	for (int i = DUMP_START; i <= DUMP_END; i++)
		if (tracer_leads_into(states[i].hooks, only))
			return true;
	return false;
}

void tracer_self_dump(const struct tracer_mask *only)
{
	static const struct payload nothing;
	const struct module *m;
	const struct list *l;

	if (!wants_dump(only) || modules.linker == STUCK)
		return;
	tracer_self_look();
	l = modules.known ? modules.known : collect_modules();
	tracer_give_lock();
	record_own(DUMP_START, only, &nothing);
	record_procname(only);
	if (l)
		for_each_module(m, l) record_module(m, false, only);
	record_own(DUMP_END, only, &nothing);
	tracer_take_lock();
}
