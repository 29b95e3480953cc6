/* SPDX-License-Identifier: MIT */
#include "kernel/program.h"

#include "ctf/tsdl.h"
#include "kernel/names.h"
#include "kernel/syscall-text.h"

/* Offsets in the data of each event. */
#define COMMON_FLAGS   2
#define COMMON_PREEMPT 3
#define COMMON_PID     4
/* Bits of common_flags. */
#define FLAG_IRQS_OFF	  0x01
#define FLAG_NEED_RESCHED 0x04
#define FLAG_NESTED	  0x58 /* in a hard or soft interrupt, or in an NMI */
/* Bits of common_preempt_count: above them, nested prohibitions of migration. */
#define PREEMPT_DEPTH 0x0f

/* A program that is being made. */
struct maker {
	struct ky_kprogram *p;
	const struct ky_kformat *f;
	unsigned n_names;
	/*
	 * The last step if it is a copy whose end can still move. Numbers to add to values that it
	 * copies; their steps follow when it is complete. `at`: bytes of the copy up to the value's
	 * end.
	 */
	struct ky_kstep *copy;
	struct {
		uint32_t at;
		int32_t add;
	} adds[8];
	unsigned n_adds;
};

static struct ky_kstep *add_step(struct maker *m, uint8_t op, uint16_t offset, int32_t len)
{
	struct ky_kstep *s = &m->p->steps[m->p->n_steps++];

	*s = (struct ky_kstep){.op = op, .offset = offset, .len = len};
	return s;
}

/* Completes the copy: adds to its values, in place. */
static void end_copy(struct maker *m)
{
	uint32_t len = m->copy ? (uint32_t)m->copy->len : 0;

	for (unsigned i = 0; i < m->n_adds; i++)
		add_step(m, KY_KOP_ADD, (uint16_t)(len - m->adds[i].at + 4), m->adds[i].add);
	m->n_adds = 0;
	m->copy = NULL;
}

static void add_other(struct maker *m, uint8_t op, uint16_t offset, int32_t len)
{
	end_copy(m);
	add_step(m, op, offset, len);
}

/* Copies bytes: neighbours in the data are one step. */
static void add_copy(struct maker *m, uint16_t offset, uint32_t len, int32_t add)
{
	bool follows = m->copy && m->copy->offset + (uint32_t)m->copy->len == offset;

	if (!follows || m->n_adds == KY_ARRAY_SIZE(m->adds)) {
		end_copy(m);
		m->copy = add_step(m, KY_KOP_COPY, offset, 0);
	}
	m->copy->len += (int32_t)len;
	if (!add)
		return;
	m->adds[m->n_adds].at = (uint32_t)m->copy->len;
	m->adds[m->n_adds++].add = add;
}

static void add_place(struct maker *m, uint8_t op, const struct ky_kfield *field, int32_t len)
{
	end_copy(m);
	add_step(m, op, field->offset, len)->relative = field->relative;
}

static struct kymo_field *declare_field(struct maker *m, const char *name,
	const struct ky_kfield *from, int32_t added, struct kymo_field like)
{
	struct kymo_field *to = &m->p->fields[m->p->n_fields];

	m->p->from[m->p->n_fields++] = (struct ky_korigin){from, added};
	*to = like;
	to->name = name;
	return to;
}

static uint8_t integer_kind(const struct ky_kfield *f)
{
	return f->is_signed ? KYMO_FIELD_INT : KYMO_FIELD_UINT;
}

static void declare_integer(
	struct maker *m, const char *name, const struct ky_kfield *f, int32_t add)
{
	declare_field(m, name, f, add,
		(struct kymo_field){.kind = integer_kind(f),
			.size = f->out,
			.flags = f->hex ? KYMO_FIELD_HEX : 0});
}

static void put_string(struct maker *m, const char *name, const struct ky_kfield *f)
{
	if (f)
		add_place(m, KY_KOP_STRING, f, 0);
	else
		add_other(m, KY_KOP_EMPTY, 0, 0);
	declare_field(m, name, f, 0, (struct kymo_field){.kind = KYMO_FIELD_STRING});
}

/* The text, if the kernel has it, and its address. */
static void put_text_argument(struct maker *m, const struct ky_kfield *f)
{
	char *name = m->p->names[m->n_names++];

	put_string(m, f->name, ky_kcall_text(m->f, f));
	snprintf(name, sizeof(m->p->names[0]), "%s_ptr", f->name);
	add_copy(m, f->offset, f->out, 0);
	declare_integer(m, name, f, 0);
}

static void put_field(struct maker *m, const struct ky_kfield *f)
{
	const struct ky_krename *r = ky_krename_find(m->f->name, f->name);
	const char *name = r ? r->name : f->name;
	int32_t add = r && f->kind == KY_KFIELD_INT && f->out == 4 ? r->add : 0;

	if (!name || ky_kcall_is_value(m->f, f))
		return;
	if (ky_kcall_is_text(m->f, f) && m->n_names < KY_ARRAY_SIZE(m->p->names)) {
		put_text_argument(m, f);
		return;
	}
	if (f->kind == KY_KFIELD_TEXT && !strcmp(f->name, "rwbs")) {
		add_other(m, KY_KOP_RWBS, f->offset, f->size);
		declare_field(m, name, f, 0,
			(struct kymo_field){
				.kind = KYMO_FIELD_UINT, .size = 4, .flags = KYMO_FIELD_HEX});
		m->p->from[m->p->n_fields - 1].field = NULL;
		return;
	}
	switch (f->kind) {
	case KY_KFIELD_INT:
		add_copy(m, f->offset, f->out, add);
		declare_integer(m, name, f, add);
		break;
	case KY_KFIELD_TEXT:
		add_copy(m, f->offset, f->size, 0);
		declare_field(m, name, f, 0,
			(struct kymo_field){.kind = KYMO_FIELD_TEXT, .size = 1, .count = f->size});
		break;
	case KY_KFIELD_ARRAY:
		add_copy(m, f->offset, f->size, 0);
		declare_field(m, name, f, 0,
			(struct kymo_field){.kind = KYMO_FIELD_ARRAY,
				.elem = integer_kind(f),
				.size = f->elem,
				.count = f->size / f->elem});
		break;
	case KY_KFIELD_STRING:
		put_string(m, name, f);
		break;
	default:
		add_place(m, KY_KOP_SEQUENCE, f, f->elem);
		declare_field(m, name, f, 0,
			(struct kymo_field){.kind = KYMO_FIELD_SEQUENCE,
				.elem = integer_kind(f),
				.size = f->elem});
	}
}

static void put_process(struct maker *m, const char *name, uint16_t offset)
{
	add_other(m, KY_KOP_TGID, offset, 0);
	declare_field(m, name, NULL, 0, (struct kymo_field){.kind = KYMO_FIELD_INT, .size = 4});
}

/* Fields that LTTng's events have and the kernel's have not; and whether an interrupt wakes. */
static void put_added(struct maker *m)
{
	const struct ky_kfield *parent = ky_kformat_find(m->f, "parent_pid");
	const struct ky_kfield *child = ky_kformat_find(m->f, "child_pid");
	const struct ky_kfield *file = ky_kformat_find(m->f, "filename");

	if (!strcmp(m->f->name, "sched_process_fork") && parent && child) {
		put_process(m, "parent_pid", parent->offset);
		put_process(m, "child_pid", child->offset);
	}
	if (!strcmp(m->f->name, "sched_process_exec") && file && file->kind == KY_KFIELD_STRING) {
		add_place(m, KY_KOP_BASENAME, file, KY_CTX_PROCNAME_SIZE);
		declare_field(m, "procname", NULL, 0,
			(struct kymo_field){
				.kind = KYMO_FIELD_TEXT, .size = 1, .count = KY_CTX_PROCNAME_SIZE});
	}
	if (!strcmp(m->f->name, "sched_waking")) {
		add_other(m, KY_KOP_SOME_BITS, COMMON_FLAGS, FLAG_NESTED);
		declare_field(m, "in_interrupt", NULL, 0,
			(struct kymo_field){.kind = KYMO_FIELD_UINT, .size = 1});
	}
	if (!strncmp(m->f->name, "block_rq_", 9) && !ky_kformat_find(m->f, "tid")) {
		add_copy(m, COMMON_PID, 4, 0);
		declare_field(
			m, "tid", NULL, 0, (struct kymo_field){.kind = KYMO_FIELD_INT, .size = 4});
	}
}

static void put_context(struct maker *m, const struct ky_ctx_type *t)
{
	switch (t->kind) {
	case KY_KCTX_TID:
		add_copy(m, COMMON_PID, 4, 0);
		break;
	case KY_KCTX_PID:
		add_other(m, KY_KOP_TGID, COMMON_PID, 0);
		break;
	case KY_KCTX_PROCNAME:
		add_other(m, KY_KOP_PROCNAME, COMMON_PID, 0);
		break;
	case KY_KCTX_INTERRUPTIBLE:
		add_other(m, KY_KOP_ZERO_BITS, COMMON_FLAGS, FLAG_IRQS_OFF);
		break;
	case KY_KCTX_PREEMPTIBLE:
		add_other(m, KY_KOP_ZERO_BITS, COMMON_PREEMPT, PREEMPT_DEPTH);
		break;
	case KY_KCTX_NEED_RESCHEDULE:
		add_other(m, KY_KOP_SOME_BITS, COMMON_FLAGS, FLAG_NEED_RESCHED);
		break;
	case KY_KCTX_CALLSTACK_KERNEL:
		add_other(m, KY_KOP_KERNEL_STACK, 0, 0);
		break;
	default:
		add_other(m, KY_KOP_USER_STACK, 0, 0);
	}
}

int ky_kprogram_make(struct ky_kprogram *p, const char *system, const struct ky_kformat *f,
	const struct ky_context *contexts, uint32_t n_contexts)
{
	struct maker m = {.p = p, .f = f};

	*p = (struct ky_kprogram){.min = KY_MAX(f->end, 8u)};
	if (n_contexts > KY_KCONTEXTS_MAX)
		return -E2BIG;
	ky_kname(system, f->name, p->name, sizeof(p->name));
	for (uint32_t i = 0; i < n_contexts; i++)
		put_context(&m, contexts[i].type);
	if (n_contexts)
		add_other(&m, KY_KOP_FIELDS, 0, 0);
	for (unsigned i = f->n_common; i < f->n_fields; i++)
		put_field(&m, &f->fields[i]);
	put_added(&m);
	end_copy(&m);
	p->fields[p->n_fields] = (struct kymo_field){0};
	return 0;
}

void ky_kernel_describe(struct ky_writer *w, const char *name, const struct kymo_field *fields)
{
	const struct kymo_event ev = {
		.size = sizeof(ev), .provider = "", .name = name, .fields = fields};

	ky_desc_encode(w, &ev);
}

void ky_kernel_tsdl_event(struct ky_buf *b, const char *name, const struct kymo_field *fields,
	uint32_t stream_id, uint32_t id, const struct ky_context *contexts, uint32_t n_contexts)
{
	uint8_t desc[(KY_KOUT_MAX + 2) * (KY_KNAME_MAX + 64)];
	struct ky_writer w = {.buf = desc, .cap = sizeof(desc)};

	ky_kernel_describe(&w, name, fields);
	if (w.error)
		b->error = w.error;
	else
		ky_tsdl_event(b, stream_id, id, (struct ky_bytes){desc, (uint32_t)w.len}, contexts,
			n_contexts);
}

int ky_kstack_make(struct ky_kstep *ret, const struct ky_kformat *f)
{
	const struct ky_kfield *caller = ky_kformat_find(f, "caller");
	bool user = !strcmp(f->name, "user_stack");

	if (!caller || (!user && strcmp(f->name, "kernel_stack")))
		return -EBADMSG;
	*ret = (struct ky_kstep){
		.op = user ? KY_KOP_USER_STACK : KY_KOP_KERNEL_STACK, .offset = caller->offset};
	return 0;
}

static int find_place(const struct ky_kformat *f, const char *name, uint16_t size, uint16_t *ret)
{
	const struct ky_kfield *field = ky_kformat_find(f, name);

	if (!field || field->size < size)
		return -EBADMSG;
	*ret = field->offset;
	return 0;
}

int ky_ktasks_make(struct ky_ktasks *t, const char *newtask, const char *rename)
{
	struct ky_kformat *f = malloc(sizeof(*f));
	int ret = f ? ky_kformat_parse(f, newtask) : -ENOMEM;

	*t = (struct ky_ktasks){0};
	if (!ret)
		ret = find_place(f, "pid", 4, &t->newtask_pid);
	if (!ret)
		ret = find_place(f, "comm", 16, &t->newtask_comm);
	if (!ret)
		ret = find_place(f, "clone_flags", 8, &t->newtask_flags);
	if (!ret) {
		t->newtask = f->id;
		ret = ky_kformat_parse(f, rename);
	}
	if (!ret)
		ret = find_place(f, "pid", 4, &t->rename_pid);
	if (!ret)
		ret = find_place(f, "newcomm", 16, &t->rename_comm);
	if (!ret)
		t->rename = f->id;
	free(f);
	return ret;
}
