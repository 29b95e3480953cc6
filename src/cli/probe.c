/* SPDX-License-Identifier: MIT */
#include "cli/probe.h"

#include <limits.h>

#include "base/text.h"
#include "kernel/elf-places.h"
#include "cli/locate.h"
#include "cli/params.h"

#define LISTED_MAX 5
#define NEAR_LIMIT 3u

const char *const probe_options[] = {"probe", "function", "userspace-probe", NULL};

bool probe_is_given(const struct cli *cli)
{
	for (size_t i = 0; probe_options[i]; i++)
		if (cli_has(cli, probe_options[i]))
			return true;
	return false;
}

/* A place of a program. */
struct target {
	char path[PATH_MAX]; /* absolute */
	char symbol[256];    /* function; or name of an SDT probe */
	char provider[256];  /* "": no SDT probe */
	uint64_t offset;     /* behind the function's begin */
};

/* Makes a name of an event from a text: other letters become '_'. */
static void make_name(char *name, size_t size, const char *prefix, const char *text)
{
	snprintf(name, size, "%s%s%s", prefix, *prefix ? "_" : "", text);
	for (char *p = name; *p; p++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_", *p))
			*p = '_';
	if (*name >= '0' && *name <= '9')
		*name = '_';
}

/* Finds a program that is given without a directory, as shells do. */
static int find_program(const char *name, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH");
	size_t n;

	if (strchr(name, '/') || !dirs)
		return cli_absolute_path(path, PATH_MAX, name);
	for (; *dirs; dirs += n + (dirs[n] == ':')) {
		n = strcspn(dirs, ":");
		if (snprintf(path, PATH_MAX, "%.*s/%s", (int)n, dirs, name) < PATH_MAX &&
			!access(path, R_OK))
			return 0;
	}
	return cli_absolute_path(path, PATH_MAX, name);
}

static int bad_place(struct cli *cli, const char *place)
{
	return cli_usage(cli,
		"'%s' is not a place of a program: 'PATH:SYMBOL', 'PATH:SYMBOL+OFFSET' or 'sdt:PATH:PROVIDER:NAME'",
		place);
}

/* Decimal, hexadecimal or octal, without a sign. */
static bool parse_offset(const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 0);
	return *text >= '0' && *text <= '9' && !*end && !errno;
}

/* Divides "elf:PATH:SYMBOL+OFFSET" or "sdt:PATH:PROVIDER:NAME". Paths may have colons. */
static int parse_target(struct cli *cli, const char *place, struct target *ret)
{
	bool is_sdt = !strncmp(place, "sdt:", 4);
	char text[PATH_MAX + 512], *name, *provider = NULL, *plus = NULL;
	int r;

	if (is_sdt || !strncmp(place, "elf:", 4))
		place += 4;
	*ret = (struct target){0};
	if (snprintf(text, sizeof(text), "%s", place) >= (int)sizeof(text))
		return bad_place(cli, place);
	name = strrchr(text, ':');
	if (name)
		*name++ = '\0';
	if (name && is_sdt)
		provider = strrchr(text, ':');
	if (provider)
		*provider++ = '\0';
	if (name && !is_sdt)
		plus = strchr(name, '+');
	if (plus)
		*plus++ = '\0';
	if (!name || !*name || !*text || (is_sdt && (!provider || !*provider)) ||
		(plus && !parse_offset(plus, &ret->offset)) ||
		strlen(name) >= sizeof(ret->symbol) ||
		(provider && strlen(provider) >= sizeof(ret->provider)))
		return bad_place(cli, place);
	snprintf(ret->symbol, sizeof(ret->symbol), "%s", name);
	snprintf(ret->provider, sizeof(ret->provider), "%s", provider ? provider : "");
	r = find_program(text, ret->path);
	if (r < 0)
		return cli_fail(cli, "failed", "%s: %s", text, strerror(-r));
	if (strpbrk(ret->path, " \t\n#"))
		return cli_fail(cli, "unsupported",
			"%s: the kernel takes no path that has a space or '#': make a link to the file",
			ret->path);
	return CLI_OK;
}

static int open_target(struct cli *cli, const struct target *t, struct elf *ret)
{
	int r = elf_open(ret, t->path);

	if (r == -ENOEXEC)
		return cli_fail(cli, "unsupported",
			"%s is not a 64-bit program or library of this machine", t->path);
	return r < 0 ? cli_fail(cli, "failed", "%s: %s", t->path, strerror(-r)) : CLI_OK;
}

/* --- functions --- */

struct nearest {
	const char *wanted;
	char name[256];
	unsigned distance;
};

static void compare_name(void *arg, const char *name)
{
	struct nearest *n = arg;
	unsigned distance = ky_edit_distance(n->wanted, name, n->distance);

	if (distance >= n->distance || strlen(name) >= sizeof(n->name))
		return;
	n->distance = distance;
	snprintf(n->name, sizeof(n->name), "%s", name);
}

/* Adds the definitions for places of elf_function_places() or elf_sdt_places(). */
static int add_places(
	const char *name, const struct target *t, char *places, struct kymo_value *params)
{
	char *line, *place, *definition;
	int ret = 0;

	while (!ret && (line = strsep(&places, "\n")) && *line) {
		place = strchr(line, ' ') + 1;
		if (asprintf(&definition, "%s%.*s %s:%s", name, (int)(place - 1 - line), line,
			    t->path, place) < 0)
			return -ENOMEM;
		ret = kymo_value_add_string(params, "definitions", definition);
		free(definition);
	}
	return ret;
}

static int no_function(struct cli *cli, const struct target *t, const struct elf *e)
{
	struct nearest near = {.wanted = t->symbol, .distance = NEAR_LIMIT};

	elf_each_function(e, compare_name, &near);
	return cli_fail(cli, "not-found", "%s has no function '%s'%s%s%s", t->path, t->symbol,
		*near.name ? ": did you mean '" : "",
		*near.name ? near.name : ": were its symbols removed (strip)?",
		*near.name ? "'?" : "");
}

static int add_function(struct cli *cli, const struct target *t, const struct elf *e,
	const char *name, struct kymo_value *params)
{
	struct ky_buf places = {0};
	bool chooses;
	int r = elf_function_places(e, t->symbol, t->offset, &places, &chooses), code;

	if (r == -ENOENT)
		code = no_function(cli, t, e);
	else if (r == -ERANGE)
		code = cli_fail(cli, "not-found",
			"%s: offset %llu is behind the end of function '%s'", t->path,
			(unsigned long long)t->offset, t->symbol);
	else if (r == -ENOTUNIQ)
		code = cli_fail(cli, "unsupported",
			"%s has several functions '%s': an offset would be right for one of them only",
			t->path, t->symbol);
	else
		code = cli_params_added(cli,
			places.error ? places.error : add_places(name, t, places.data, params));
	if (!code && chooses && !cli->json)
		cli_warn(cli,
			"%s: '%s' chooses a function for each program that starts: the event shows the choice, and not the calls",
			t->path, t->symbol);
	ky_buf_deinit(&places);
	return code;
}

/* --- SDT probes --- */

struct sdt_names {
	struct ky_buf text;
	unsigned n;
};

/* Names of other probes, for a message. */
static void put_other(void *arg, const struct elf_sdt *probe)
{
	struct sdt_names *names = arg;

	if (names->n++ < LISTED_MAX)
		ky_buf_printf(&names->text, "%s%s:%s", names->n > 1 ? ", " : ": it has ",
			probe->provider, probe->name);
}

static int no_sdt_probe(struct cli *cli, const struct target *t, const struct elf *e)
{
	struct sdt_names others = {0};
	int code;

	elf_each_sdt(e, put_other, &others);
	code = cli_fail(cli, "not-found", "%s has no SDT probe '%s:%s'%s%s", t->path, t->provider,
		t->symbol, others.text.data ? others.text.data : "",
		others.n > LISTED_MAX ? " and others" : "");
	ky_buf_deinit(&others.text);
	return code;
}

static int add_sdt_probe(struct cli *cli, const struct target *t, const struct elf *e,
	const char *name, struct kymo_value *params)
{
	struct ky_buf places = {0};
	unsigned n_left_out = 0;
	int code;

	if (!elf_sdt_places(e, t->provider, t->symbol, &places, &n_left_out) && !places.error)
		return no_sdt_probe(cli, t, e);
	code = cli_params_added(
		cli, places.error ? places.error : add_places(name, t, places.data, params));
	if (!code && n_left_out && !cli->json)
		cli_warn(cli, "%s:%s: %u argument%s left out: the kernel cannot read where %s",
			t->provider, t->symbol, n_left_out, n_left_out == 1 ? " is" : "s are",
			n_left_out == 1 ? "it is" : "they are");
	ky_buf_deinit(&places);
	return code;
}

/* --- rules --- */

/* The place as it can be found again from any directory. */
static void put_place(struct kymo_value *params, const struct target *t)
{
	char place[PATH_MAX + 600];

	if (*t->provider)
		snprintf(place, sizeof(place), "sdt:%s:%s:%s", t->path, t->provider, t->symbol);
	else if (t->offset)
		snprintf(place, sizeof(place), "%s:%s+0x%llx", t->path, t->symbol,
			(unsigned long long)t->offset);
	else
		snprintf(place, sizeof(place), "%s:%s", t->path, t->symbol);
	kymo_value_set_string(params, "place", place);
}

static int add_userspace(
	struct cli *cli, const char *place, const char *name, struct kymo_value *params)
{
	struct target t;
	struct elf e;
	char made[600];
	int code = parse_target(cli, place, &t);

	if (code)
		return code;
	make_name(made, sizeof(made), t.provider, t.symbol);
	name = name ? name : made;
	code = open_target(cli, &t, &e);
	if (code)
		return code;
	code = (*t.provider ? add_sdt_probe : add_function)(cli, &t, &e, name, params);
	elf_close(&e);
	put_place(params, &t);
	return code ? code : cli_params_added(cli, kymo_value_add_string(params, "patterns", name));
}

int probe_params(struct cli *cli, const char *option, const char *place, const char *name,
	struct kymo_value *params)
{
	char made[256];

	kymo_value_set_string(params, "domain", "kernel");
	kymo_value_set_string(params, "kind", option);
	if (!strcmp(option, "userspace-probe"))
		return add_userspace(cli, place, name, params);
	kymo_value_set_string(params, "place", place);
	if (!strcmp(option, "probe"))
		make_name(made, sizeof(made), "", place);
	else
		snprintf(made, sizeof(made), "%s", place);
	return cli_params_added(cli, kymo_value_add_string(params, "patterns", name ? name : made));
}
