/* SPDX-License-Identifier: MIT */
#include "analysis/heap.h"

/* The fields of a memory function's event. */
struct ky_heap_class {
	bool is_free;
	struct ky_field_ref size, nmemb, ptr, in_ptr, site, process;
};

struct block {
	struct ky_hnode node;
	uint64_t process, address, size;
	uint32_t site;
};

/* --- blocks --- */

static struct block *find_block(const struct ky_heap *h, uint64_t process, uint64_t address)
{
	const uint64_t key[] = {process, address};
	struct ky_hnode *n = ky_htab_first(&h->blocks, ky_hash(key, sizeof(key)));

	for (; n; n = ky_htab_next(n)) {
		struct block *b = ky_container_of(n, struct block, node);

		if (b->process == process && b->address == address)
			return b;
	}
	return NULL;
}

static void count_in(struct ky_heap_use *u, uint64_t size, int64_t ns)
{
	u->n_calls++;
	u->n_bytes += size;
	u->n_blocks++;
	u->in_use += size;
	if (u->in_use > u->peak) {
		u->peak = u->in_use;
		u->peak_ns = ns;
	}
}

static void count_out(struct ky_heap_use *u, uint64_t size)
{
	u->n_blocks--;
	u->in_use -= size;
}

static bool drop_block(struct ky_heap *h, uint64_t process, uint64_t address)
{
	struct block *b = find_block(h, process, address);

	if (!b)
		return false;
	count_out(&h->all, b->size);
	count_out(&h->sites.v[b->site], b->size);
	ky_htab_remove(&h->blocks, &b->node);
	free(b);
	return true;
}

static int reserve_site(struct ky_heap *h, uint32_t site)
{
	while (h->sites.n <= site) {
		if (ky_vec_add(&h->sites, (struct ky_heap_use){0}) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int add_block(struct ky_heap *h, const struct block *like, int64_t ns)
{
	const uint64_t key[] = {like->process, like->address};
	struct block *b;

	/* Its release is not in the trace. */
	drop_block(h, like->process, like->address);
	b = malloc(sizeof(*b));
	if (!b || reserve_site(h, like->site) < 0) {
		free(b);
		return -ENOMEM;
	}
	*b = *like;
	if (ky_htab_add(&h->blocks, &b->node, ky_hash(key, sizeof(key))) < 0) {
		free(b);
		return -ENOMEM;
	}
	count_in(&h->all, b->size, ns);
	count_in(&h->sites.v[b->site], b->size, ns);
	return 0;
}

static void count_release(struct ky_heap *h, uint64_t process, uint64_t address)
{
	if (!address)
		return;
	if (drop_block(h, process, address))
		h->n_releases++;
	else
		h->n_unknown++;
}

/* --- events --- */

static int add_event(struct ky_heap *h, const struct ky_item *item, const struct ky_sites *sites)
{
	struct ky_heap_class *c = &h->classes[item->event->index];
	uint64_t pid = ky_site_number(&c->process, item, 0);
	struct block b = {.process = ky_site_process(item, pid)};
	uint64_t in = ky_site_number(&c->in_ptr, item, 0);

	b.address = ky_site_number(&c->ptr, item, 0);
	if (c->is_free) {
		count_release(h, b.process, b.address);
		return 0;
	}
	b.size = ky_site_number(&c->size, item, 0) * ky_site_number(&c->nmemb, item, 1);
	/* realloc(): a failure keeps the old memory, but that of size 0 is a release. */
	if (in && (b.address || !b.size))
		count_release(h, b.process, in);
	if (!b.address) {
		h->n_failed += b.size != 0;
		return 0;
	}
	b.site = sites->find(sites->arg, item, pid, ky_site_number(&c->site, item, 0), true);
	return add_block(h, &b, item->ns);
}

static void bind_class(struct ky_heap_class *c, const struct ky_event_class *e)
{
	ky_field_find(&c->size, e, "size");
	ky_field_find(&c->nmemb, e, "nmemb");
	if (!ky_field_find(&c->ptr, e, "ptr"))
		ky_field_find(&c->ptr, e, "out_ptr");
	ky_field_find(&c->in_ptr, e, "in_ptr");
	if (!ky_field_find(&c->site, e, "caller"))
		ky_field_find(&c->site, e, "ip");
	ky_keys_find(&c->process, e, "process");
}

/* Finds the classes of memory functions. */
static int bind_heap_classes(struct ky_heap *h, uint8_t *want, const struct ky_query *q)
{
	const struct ky_trace_reader *r = q->reader;

	h->classes = calloc(r->n_classes + 1, sizeof(*h->classes));
	if (!h->classes || !want)
		return -ENOMEM;
	for (size_t i = 0; i < r->n_classes; i++) {
		const char *function = ky_site_function(r->classes[i], "libc");
		struct ky_heap_class *c = &h->classes[i];

		if (!function || !ky_query_has(q, i))
			continue;
		bind_class(c, r->classes[i]);
		c->is_free = !strcmp(function, "free");
		if (!c->ptr.node || !(c->is_free || c->size.node))
			continue;
		want[i] = KY_WANT_EVENT | KY_WANT_VALUES;
		h->n_classes++;
	}
	return 0;
}

static int read_all(struct ky_heap *h, struct ky_cursor *cursor, const struct ky_sites *sites)
{
	struct ky_values values = {0};
	struct ky_item item;
	int r;

	while ((r = ky_cursor_next(cursor, &item, &values)) > 0) {
		if (item.kind == KY_ITEM_EVENT)
			r = add_event(h, &item, sites);
		else
			h->n_gaps++;
		values.n = 0;
		if (r < 0)
			break;
	}
	free(values.v);
	return r;
}

int ky_heap_collect(struct ky_heap *h, const struct ky_query *q, const struct ky_sites *sites,
	const struct ky_trace_reader_options *options)
{
	struct ky_reading reading = {0};
	uint8_t *want = calloc(q->reader->n_classes + 1, 1);
	int r;

	*h = (struct ky_heap){0};
	r = bind_heap_classes(h, want, q);
	if (!r)
		r = ky_reading_init(&reading, q, want, NULL, options);
	if (!r)
		r = read_all(h, reading.cursor, sites);
	ky_reading_deinit(&reading);
	free(want);
	return r;
}

void ky_heap_deinit(struct ky_heap *h)
{
	ky_htab_free_all(&h->blocks, struct block, node);
	ky_vec_deinit(&h->sites);
	free(h->classes);
	*h = (struct ky_heap){0};
}
