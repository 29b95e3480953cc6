/* SPDX-License-Identifier: MIT */
#include "symbols/elf-file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "symbols/elfutils.h"

#define SEGMENTS_MAX 16

/* The addresses of a file, and the places in it that are loaded there. */
struct extent {
	uint64_t begin, end;
	struct segment {
		uint64_t offset, size, address;
	} segments[SEGMENTS_MAX];
	size_t n_segments;
};

struct ky_elf {
	Dwfl_Callbacks callbacks;
	char *debug_path; /* owned: where debugging information is looked for */
	Dwfl *dwfl;	  /* owned */
	Dwfl_Module *module;
	struct extent extent;
	char *demangled[KY_FRAMES_MAX]; /* owned: names of the last call */
};

/* --- the file --- */

#define PAGE 4096

static bool find_extent(Elf *elf, struct extent *ret)
{
	size_t n = 0;

	*ret = (struct extent){.begin = UINT64_MAX};
	if (elfutils.elf_getphdrnum(elf, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr storage, *p = elfutils.gelf_getphdr(elf, (int)i, &storage);

		if (!p || p->p_type != PT_LOAD)
			continue;
		ret->begin = KY_MIN(ret->begin, p->p_vaddr);
		ret->end = KY_MAX(ret->end, p->p_vaddr + p->p_memsz);
		if (ret->n_segments < SEGMENTS_MAX)
			ret->segments[ret->n_segments++] = (struct segment){
				p->p_offset, p->p_filesz, p->p_vaddr};
	}
	return ret->end > ret->begin;
}

/*
 * A file is the recorded one if it has the recorded build ID. If none was recorded, the size in
 * memory, which readers can compare at least, must be equal up to whole pages.
 */
static bool is_same(Elf *elf, const struct ky_elf_identity *id, const struct extent *x)
{
	const void *bytes;
	ssize_t n = elfutils.dwelf_elf_gnu_build_id(elf, &bytes);

	if (id->n_build_id)
		return n == (ssize_t)id->n_build_id && !memcmp(bytes, id->build_id, (size_t)n);
	return n <= 0 && ky_align_up(x->end - x->begin, PAGE) == ky_align_up(id->memsz, PAGE);
}

/* Opens a file without waiting for a FIFO's writer. Returns its descriptor or -1. */
static int open_regular(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		return -1;
	}
	return fd;
}

static enum ky_elf_result check_file(
	int fd, const struct ky_elf_identity *id, struct extent *ret_extent)
{
	Elf *elf = fd < 0 ? NULL : elfutils.elf_begin(fd, ELF_C_READ_MMAP, NULL);
	enum ky_elf_result r = KY_ELF_MISSING;

	if (elf && elfutils.elf_kind(elf) == ELF_K_ELF && find_extent(elf, ret_extent))
		r = is_same(elf, id, ret_extent) ? KY_ELF_FOUND : KY_ELF_DIFFERENT;
	elfutils.elf_end(elf);
	return r;
}

/* Gives the file to libdwfl, which owns the descriptor if that succeeds. */
static bool report_file(
	struct ky_elf *e, const struct ky_elf_identity *id, const char *path, int fd)
{
	e->dwfl = elfutils.dwfl_begin(&e->callbacks);
	if (!e->dwfl)
		return false;
	elfutils.dwfl_report_begin(e->dwfl);
	e->module = elfutils.dwfl_report_elf(e->dwfl, id->path, path, fd, 0, true);
	elfutils.dwfl_report_end(e->dwfl, NULL, NULL);
	return e->module;
}

static enum ky_elf_result try_path(
	struct ky_elf *e, const struct ky_elf_identity *id, const char *path)
{
	struct extent x;
	int fd = open_regular(path);
	enum ky_elf_result r = check_file(fd, id, &x);

	if (r == KY_ELF_FOUND && report_file(e, id, path, fd)) {
		e->extent = x;
		return r;
	}
	ky_close(fd);
	elfutils.dwfl_end(e->dwfl);
	e->dwfl = NULL;
	return r == KY_ELF_FOUND ? KY_ELF_MISSING : r;
}

/* ".build-id/ab/cdef.debug"; false without a build ID. */
static bool put_build_id_path(struct ky_buf *b, const struct ky_elf_identity *id)
{
	if (id->n_build_id < 2)
		return false;
	ky_buf_printf(b, "/.build-id/%02x/", id->build_id[0]);
	for (size_t i = 1; i < id->n_build_id; i++)
		ky_buf_printf(b, "%02x", id->build_id[i]);
	return true;
}

/* Looks for the file in one directory: as a system, and as a directory of debug files. */
static enum ky_elf_result try_dir(
	struct ky_elf *e, const struct ky_elf_identity *id, const char *dir)
{
	static const char *const below[] = {"", "/usr/lib/debug"}, *const ends[] = {"", ".debug"};
	const char *name = strrchr(id->path, '/');
	enum ky_elf_result result = KY_ELF_MISSING, r;
	struct ky_buf path = {0};

	for (size_t i = 0; i < 6 && result != KY_ELF_FOUND; i++) {
		bool ok = true;

		path.len = 0;
		ky_buf_puts(&path, dir);
		if (i == 0) {
			ky_buf_puts(&path, id->path);
		} else if (i == 1) {
			ky_buf_puts(&path, name ? name : id->path);
		} else {
			ky_buf_puts(&path, below[i / 2 - 1]);
			ok = put_build_id_path(&path, id);
			ky_buf_puts(&path, ends[i % 2]);
		}
		if (!ok || path.error)
			continue;
		r = try_path(e, id, path.data);
		result = r == KY_ELF_MISSING ? result : r;
	}
	ky_buf_deinit(&path);
	return result;
}

/* The directories of debugging information, as libdwfl has them: ":" alone has its defaults. */
static char *make_debug_path(const char *const *dirs, size_t n)
{
	struct ky_buf b = {0};

	ky_buf_puts(&b, "+:.debug");
	for (size_t i = 0; i < n; i++)
		ky_buf_printf(&b, ":%s/usr/lib/debug:%s", dirs[i], dirs[i]);
	ky_buf_puts(&b, ":/usr/lib/debug");
	if (b.error)
		ky_buf_deinit(&b);
	return b.data;
}

enum ky_elf_result ky_elf_open(struct ky_elf **ret_elf, const struct ky_elf_identity *id,
	const char *const *dirs, size_t n)
{
	enum ky_elf_result result = KY_ELF_MISSING, r;
	struct ky_elf *e;

	*ret_elf = NULL;
	if (!elfutils_load())
		return KY_ELF_NO_LIBRARY;
	elfutils.elf_version(EV_CURRENT);
	e = calloc(1, sizeof(*e));
	if (e)
		e->debug_path = make_debug_path(dirs, n);
	if (!e || !e->debug_path || *id->path != '/') {
		ky_elf_close(e);
		return KY_ELF_MISSING;
	}
	e->callbacks = (Dwfl_Callbacks){.find_elf = elfutils.dwfl_build_id_find_elf,
		.find_debuginfo = elfutils.dwfl_standard_find_debuginfo,
		.debuginfo_path = &e->debug_path};
	for (size_t i = 0; i <= n && result != KY_ELF_FOUND; i++) {
		r = try_dir(e, id, i < n ? dirs[i] : "");
		result = r == KY_ELF_MISSING ? result : r;
	}
	if (result == KY_ELF_FOUND)
		*ret_elf = e;
	else
		ky_elf_close(e);
	return result;
}

static void free_names(struct ky_elf *e)
{
	for (size_t i = 0; i < KY_FRAMES_MAX; i++) {
		free(e->demangled[i]);
		e->demangled[i] = NULL;
	}
}

void ky_elf_close(struct ky_elf *e)
{
	if (!e)
		return;
	free_names(e);
	elfutils.dwfl_end(e->dwfl);
	free(e->debug_path);
	free(e);
}

uint64_t ky_elf_base(const struct ky_elf *e)
{
	return e->extent.begin;
}

uint64_t ky_elf_distance(const struct ky_elf *e, uint64_t file_offset)
{
	for (size_t i = 0; i < e->extent.n_segments; i++) {
		const struct segment *s = &e->extent.segments[i];

		if (file_offset >= s->offset && file_offset - s->offset < s->size)
			return s->address + (file_offset - s->offset) - e->extent.begin;
	}
	return file_offset;
}

/* --- names --- */

typedef char *demangle_fn(const char *name, char *buf, size_t *len, int *status);

/*
 * Returns the demangler of the C++ library, if there is one on this machine: C programs need none.
 * It is loaded once and stays loaded.
 */
static demangle_fn *find_demangler(void)
{
	static demangle_fn *found;
	static bool was_asked;

	if (!was_asked) {
		void *cpp = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);

		found = cpp ? (demangle_fn *)dlsym(cpp, "__cxa_demangle") : NULL;
		was_asked = true;
	}
	return found;
}

/* Returns the name as source text has it; it may live in e, as number i. */
static const char *demangle(struct ky_elf *e, size_t i, const char *name)
{
	demangle_fn *fn = name && !strncmp(name, "_Z", 2) ? find_demangler() : NULL;
	int status = -1;

	if (!fn)
		return name;
	free(e->demangled[i]);
	e->demangled[i] = fn(name, NULL, NULL, &status);
	return e->demangled[i] ? e->demangled[i] : name;
}

static const char *last_part(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

/* --- inlined functions --- */

static bool is_function(Dwarf_Die *die)
{
	int tag = elfutils.dwarf_tag(die);

	return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram;
}

static const char *name_of(Dwarf_Die *die)
{
	static const unsigned names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name};
	Dwarf_Attribute a;

	for (size_t i = 0; i < KY_ARRAY_SIZE(names); i++) {
		const char *name = elfutils.dwarf_formstring(
			elfutils.dwarf_attr_integrate(die, names[i], &a));

		if (name)
			return name;
	}
	return elfutils.dwarf_diename(die);
}

/* Sets the place in the source that an inlined function was called from. */
static void set_call(struct ky_elf_frame *f, Dwarf_Die *cu, Dwarf_Die *die)
{
	Dwarf_Word file, line;
	Dwarf_Files *files;
	Dwarf_Attribute a;
	size_t n;

	if (!elfutils.dwarf_formudata(elfutils.dwarf_attr(die, DW_AT_call_line, &a), &line))
		f->line = (int)KY_MIN(line, (Dwarf_Word)INT_MAX);
	if (!elfutils.dwarf_formudata(elfutils.dwarf_attr(die, DW_AT_call_file, &a), &file) &&
		!elfutils.dwarf_getsrcfiles(cu, &files, &n) && file < n)
		f->file = last_part(elfutils.dwarf_filesrc(files, file, NULL, NULL));
}

/* Returns the functions around the address, the innermost first; the last one is not inlined. */
static int get_functions(Dwarf_Die *cu, Dwarf_Addr address, Dwarf_Die **ret)
{
	Dwarf_Die *scopes = NULL;
	int n = elfutils.dwarf_getscopes(cu, address, &scopes), i = 0, n_outer = 0;

	*ret = NULL;
	while (i < n && !is_function(&scopes[i]))
		i++;
	if (i < n)
		n_outer = elfutils.dwarf_getscopes_die(&scopes[i], ret);
	free(scopes);
	return n_outer;
}

/*
 * Names the functions, and adds a frame for each that the one before was inlined into. The first
 * frame has its line already; the line of each further one is that of the call. The last one has no
 * name if the debugging information has none.
 */
static void add_functions(struct ky_elf *e, Dwarf_Addr address, struct ky_elf_place *ret)
{
	Dwarf_Addr bias = 0;
	Dwarf_Die *cu = elfutils.dwfl_module_addrdie(e->module, address, &bias), *scopes;
	int n = cu ? get_functions(cu, address - bias, &scopes) : 0;

	if (!cu)
		return;
	for (int i = 0; i < n && ret->n < KY_FRAMES_MAX; i++) {
		if (!is_function(&scopes[i]))
			continue;
		ret->frames[ret->n - 1].name = demangle(e, ret->n - 1, name_of(&scopes[i]));
		if (elfutils.dwarf_tag(&scopes[i]) == DW_TAG_subprogram)
			break;
		ret->frames[ret->n] = (struct ky_elf_frame){0};
		set_call(&ret->frames[ret->n++], cu, &scopes[i]);
	}
	free(scopes);
}

static bool is_of_tracer(const char *name)
{
	static const char *const tracers[] = {"kymo__", "lttng_ust_", "__tracepoint_"};

	for (size_t i = 0; name && i < KY_ARRAY_SIZE(tracers); i++)
		if (!strncmp(name, tracers[i], strlen(tracers[i])))
			return true;
	return false;
}

/* Drops inlined functions of tracers in front: users look for the function that has the event. */
static void drop_tracer(struct ky_elf_place *p)
{
	size_t n = 0;

	while (n + 1 < p->n && is_of_tracer(p->frames[n].name))
		n++;
	p->n -= n;
	memmove(p->frames, p->frames + n, p->n * sizeof(p->frames[0]));
}

bool ky_elf_find(struct ky_elf *e, uint64_t address, bool is_return, struct ky_elf_place *ret)
{
	GElf_Addr at = address - is_return;
	struct ky_elf_frame *outer;
	const char *name;
	GElf_Off offset = 0;
	Dwfl_Line *line;
	GElf_Sym sym;

	memset(ret, 0, sizeof(*ret));
	if (at < e->extent.begin || at >= e->extent.end)
		return false;
	free_names(e);
	ret->n = 1;
	line = elfutils.dwfl_module_getsrc(e->module, at);
	if (line)
		ret->frames[0].file = last_part(
			elfutils.dwfl_lineinfo(line, NULL, &ret->frames[0].line, NULL, NULL, NULL));
	add_functions(e, at, ret);
	outer = &ret->frames[ret->n - 1];
	name = elfutils.dwfl_module_addrinfo(e->module, at, &offset, &sym, NULL, NULL, NULL);
	if (!outer->name)
		outer->name = demangle(e, ret->n - 1, name);
	ret->offset = offset + is_return;
	drop_tracer(ret);
	return outer->name || outer->file;
}
