/* SPDX-License-Identifier: MIT */
#include "kernel/elf-places.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#ifdef __aarch64__
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

#define ARGUMENTS_MAX 12 /* the most arguments of an SDT probe */

/* A section. Its bytes are in the file: size is 0 if they are not. */
struct section {
	const uint8_t *data;
	uint64_t size, address;
	uint32_t type, link;
	const char *name;
};

/* Returns the n bytes at the offset, or NULL if the file does not have them. */
static const void *bytes_at(const struct elf *e, uint64_t offset, uint64_t n)
{
	return offset <= e->size && n <= e->size - offset ? e->data + offset : NULL;
}

/* Returns the text at the offset of a table, or "" if it does not end in there. */
static const char *text_at(const uint8_t *table, uint64_t size, uint64_t offset)
{
	return offset < size && memchr(table + offset, 0, size - offset)
		       ? (const char *)table + offset
		       : "";
}

static bool header_of(const struct elf *e, Elf64_Ehdr *ret)
{
	const void *at = bytes_at(e, 0, sizeof(*ret));

	if (!at)
		return false;
	memcpy(ret, at, sizeof(*ret));
	return !memcmp(ret->e_ident, ELFMAG, SELFMAG) && ret->e_ident[EI_CLASS] == ELFCLASS64 &&
	       ret->e_ident[EI_DATA] == ELFDATA2LSB && ret->e_machine == MACHINE;
}

int elf_open(struct elf *e, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), ret = 0;
	Elf64_Ehdr header;
	struct stat st;
	void *p = MAP_FAILED;

	*e = (struct elf){0};
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		ret = -errno;
	else if (!S_ISREG(st.st_mode) || !st.st_size)
		ret = -ENOEXEC;
	if (!ret)
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (!ret && p == MAP_FAILED)
		ret = -errno;
	close(fd);
	if (ret < 0)
		return ret;
	*e = (struct elf){p, (size_t)st.st_size};
	if (header_of(e, &header))
		return 0;
	elf_close(e);
	return -ENOEXEC;
}

void elf_close(struct elf *e)
{
	if (e->data)
		munmap((void *)e->data, e->size);
	*e = (struct elf){0};
}

/* Finds where an address of the program is in its file. */
static bool find_offset(const struct elf *e, uint64_t address, bool executable, uint64_t *ret)
{
	const uint8_t *at;
	Elf64_Ehdr header;
	Elf64_Phdr p;

	if (!header_of(e, &header))
		return false;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		at = bytes_at(e, header.e_phoff, (i + 1) * sizeof(p));
		if (!at || header.e_phentsize != sizeof(p))
			return false;
		memcpy(&p, at + i * sizeof(p), sizeof(p));
		if (p.p_type != PT_LOAD || address < p.p_vaddr ||
			address - p.p_vaddr >= p.p_filesz || (executable && !(p.p_flags & PF_X)))
			continue;
		*ret = address - p.p_vaddr + p.p_offset;
		return true;
	}
	return false;
}

static bool read_section(
	const struct elf *e, const Elf64_Ehdr *header, unsigned i, struct section *ret)
{
	const uint8_t *at = bytes_at(e, header->e_shoff, (i + 1) * sizeof(Elf64_Shdr));
	Elf64_Shdr s, names;

	if (!at || i >= header->e_shnum || header->e_shentsize != sizeof(s))
		return false;
	memcpy(&s, at + i * sizeof(s), sizeof(s));
	*ret = (struct section){
		.type = s.sh_type, .link = s.sh_link, .address = s.sh_addr, .name = ""};
	if (s.sh_type != SHT_NOBITS)
		ret->data = bytes_at(e, s.sh_offset, s.sh_size);
	ret->size = ret->data ? s.sh_size : 0;
	at = bytes_at(e, header->e_shoff, (header->e_shstrndx + 1u) * sizeof(names));
	if (!at)
		return true;
	memcpy(&names, at + header->e_shstrndx * sizeof(names), sizeof(names));
	at = bytes_at(e, names.sh_offset, names.sh_size);
	if (at)
		ret->name = text_at(at, names.sh_size, s.sh_name);
	return true;
}

/* Calls each() for the sections until it returns true. */
static bool each_section(const struct elf *e, void *arg,
	bool (*each)(void *arg, const struct elf *e, const struct section *s))
{
	Elf64_Ehdr header;
	struct section s;

	if (!header_of(e, &header))
		return false;
	for (unsigned i = 0; read_section(e, &header, i, &s); i++)
		if (each(arg, e, &s))
			return true;
	return false;
}

/* --- functions --- */

struct search {
	void (*each)(void *arg, const char *name, const Elf64_Sym *symbol);
	void *arg;
};

static bool is_function(const Elf64_Sym *s)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && s->st_shndx != SHN_UNDEF;
}

static bool search_symbols(void *arg, const struct elf *e, const struct section *s)
{
	struct search *search = arg;
	struct section names;
	Elf64_Ehdr header;
	const char *name;
	Elf64_Sym sym;

	if ((s->type != SHT_SYMTAB && s->type != SHT_DYNSYM) || !header_of(e, &header) ||
		!read_section(e, &header, s->link, &names))
		return false;
	for (uint64_t at = 0; at + sizeof(sym) <= s->size; at += sizeof(sym)) {
		memcpy(&sym, s->data + at, sizeof(sym));
		name = text_at(names.data, names.size, sym.st_name);
		if (is_function(&sym) && *name)
			search->each(search->arg, name, &sym);
	}
	return false;
}

/* The functions of one name. The tables of symbols may have a function twice. */
struct functions {
	const struct elf *e;
	const char *name;
	uint64_t distance, least_size;
	struct ky_buf *to, offsets;
	int n;
	bool chooses;
};

static bool has_offset(const struct ky_buf *offsets, uint64_t offset)
{
	for (size_t at = 0; at < offsets->len; at += sizeof(offset))
		if (!memcmp((const char *)offsets->data + at, &offset, sizeof(offset)))
			return true;
	return false;
}

static void put_function(void *arg, const char *name, const Elf64_Sym *symbol)
{
	struct functions *f = arg;
	uint64_t offset;

	if (strcmp(name, f->name) != 0 || !find_offset(f->e, symbol->st_value, true, &offset) ||
		has_offset(&f->offsets, offset))
		return;
	ky_buf_append(&f->offsets, &offset, sizeof(offset));
	ky_buf_printf(f->to, " 0x%llx\n", (unsigned long long)(offset + f->distance));
	f->least_size = f->n++ ? KY_MIN(f->least_size, symbol->st_size) : symbol->st_size;
	f->chooses |= ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC;
}

int elf_function_places(const struct elf *e, const char *name, uint64_t distance, struct ky_buf *to,
	bool *ret_chooses)
{
	struct functions f = {.e = e, .name = name, .distance = distance, .to = to};
	struct search search = {put_function, &f};

	each_section(e, &search, search_symbols);
	if (f.offsets.error)
		to->error = f.offsets.error;
	ky_buf_deinit(&f.offsets);
	*ret_chooses = f.chooses;
	if (!f.n)
		return -ENOENT;
	if (distance && f.n > 1)
		return -ENOTUNIQ;
	return distance && distance >= f.least_size ? -ERANGE : f.n;
}

struct names {
	void (*each)(void *arg, const char *name);
	void *arg;
};

static void report_name(void *arg, const char *name, const Elf64_Sym *symbol)
{
	const struct names *names = arg;

	names->each(names->arg, name);
}

void elf_each_function(const struct elf *e, void (*each)(void *arg, const char *name), void *arg)
{
	struct names names = {each, arg};
	struct search search = {report_name, &names};

	each_section(e, &search, search_symbols);
}

/* --- SDT probes --- */

struct notes {
	void (*each)(void *arg, const struct elf_sdt *probe);
	void *arg;
	uint64_t base; /* address of .stapsdt.base in this file; 0: none */
};

static bool find_base(void *arg, const struct elf *e, const struct section *s)
{
	struct notes *notes = arg;

	if (strcmp(s->name, ".stapsdt.base") != 0)
		return false;
	notes->base = s->address;
	return true;
}

/*
 * Reads a note's contents: addresses of the place, of .stapsdt.base when the note was made, and of
 * the semaphore; provider, name and arguments.
 */
static void read_note(const struct notes *notes, const struct elf *e, const uint8_t *at, uint64_t n)
{
	struct elf_sdt probe = {0};
	uint64_t addresses[3];
	uint64_t text = sizeof(addresses);

	if (n < sizeof(addresses))
		return;
	memcpy(addresses, at, sizeof(addresses));
	probe.provider = text_at(at, n, text);
	text += strlen(probe.provider) + 1;
	probe.name = text_at(at, n, text);
	text += strlen(probe.name) + 1;
	probe.arguments = text_at(at, n, text);
	if (notes->base && addresses[1]) /* prelink has moved the file */
		addresses[0] += notes->base - addresses[1];
	if (notes->base && addresses[1] && addresses[2])
		addresses[2] += notes->base - addresses[1];
	if (!*probe.provider || !*probe.name ||
		!find_offset(e, addresses[0], true, &probe.offset) ||
		(addresses[2] && !find_offset(e, addresses[2], false, &probe.semaphore)))
		return;
	notes->each(notes->arg, &probe);
}

static uint64_t round_up(uint64_t n)
{
	return (n + 3) & ~UINT64_C(3);
}

static bool read_notes(void *arg, const struct elf *e, const struct section *s)
{
	static const char owner[] = "stapsdt";
	Elf64_Nhdr note;

	if (s->type != SHT_NOTE || strcmp(s->name, ".note.stapsdt") != 0)
		return false;
	for (uint64_t at = 0; at + sizeof(note) <= s->size;) {
		uint64_t desc, end;

		memcpy(&note, s->data + at, sizeof(note));
		desc = at + sizeof(note) + round_up(note.n_namesz);
		end = desc + round_up(note.n_descsz);
		if (end > s->size)
			return false;
		if (note.n_type == 3 && note.n_namesz == sizeof(owner) &&
			!memcmp(s->data + at + sizeof(note), owner, sizeof(owner)))
			read_note(arg, e, s->data + desc, note.n_descsz);
		at = end;
	}
	return false;
}

void elf_each_sdt(
	const struct elf *e, void (*each)(void *arg, const struct elf_sdt *probe), void *arg)
{
	struct notes notes = {.each = each, .arg = arg};

	each_section(e, &notes, find_base);
	each_section(e, &notes, read_notes);
}

/* --- arguments of SDT probes --- */

/* Takes a register's name, as assemblers write it. Returns the kernel's name, or NULL. */
#ifdef __aarch64__
static const char *take_register(const char **text, char name[8])
{
	const char *p = *text;
	size_t n;

	if (!strncmp(p, "sp", 2)) {
		snprintf(name, 8, "sp");
		*text = p + 2;
		return name;
	}
	n = *p == 'x' || *p == 'w' ? strspn(p + 1, "0123456789") : 0;
	if (!n || n > 2)
		return NULL;
	snprintf(name, 8, "x%.*s", (int)n, p + 1);
	*text = p + 1 + n;
	return name;
}
#else
static const char *take_register(const char **text, char name[8])
{
	static const char *const old[][5] = {{"rax", "eax", "ax", "al", "ax"},
		{"rbx", "ebx", "bx", "bl", "bx"}, {"rcx", "ecx", "cx", "cl", "cx"},
		{"rdx", "edx", "dx", "dl", "dx"}, {"rsi", "esi", "si", "sil", "si"},
		{"rdi", "edi", "di", "dil", "di"}, {"rbp", "ebp", "bp", "bpl", "bp"},
		{"rsp", "esp", "sp", "spl", "sp"}};
	const char *p = *text;
	size_t n = *p == '%' ? strspn(++p, "abcdefghijklmnopqrstuvwxyz0123456789") : 0;
	size_t digits = n > 1 && *p == 'r' ? strspn(p + 1, "0123456789") : 0;

	*text = p + n;
	/* r8 to r15, and parts of them: r8d, r8w, r8b */
	if (digits && (n == digits + 1 || (n == digits + 2 && strchr("dwb", p[n - 1])))) {
		snprintf(name, 8, "r%.*s", (int)KY_MIN(digits, (size_t)2), p + 1);
		return name;
	}
	for (size_t i = 0; n && i < KY_ARRAY_SIZE(old); i++)
		for (size_t k = 0; k < 4; k++)
			if (strlen(old[i][k]) == n && !strncmp(old[i][k], p, n)) {
				snprintf(name, 8, "%s", old[i][4]);
				return name;
			}
	return NULL;
}
#endif

/* Writes the operand, up to a space, as the kernel calls it. */
#ifdef __aarch64__
static bool put_operand(const char *p, char *out, size_t size)
{
	char name[8], *end;
	long offset = 0;

	if (*p == '[') {
		p++;
		if (!take_register(&p, name))
			return false;
		if (*p == ',') {
			offset = strtol(p + 1, &end, 0);
			if (end == p + 1)
				return false;
			p = end;
		}
		snprintf(out, size, "%+ld(%%%s)", offset, name);
		return *p == ']' && (!p[1] || p[1] == ' ');
	}
	if (take_register(&p, name)) {
		snprintf(out, size, "%%%s", name);
		return !*p || *p == ' ';
	}
	offset = strtol(p, &end, 0);
	snprintf(out, size, "\\%ld", offset);
	return end > p && (!*end || *end == ' ');
}
#else
static bool put_operand(const char *p, char *out, size_t size)
{
	char name[8], *end;
	long offset = 0;

	if (*p == '$') {
		offset = strtol(p + 1, &end, 0);
		snprintf(out, size, "\\%ld", offset);
		return end > p + 1 && (!*end || *end == ' ');
	}
	if (*p == '%') {
		if (!take_register(&p, name))
			return false;
		snprintf(out, size, "%%%s", name);
		return !*p || *p == ' ';
	}
	if (*p != '(') {
		offset = strtol(p, &end, 0);
		if (end == p)
			return false;
		p = end;
	}
	if (*p++ != '(' || !take_register(&p, name))
		return false;
	snprintf(out, size, "%+ld(%%%s)", offset, name);
	return *p == ')' && (!p[1] || p[1] == ' ');
}
#endif

bool elf_sdt_argument(unsigned number, const char *text, char *out, size_t size)
{
	char operand[64], *end;
	long bytes = strtol(text, &end, 10);
	unsigned long n = (unsigned long)(bytes < 0 ? -bytes : bytes);

	if (end == text || *end != '@' || (n != 1 && n != 2 && n != 4 && n != 8) ||
		!put_operand(end + 1, operand, sizeof(operand)))
		return false;
	return snprintf(out, size, "a%u=%s:%c%lu", number, operand, bytes < 0 ? 's' : 'u', n * 8) <
	       (int)size;
}

struct places {
	struct ky_buf *to;
	const char *provider, *name;
	char types[512]; /* of the arguments at the first place */
	unsigned n, n_left_out;
};

/* Appends what the kernel calls the arguments, and their names and types alone to `types`. */
static unsigned put_arguments(struct ky_buf *to, struct ky_buf *types, const char *text)
{
	unsigned number = 0, n_left_out = 0;
	char out[96];

	for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
		if (++number > ARGUMENTS_MAX || !elf_sdt_argument(number, text, out, sizeof(out))) {
			n_left_out++;
		} else {
			ky_buf_printf(to, " %s", out);
			ky_buf_printf(types, " %u%s", number, strrchr(out, ':'));
		}
		text += strcspn(text, " ");
	}
	return n_left_out;
}

static void put_place(void *arg, const struct elf_sdt *probe)
{
	struct places *p = arg;
	struct ky_buf arguments = {0}, types = {0};

	if (strcmp(probe->provider, p->provider) != 0 || strcmp(probe->name, p->name) != 0)
		return;
	ky_buf_puts(&arguments, "");
	ky_buf_puts(&types, "");
	p->n_left_out += put_arguments(&arguments, &types, probe->arguments);
	if (arguments.error || types.error) {
		p->to->error = -ENOMEM;
	} else {
		if (!p->n++)
			snprintf(p->types, sizeof(p->types), "%s", types.data);
		else if (strcmp(p->types, types.data) != 0)
			ky_buf_printf(p->to, "_%u", p->n);
		ky_buf_printf(p->to, " 0x%llx", (unsigned long long)probe->offset);
		if (probe->semaphore)
			ky_buf_printf(p->to, "(0x%llx)", (unsigned long long)probe->semaphore);
		ky_buf_printf(p->to, "%s\n", arguments.data);
	}
	ky_buf_deinit(&arguments);
	ky_buf_deinit(&types);
}

unsigned elf_sdt_places(const struct elf *e, const char *provider, const char *name,
	struct ky_buf *to, unsigned *n_left_out)
{
	struct places p = {.to = to, .provider = provider, .name = name};

	elf_each_sdt(e, put_place, &p);
	*n_left_out += p.n_left_out;
	return p.n;
}
