/* SPDX-License-Identifier: MIT */
#include "cli/symbols.h"

#include "cli/select.h"
#include "cli/text.h"

/* The fields of a class that say its process. */
struct cli_process_fields {
	struct ky_field_ref pid, pid_ns;
};

/* --- the option --- */

/* A name with '/' is a directory, another one a field. */
static int add_name(struct cli *cli, struct cli_symbols *s, const char *name)
{
	bool is_dir = strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, "..");
	size_t *n = is_dir ? &s->n_dirs : &s->n_fields;

	if (!*name)
		return cli_usage(cli, "--symbols: a name is missing");
	if (*n == CLI_SYMBOLS_MAX)
		return cli_usage(cli, "--symbols: more than %d names", CLI_SYMBOLS_MAX);
	if (is_dir && access(name, X_OK) < 0)
		return cli_fail(cli, "not-found", "--symbols: %s: %s", name, strerror(errno));
	(is_dir ? s->dirs : s->fields)[(*n)++] = name;
	return CLI_OK;
}

int cli_symbols_parse(struct cli *cli, struct cli_symbols *s)
{
	const char *given;
	struct ky_buf all = {0};
	size_t iter = 0;
	char *rest, *name;
	int r = CLI_OK;

	s->is_wanted = cli_has(cli, "symbols");
	for (size_t i = 0; i < cli->args.n_given; i++) {
		given = cli_args_next(&cli->args, "symbols", &iter);
		if (given)
			ky_buf_printf(&all, "%s%s", all.len ? "," : "", given);
	}
	if (all.error)
		return cli_fail(cli, "failed", "no memory");
	s->given = rest = all.data;
	while (!r && rest && (name = strsep(&rest, ",")))
		r = add_name(cli, s, name);
	return r;
}

static enum ky_show how_to_show(const void *arg, const char *name, unsigned base)
{
	const struct cli_symbols *s = arg;
	bool is_return = false;

	for (size_t i = 0; i < s->n_fields; i++)
		if (!strcmp(s->fields[i], name))
			return KY_SHOW_ADDRESS;
	if (base != 16 || !ky_symbols_is_address(name, &is_return))
		return KY_SHOW_NUMBER;
	return is_return ? KY_SHOW_RETURN : KY_SHOW_ADDRESS;
}

void cli_symbols_prepare(const struct cli_symbols *s, struct ky_trace_reader_options *options)
{
	options->show = s->is_wanted ? how_to_show : NULL;
	options->show_arg = s;
	options->names = s->is_wanted;
}

/* --- addresses of events --- */

static bool get_context(const struct ky_field_ref *f, const struct ky_item *event, uint64_t *ret)
{
	struct ky_field_ref own = *f; /* several threads use f */
	struct ky_field_value value;

	if (!f->node || !ky_field_get(&own, event, &value) || value.v->node->kind != KY_NODE_INT)
		return false;
	*ret = value.v->u;
	return true;
}

static const struct ky_env *env_of(const struct ky_item *event, const char *name)
{
	return ky_tsdl_env(&event->trace->tsdl, name);
}

static size_t find_symbol(void *arg, const struct ky_item *event, uint64_t address, bool is_return,
	char text[KY_SYMBOL_TEXT])
{
	const struct cli_symbols *s = arg;
	const struct cli_process_fields *f = &s->process[event->event->index];
	const struct ky_env *host = env_of(event, "hostname"), *vpid = env_of(event, "vpid");
	struct ky_symbol_address a = {.has_time = event->has_time,
		.ns = event->ns,
		.address = address,
		.is_return = is_return};
	uint64_t pid = vpid && !vpid->text ? (uint64_t)vpid->number : 0;

	a.process.host = host && host->text ? host->text : "";
	a.process.is_known = get_context(&f->pid, event, &pid) || vpid;
	a.process.pid = (int64_t)pid;
	get_context(&f->pid_ns, event, &a.process.pid_ns);
	_Static_assert(KY_SYMBOL_TEXT == KY_SYMBOL_MAX, "one size of symbols");
	return ky_symbols_find(s->symbols, &a, KY_SYMBOL_PLACE, text);
}

/* Finds the contexts of all classes that there are now. */
static int bind_process_fields(struct cli_symbols *s)
{
	const struct ky_trace_reader *r = s->shown;
	struct cli_process_fields *f = calloc(r->n_classes + 1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	for (size_t i = 0; i < r->n_classes; i++) {
		if (!ky_field_find(&f[i].pid, r->classes[i], "$ctx.vpid"))
			ky_field_find(&f[i].pid, r->classes[i], "$ctx.pid");
		ky_field_find(&f[i].pid_ns, r->classes[i], "$ctx.pid_ns");
		/* Lines are made when the record may be out of reach. */
		f[i].pid.place = f[i].pid_ns.place = KY_FIELD_ANYWHERE;
	}
	free(s->process);
	s->process = f;
	return 0;
}

/* --- the traces --- */

bool cli_symbols_has_files(const struct ky_trace_reader *r)
{
	for (size_t i = 0; i < r->n_classes; i++) {
		const char *name = r->classes[i]->name;

		if (name &&
			(!strncmp(name, "kymo_statedump:", 15) || !strncmp(name, "kymo_lib:", 9) ||
				!strncmp(name, "lttng_ust_statedump:", 20)))
			return true;
	}
	return false;
}

static bool has_member(const struct ky_node *scope, const char *name)
{
	for (uint32_t i = 0; scope && scope->kind != KY_NODE_INT && i < scope->n; i++) {
		if (!strcmp(scope->children[i].name, name) || has_member(&scope->children[i], name))
			return true;
	}
	return false;
}

static bool has_field(const struct ky_trace_reader *r, const char *name)
{
	for (size_t i = 0; i < r->n_classes; i++) {
		const struct ky_event_class *e = r->classes[i];

		if (has_member(e->fields, name) || has_member(e->context, name) ||
			has_member(e->stream->event_context, name) ||
			has_member(e->stream->packet_context, name))
			return true;
	}
	return false;
}

/* A name without '/' may be mistyped, or that of a directory. More fields may come later. */
static void warn_of_fields(
	struct cli *cli, const struct cli_symbols *s, const struct ky_trace_reader *shown)
{
	for (size_t i = 0; i < s->n_fields && !shown->options.is_growing; i++) {
		const char *name = s->fields[i];
		const char *near = cli_near_field(shown, name, NULL);
		bool is_dir = access(name, X_OK) == 0;

		if (!has_field(shown, name))
			cli_warn(cli,
				"--symbols: no event of the trace has a field or context '%s'%s%s%s",
				name,
				is_dir ? ": write a directory with a '/': '"
				: near ? ": did you mean '"
				       : "",
				is_dir ? name
				: near ? near
				       : "",
				is_dir ? "/'"
				: near ? "'?"
				       : "");
	}
}

int cli_symbols_open(struct cli *cli, struct cli_symbols *s, const struct ky_trace_reader *shown,
	const struct ky_symbolizer **ret)
{
	const struct kymo_reader_options options = {
		.size = sizeof(options), .is_growing = shown->options.is_growing};
	int r;

	*ret = NULL;
	if (!s->is_wanted)
		return CLI_OK;
	s->shown = shown;
	warn_of_fields(cli, s, shown);
	r = kymo_reader_open(
		&s->reader, (const char *const *)shown->paths, shown->n_paths, &options, NULL);
	if (!r)
		r = ky_symbols_new(&s->symbols, s->reader, s->dirs, s->n_dirs);
	if (!r)
		r = bind_process_fields(s);
	if (r < 0)
		return cli_fail(cli, "failed",
			"cannot read the files of programs from the trace: %s", strerror(-r));
	s->symbolizer = (struct ky_symbolizer){find_symbol, s};
	*ret = &s->symbolizer;
	return CLI_OK;
}

int cli_symbols_refresh(struct cli_symbols *s)
{
	int r = s->symbols ? kymo_reader_refresh(s->reader) : 0;

	if (r > 0)
		r = ky_symbols_refresh(s->symbols);
	if (!r && s->symbols)
		r = bind_process_fields(s);
	return KY_MIN(r, 0);
}

void cli_symbols_warn(void *arg, const char *text)
{
	cli_warn(arg, "symbols: %s", text);
}

void cli_symbols_report(struct cli *cli, struct cli_symbols *s)
{
	if (s->symbols)
		ky_symbols_report(s->symbols, cli_symbols_warn, cli);
}

int cli_symbols_folded(struct cli *cli, struct cli_symbols *s, struct ky_folded_options *ret)
{
	const char *stacks = cli_get(cli, "stacks");
	int r = cli_symbols_parse(cli, s);

	if (!r && s->n_fields)
		r = cli_usage(
			cli, "--symbols: '%s' is no directory: write it with a '/'", s->fields[0]);
	if (!r && stacks && strcmp(stacks, "spans") && strcmp(stacks, "calls"))
		r = cli_usage(cli, "unknown stacks '%s': use spans or calls", stacks);
	*ret = (struct ky_folded_options){
		.dirs = s->dirs, .n_dirs = s->n_dirs, .warn = cli_symbols_warn, .arg = cli};
	if (stacks)
		ret->stacks = strcmp(stacks, "spans") ? KY_STACKS_CALLS : KY_STACKS_SPANS;
	return r;
}

void cli_symbols_end(struct cli_symbols *s)
{
	ky_symbols_free(s->symbols);
	kymo_reader_close(s->reader);
	free(s->process);
	free(s->given);
	*s = (struct cli_symbols){0};
}
