/* SPDX-License-Identifier: MIT */
#include "symbols/symbols.h"

#include <inttypes.h>
#include <pthread.h>

#include "base/buf.h"
#include "kernel/kallsyms.h"

#define MAX_PLACES 262144 /* cached; then the cache is emptied */

/* A file of one or several processes. */
struct ky_symbol_file {
	struct ky_symbol_file *next;
	const struct ky_mapping *like; /* borrowed: its identity */
	const char *name;	       /* last part of its path */
	struct ky_elf *elf;	       /* owned, or NULL */
	enum ky_elf_result result;
};

/* The kernel's symbols of one host. */
struct kernel {
	struct kernel *next;
	const char *host; /* borrowed from the reader */
	struct ky_kallsyms *symbols;
};

/* The result for an address of a file. */
struct place {
	struct ky_hnode node;
	const struct ky_symbol_file *file;
	uint64_t offset;
	bool is_return;
	char *text[2]; /* owned; by enum ky_symbol_form */
};

struct ky_symbols {
	pthread_mutex_t lock; /* protects all below */
	struct kymo_reader *reader;
	struct ky_map *map; /* owned */
	char **dirs;	    /* owned */
	size_t n_dirs;
	struct ky_symbol_file *files; /* owned */
	struct kernel *kernels;	      /* owned */
	struct ky_htab places;	      /* struct place */
	char **reasons;		      /* owned: lines for ky_symbols_report */
	size_t n_reasons;
	bool was_asked;
	uint64_t n_ambiguous, n_unknown;
};

/* --- reasons --- */

static void add_reason(struct ky_symbols *s, const char *fmt, ...) KY_PRINTF(2, 3);
static void add_reason(struct ky_symbols *s, const char *fmt, ...)
{
	char **more = reallocarray(s->reasons, s->n_reasons + 1, sizeof(*more));
	va_list ap;

	if (!more)
		return;
	s->reasons = more;
	va_start(ap, fmt);
	if (vasprintf(&more[s->n_reasons], fmt, ap) >= 0)
		s->n_reasons++;
	va_end(ap);
}

/* Adds a reason that holds for all files. */
static void add_reason_once(struct ky_symbols *s, const char *text)
{
	for (size_t i = 0; i < s->n_reasons; i++)
		if (!strcmp(s->reasons[i], text))
			return;
	add_reason(s, "%s", text);
}

static void put_hex(char *to, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sprintf(to + 2 * i, "%02x", bytes[i]);
}

static void explain_file(struct ky_symbols *s, const struct ky_symbol_file *f)
{
	const struct ky_mapping *m = f->like;
	char id[2 * KY_BUILD_ID_MAX + 1] = "";

	put_hex(id, m->build_id, m->n_build_id);
	if (m->has_offset && !m->n_build_id)
		add_reason(s,
			"%s: no build ID was recorded, so that nobody knows which build ran: link it with --build-id",
			m->path);
	else if (f->result == KY_ELF_DIFFERENT)
		add_reason(s,
			"%s is another build than the one that ran%s%s: its symbols are not used",
			m->path, *id ? ", build ID " : "", id);
	else if (f->result == KY_ELF_NO_LIBRARY)
		add_reason_once(s, "libdw.so.1, which reads files, is missing on this machine");
	else if (f->result == KY_ELF_NOT_BUILT)
		add_reason_once(s,
			"this build of kymo cannot read files (libdw was missing when it was built)");
	else if (f->result == KY_ELF_MISSING && *m->path == '/')
		add_reason(s, "%s is not here, nor debugging information%s%s: %s", m->path,
			*id ? " for build ID " : "", id,
			"--symbols=DIR names a directory that has it");
}

/* --- files --- */

static bool is_file(const struct ky_symbol_file *f, const struct ky_mapping *m)
{
	const struct ky_mapping *like = f->like;

	return like->n_build_id == m->n_build_id &&
	       !memcmp(like->build_id, m->build_id, m->n_build_id) &&
	       like->has_offset == m->has_offset && like->end - like->begin == m->end - m->begin &&
	       !strcmp(like->path, m->path);
}

/* Opens the file. One whose build ID is still unknown is not compared, and so not used. */
static struct ky_symbol_file *open_file(struct ky_symbols *s, const struct ky_mapping *m)
{
	struct ky_elf_identity id = {.path = m->path,
		.n_build_id = m->n_build_id,
		/* of a part of a file, no size is known: without a build ID, it is no file's */
		.memsz = m->has_offset ? 0 : m->end - m->begin};
	const char *slash = strrchr(m->path, '/');
	struct ky_symbol_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	memcpy(id.build_id, m->build_id, m->n_build_id);
	f->like = m;
	f->name = slash && slash[1] ? slash + 1 : m->path;
	f->result = KY_ELF_MISSING;
	if (m->n_build_id || !m->has_build_id)
		f->result = ky_elf_open(&f->elf, &id, (const char *const *)s->dirs, s->n_dirs);
	explain_file(s, f);
	f->next = s->files;
	s->files = f;
	return f;
}

static struct ky_symbol_file *get_file(struct ky_symbols *s, struct ky_mapping *m)
{
	for (struct ky_symbol_file *f = s->files; f && !m->file; f = f->next)
		if (is_file(f, m))
			m->file = f;
	if (!m->file)
		m->file = open_file(s, m);
	return m->file;
}

/* --- texts --- */

static void put_frame_place(struct ky_buf *b, const struct ky_elf_frame *f, const char *object)
{
	if (f->file && f->line)
		ky_buf_printf(b, " (%s:%d)", f->file, f->line);
	else
		ky_buf_printf(b, " (%s)", f->file ? f->file : object);
}

/* "inlined (a.h:3) in function+0x1c (b.c:12)" */
static void put_place(
	struct ky_buf *b, const struct ky_elf_place *p, const char *object, uint64_t offset)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct ky_elf_frame *f = &p->frames[i];
		bool is_last = i + 1 == p->n;

		if (f->name && is_last)
			ky_buf_printf(b, "%s+0x%" PRIx64, f->name, p->offset);
		else if (is_last)
			ky_buf_printf(b, "%s+0x%" PRIx64, object, offset);
		else
			ky_buf_puts(b, f->name ? f->name : "?");
		put_frame_place(b, f, object);
		if (!is_last)
			ky_buf_puts(b, " in ");
	}
}

/* ';' separates frames, a blank the count, a newline stacks. */
static char stack_char(char c)
{
	return c == ';' ? ':' : (unsigned char)c <= ' ' ? '_' : c;
}

static void put_stack_name(struct ky_buf *b, const char *name)
{
	for (; *name; name++)
		ky_buf_append(b, (char[]){stack_char(*name)}, 1);
}

static void put_stack(struct ky_buf *b, const struct ky_elf_place *p, const char *object)
{
	for (size_t i = p->n; i-- > 0;) {
		if (p->frames[i].name) {
			put_stack_name(b, p->frames[i].name);
		} else {
			ky_buf_puts(b, "[");
			put_stack_name(b, object);
			ky_buf_puts(b, "]");
		}
		ky_buf_puts(b, i ? ";" : "");
	}
}

static size_t copy_text(char to[KY_SYMBOL_MAX], const char *text)
{
	size_t n = KY_MIN(strlen(text), (size_t)KY_SYMBOL_MAX - 1);

	memcpy(to, text, n);
	to[n] = '\0';
	return n;
}

/* --- places --- */

static void free_place(struct place *p)
{
	free(p->text[KY_SYMBOL_PLACE]);
	free(p->text[KY_SYMBOL_STACK]);
	free(p);
}

static void empty_cache(struct ky_symbols *s)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(&s->places, i, n, tmp)
	{
		free_place(ky_container_of(n, struct place, node));
	}
	ky_htab_deinit(&s->places);
	s->places = (struct ky_htab){0};
}

/* Finds the functions at an offset from the file's lowest address. */
static void describe_place(struct place *to, struct ky_elf_place *p)
{
	const struct ky_symbol_file *f = to->file;
	struct ky_buf place = {0}, stack = {0};

	if (!f->elf || !ky_elf_find(f->elf, ky_elf_base(f->elf) + to->offset, to->is_return, p)) {
		p->n = 0;
		ky_buf_printf(&place, "%s+0x%" PRIx64, f->name, to->offset);
		ky_buf_puts(&stack, "[");
		put_stack_name(&stack, f->name);
		ky_buf_puts(&stack, "]");
	}
	put_place(&place, p, f->name, to->offset);
	put_stack(&stack, p, f->name);
	to->text[KY_SYMBOL_PLACE] = place.data;
	to->text[KY_SYMBOL_STACK] = stack.data;
}

static uint32_t hash_place(const struct place *p)
{
	const uint64_t key[] = {(uintptr_t)p->file, p->offset, p->is_return};

	return ky_hash(key, sizeof(key));
}

static const struct place *get_place(struct ky_symbols *s, const struct place *like)
{
	uint32_t hash = hash_place(like);
	struct ky_elf_place found = {0};
	struct place *p;

	for (struct ky_hnode *n = ky_htab_first(&s->places, hash); n; n = ky_htab_next(n)) {
		p = ky_container_of(n, struct place, node);
		if (p->file == like->file && p->offset == like->offset &&
			p->is_return == like->is_return)
			return p;
	}
	if (s->places.n >= MAX_PLACES)
		empty_cache(s);
	p = malloc(sizeof(*p));
	if (!p)
		return NULL;
	*p = *like;
	describe_place(p, &found);
	if (!p->text[0] || !p->text[1] || ky_htab_add(&s->places, &p->node, hash) < 0) {
		free_place(p);
		return NULL;
	}
	return p;
}

/* --- the kernel --- */

static bool is_of_host(const struct ky_symbols *s, size_t trace, const char *host)
{
	const struct kymo_trace_info *t = kymo_reader_trace(s->reader, trace);

	return !*host || !*t->host || !strcmp(t->host, host);
}

/* Returns whether the trace is of this machine, since it was started. */
static bool is_of_this_boot(const struct ky_symbols *s, size_t trace)
{
	const char *boot = kymo_reader_env(s->reader, trace, "boot_id");
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	char now[64] = "";

	if (f && fgets(now, sizeof(now), f))
		now[strcspn(now, "\n")] = '\0';
	if (f)
		fclose(f);
	return boot && *boot && !strcmp(boot, now);
}

/* Reads the symbols that the trace has. */
static struct ky_kallsyms *read_index(const char *trace)
{
	struct ky_buf path = {0};
	struct ky_kallsyms *symbols = NULL;

	ky_buf_printf(&path, "%s/index/kallsyms", trace);
	if (!path.error)
		symbols = ky_kallsyms_read(path.data);
	ky_buf_deinit(&path);
	return symbols;
}

/*
 * Reads the symbols of the kernel that runs, if it wrote a trace of the host, and shows us its
 * addresses: it has all; else those in the first trace that has some. Returns NULL without memory.
 */
static struct kernel *read_kernel(struct ky_symbols *s, const char *host)
{
	struct kernel *k = calloc(1, sizeof(*k));
	const size_t n = k ? kymo_reader_n_traces(s->reader) : 0;
	bool is_here = false;

	for (size_t i = 0; i < n; i++)
		is_here = is_here || (is_of_host(s, i, host) && is_of_this_boot(s, i));
	if (is_here)
		k->symbols = ky_kallsyms_read("/proc/kallsyms");
	for (size_t i = 0; i < n && !k->symbols; i++)
		if (is_of_host(s, i, host))
			k->symbols = read_index(kymo_reader_trace(s->reader, i)->path);
	if (k) {
		k->host = host;
		k->next = s->kernels;
		s->kernels = k;
	}
	return k;
}

static size_t find_in_kernel(struct ky_symbols *s, const struct ky_symbol_address *a,
	enum ky_symbol_form form, char text[KY_SYMBOL_MAX])
{
	const struct ky_kernel_symbol *sym;
	struct kernel *k = s->kernels;
	int n;

	while (k && strcmp(k->host, a->process.host))
		k = k->next;
	if (!k)
		k = read_kernel(s, a->process.host);
	sym = k && k->symbols ? ky_kallsyms_find(k->symbols, a->address - a->is_return) : NULL;
	if (!sym)
		return 0;
	if (form == KY_SYMBOL_STACK) {
		for (char *c = text + copy_text(text, sym->name); c-- > text;)
			*c = stack_char(*c);
		return strlen(text);
	}
	n = snprintf(text, KY_SYMBOL_MAX, "%s+0x%" PRIx64 " (%s)", sym->name,
		a->address - sym->address, *sym->module ? sym->module : "kernel");
	return KY_MIN((size_t)n, (size_t)KY_SYMBOL_MAX - 1);
}

/* --- the interface --- */

static int copy_dirs(struct ky_symbols *s, const char *const *dirs, size_t n)
{
	s->dirs = calloc(n + 1, sizeof(*s->dirs));
	for (; s->dirs && s->n_dirs < n; s->n_dirs++) {
		s->dirs[s->n_dirs] = strdup(dirs[s->n_dirs]);
		if (!s->dirs[s->n_dirs])
			return -ENOMEM;
	}
	return s->dirs ? 0 : -ENOMEM;
}

int ky_symbols_new(struct ky_symbols **ret_symbols, struct kymo_reader *reader,
	const char *const *dirs, size_t n_dirs)
{
	struct ky_symbols *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	s->reader = reader;
	r = copy_dirs(s, dirs, n_dirs);
	if (!r)
		r = ky_map_new(&s->map, reader);
	if (!r)
		r = ky_map_read(s->map);
	if (r < 0)
		ky_symbols_free(s);
	else
		*ret_symbols = s;
	return r;
}

static void forget_reasons(struct ky_symbols *s)
{
	for (size_t i = 0; i < s->n_reasons; i++)
		free(s->reasons[i]);
	s->n_reasons = 0;
}

static void free_kernels(struct ky_symbols *s)
{
	struct kernel *k;

	while ((k = s->kernels)) {
		s->kernels = k->next;
		ky_kallsyms_free(k->symbols);
		free(k);
	}
}

static void free_files(struct ky_symbols *s)
{
	struct ky_symbol_file *f;

	while ((f = s->files)) {
		s->files = f->next;
		ky_elf_close(f->elf);
		free(f);
	}
}

void ky_symbols_free(struct ky_symbols *s)
{
	if (!s)
		return;
	empty_cache(s);
	free_files(s);
	free_kernels(s);
	forget_reasons(s);
	free(s->reasons);
	for (size_t i = 0; i < s->n_dirs; i++)
		free(s->dirs[i]);
	free(s->dirs);
	ky_map_free(s->map);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int ky_symbols_refresh(struct ky_symbols *s)
{
	/* Names of hosts are borrowed from the reader, whose description has changed. */
	free_kernels(s);
	return ky_map_read(s->map);
}

static size_t find_in_files(struct ky_symbols *s, const struct ky_symbol_address *a,
	enum ky_symbol_form form, char text[KY_SYMBOL_MAX])
{
	struct place like = {.is_return = a->is_return};
	struct ky_mapping *m = NULL;
	const struct place *p;

	switch (ky_map_find(
		s->map, &a->process, a->has_time ? &a->ns : NULL, a->address - a->is_return, &m)) {
	case KY_MAP_NONE:
		s->n_unknown++;
		return 0;
	case KY_MAP_AMBIGUOUS:
		s->n_ambiguous++;
		return 0;
	case KY_MAP_FOUND:
		break;
	}
	like.file = get_file(s, m);
	like.offset = a->address - m->begin + m->offset;
	if (m->has_offset && like.file && like.file->elf)
		like.offset = ky_elf_distance(like.file->elf, like.offset);
	p = like.file ? get_place(s, &like) : NULL;
	return p ? copy_text(text, p->text[form]) : 0;
}

size_t ky_symbols_find(struct ky_symbols *s, const struct ky_symbol_address *a,
	enum ky_symbol_form form, char text[KY_SYMBOL_MAX])
{
	size_t n;

	if (!a->address)
		return 0;
	pthread_mutex_lock(&s->lock);
	s->was_asked = true;
	n = ky_is_kernel_address(a->address) ? find_in_kernel(s, a, form, text)
					     : find_in_files(s, a, form, text);
	pthread_mutex_unlock(&s->lock);
	return n;
}

void ky_symbols_report(struct ky_symbols *s, void (*warn)(void *arg, const char *text), void *arg)
{
	if (s->n_unknown && !ky_map_has_any(s->map))
		add_reason(s, "the trace does not say which files were in memory: record %s, or %s",
			"'kymo_statedump:*' and 'kymo_lib:*' with the context vpid",
			"use 'kymo record' with -t ip or -t callstack");
	if (s->n_ambiguous)
		add_reason(s,
			"%" PRIu64
			" address%s may belong to several processes: record the context vpid",
			s->n_ambiguous, s->n_ambiguous == 1 ? "" : "es");
	if (ky_map_take_left_out(s->map))
		add_reason(
			s, "processes had too many files in memory: some addresses have no names");
	for (size_t i = 0; i < s->n_reasons; i++)
		warn(arg, s->reasons[i]);
	forget_reasons(s);
	s->n_unknown = s->n_ambiguous = 0;
}

bool ky_symbols_is_address(const char *field, bool *ret_is_return)
{
	static const struct {
		const char *name;
		bool is_return;
	} names[] = {{"addr", false}, {"ip", true}, {"caller", true}, {"call_site", true},
		{"callstack", true}, {"callstack_user", true}, {"callstack_kernel", true}};

	for (size_t i = 0; i < KY_ARRAY_SIZE(names); i++) {
		if (strcmp(names[i].name, field))
			continue;
		*ret_is_return = names[i].is_return;
		return true;
	}
	return false;
}
