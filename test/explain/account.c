/* SPDX-License-Identifier: MIT */
/* Prints the account of each instance of a span: account TRACE SPAN. For test-explain.py. */
#include <inttypes.h>

#include "explain/account.h"
#include "reader/reader.h"

static void print_path(const struct ky_explain *x, uint32_t c)
{
	static const char *const waits[] = {[KY_PART_LOCK] = "(lock)",
		[KY_PART_CONDITION] = "(condition)",
		[KY_PART_READY] = "(ready)",
		[KY_PART_WAIT] = "(waiting)"};
	const struct ky_component *o = ky_component_get(&x->components, c);

	if (o->parent) {
		print_path(x, o->parent);
		printf("|");
	}
	if (o->kind == KY_PART_SPAN)
		printf("%s", ky_texts_get(&x->names, o->a));
	else if (o->kind == KY_PART_WAY)
		printf("%s..%s", ky_texts_get(&x->names, o->a), ky_texts_get(&x->names, o->b));
	else
		printf("%s", waits[o->kind]);
}

static void print_instance(const struct ky_explain *x, const struct ky_instance *i)
{
	printf("instance %" PRId64 " %" PRId64 " %" PRId64 "\n", x->threads.v[i->thread]->tid,
		i->begin_ns, i->end_ns);
	for (size_t k = 0; k < i->parts.n; k++) {
		const struct ky_part *p = &i->parts.v[k];

		printf("%" PRIu32 " %" PRId64 " ", p->count, p->ns);
		print_path(x, p->component);
		printf("\n");
	}
}

int main(int argc, char **argv)
{
	struct ky_instances v = {0};
	struct ky_instance **chosen = NULL;
	struct ky_explain x = {0};
	struct ky_source *s = NULL;
	const struct ky_trace_reader_options options = {0};
	struct ky_trace_reader *reader = NULL;
	struct ky_query query;
	char why[512];
	int r;

	if (argc != 3)
		return 2;
	x.span = ky_texts_add(&x.names, argv[2], strlen(argv[2]));
	r = ky_trace_reader_open(
		&reader, (const char *const *)&argv[1], 1, &options, why, sizeof(why));
	if (r)
		return 1;
	ky_query_init(&query, reader);
	r = ky_source_new(&s, &query, &x.names);
	if (!r)
		r = ky_instances_read(&v, &x, s);
	if (!r)
		chosen = calloc(v.all.n + 1, sizeof(*chosen));
	for (size_t i = 0; chosen && i < v.all.n; i++)
		chosen[i] = &v.all.v[i];
	if (chosen)
		r = ky_account_read(&x, s, &v, chosen, v.all.n);
	for (size_t i = 0; !r && i < v.all.n; i++)
		print_instance(&x, &v.all.v[i]);
	if (r)
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
	free(chosen);
	ky_source_free(s);
	ky_instances_deinit(&v);
	ky_explain_deinit(&x);
	ky_query_deinit(&query);
	ky_trace_reader_close(reader);
	return r ? 1 : 0;
}
