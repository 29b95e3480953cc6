/* SPDX-License-Identifier: MIT */
#include "kernel/kallsyms.h"

#include <fcntl.h>

#include "base/bisect.h"
#include "base/buf.h"

#define MAX_SIZE ((size_t)256 << 20)
#define LAST_MAX 65536u /* bytes of the last function, at most: nothing says where it ends */
/* Bytes of any function, at most: code of BPF and of modules without symbols is between others. */
#define FUNCTION_MAX (1u << 20)

struct ky_kallsyms {
	struct ky_buf text; /* the lines; names refer to it */
	struct ky_kernel_symbol *v;
	size_t n, cap;
};

static int read_all(struct ky_buf *b, int fd)
{
	ssize_t n = fd < 0 ? -1 : 1;
	char *to;

	b->max = MAX_SIZE;
	while (n > 0) {
		to = ky_buf_reserve(b, 64 << 10);
		n = to ? read(fd, to, 64 << 10) : -1;
		b->len += n > 0 ? (size_t)n : 0;
	}
	ky_buf_append(b, "", 1);
	return n < 0 || b->error ? -EIO : 0;
}

static int add_kallsym(struct ky_kallsyms *k, uint64_t address, char *name, char *module)
{
	if (k->n == k->cap) {
		size_t cap = k->cap ? 2 * k->cap : 4096;
		struct ky_kernel_symbol *more = reallocarray(k->v, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		k->v = more;
		k->cap = cap;
	}
	k->v[k->n++] = (struct ky_kernel_symbol){address, name, module, false};
	return 0;
}

/* "ffffffff81000000 T name [module]"; only functions and other text are of use. */
static int parse_line(struct ky_kallsyms *k, char *line)
{
	char *name, *module, *end, type;
	uint64_t address = strtoull(line, &end, 16);

	if (end == line || *end != ' ' || !end[1] || end[2] != ' ' ||
		!ky_is_kernel_address(address))
		return 0;
	type = end[1] | 0x20;
	if (type != 't' && type != 'w' && type != 'e')
		return 0;
	name = end + 3;
	module = name + strcspn(name, " \t");
	if (*module)
		*module++ = '\0';
	module += strspn(module, " \t[");
	module[strcspn(module, "]")] = '\0';
	if (type == 'e')
		return add_kallsym(k, address, (char *)"", module);
	return *name ? add_kallsym(k, address, name, module) : 0;
}

static int by_address(const void *a, const void *b)
{
	const struct ky_kernel_symbol *x = a, *y = b;

	if (x->address != y->address)
		return (x->address > y->address) - (x->address < y->address);
	if (!*x->name != !*y->name)
		return !*x->name - !*y->name;
	return (x->name > y->name) - (x->name < y->name);
}

/* Keeps the first of several names of an address, in the order of the file; they are sorted. */
static void drop_other_names(struct ky_kallsyms *k)
{
	size_t n = 0;

	for (size_t i = 0; i < k->n; i++)
		if (!n || k->v[n - 1].address != k->v[i].address)
			k->v[n++] = k->v[i];
	k->n = n;
}

struct ky_kallsyms *ky_kallsyms_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct ky_kallsyms *k = ky_kallsyms_read_fd(fd);

	ky_close(fd);
	return k;
}

struct ky_kallsyms *ky_kallsyms_read_fd(int fd)
{
	struct ky_kallsyms *k = calloc(1, sizeof(*k));
	int r = k ? read_all(&k->text, fd) : -ENOMEM;
	char *rest = r ? NULL : k->text.data, *line;

	while (!r && rest && (line = strsep(&rest, "\n")))
		r = parse_line(k, line);
	if (r || !k->n) {
		ky_kallsyms_free(k);
		return NULL;
	}
	qsort(k->v, k->n, sizeof(*k->v), by_address);
	drop_other_names(k);
	return k;
}

void ky_kallsyms_free(struct ky_kallsyms *k)
{
	if (!k)
		return;
	free(k->v);
	ky_buf_deinit(&k->text);
	free(k);
}

static struct ky_kernel_symbol *find_symbol(const struct ky_kallsyms *k, uint64_t address)
{
	size_t n;

	ky_bisect(n, k->n, i, k->v[i].address <= address);
	return n ? &k->v[n - 1] : NULL;
}

const struct ky_kernel_symbol *ky_kallsyms_find(const struct ky_kallsyms *k, uint64_t address)
{
	const struct ky_kernel_symbol *s = find_symbol(k, address);

	return s && *s->name && address - s->address < FUNCTION_MAX ? s : NULL;
}

const struct ky_kernel_symbol *ky_kallsyms_take(
	struct ky_kallsyms *k, uint64_t address, uint64_t *ret_end)
{
	struct ky_kernel_symbol *s = find_symbol(k, address);

	if (!s || !*s->name || s->taken)
		return NULL;
	*ret_end = s + 1 < k->v + k->n ? s[1].address : s->address + LAST_MAX;
	if (address >= *ret_end)
		return NULL;
	s->taken = true;
	return s;
}
