/* SPDX-License-Identifier: MIT */
#include "filter/insn.h"

/* The values of a field that a test accepts: all from `least` to `most`. */
struct range {
	uint64_t least, most;
};

/* Finds the operation of a test of a near integer. Returns false for another instruction. */
static bool find_test(const struct ky_filter_insn *i, unsigned *ret_which)
{
	for (unsigned op = KY_INSN_LT_S8; op <= KY_INSN_LOAD_U64; op++)
		if (i->run == ky_filter_functions[op]) {
			*ret_which = (op - KY_INSN_LT_S8) % (KY_INSN_LT_U8 - KY_INSN_LT_S8);
			return *ret_which < KY_INSN_LOAD_S8 - KY_INSN_LT_S8;
		}
	return false;
}

/* Returns false if no value is accepted. which: as in KY_INSN_NEAR_OPS. */
static bool range_of_signed(unsigned which, int64_t number, struct range type, struct range *ret)
{
	int64_t least = (int64_t)type.least, most = (int64_t)type.most;

	if (which == KY_INSN_LT_S8 - KY_INSN_LT_S8 && number == INT64_MIN)
		return false;
	if (which == KY_INSN_EQ_S8 - KY_INSN_LT_S8)
		least = KY_MAX(least, number);
	most = KY_MIN(most, which == KY_INSN_LT_S8 - KY_INSN_LT_S8 ? number - 1 : number);
	*ret = (struct range){(uint64_t)least, (uint64_t)most};
	return least <= most;
}

static bool range_of_unsigned(unsigned which, uint64_t number, struct range *ret)
{
	if (which == KY_INSN_LT_S8 - KY_INSN_LT_S8 && !number)
		return false;
	ret->least = which == KY_INSN_EQ_S8 - KY_INSN_LT_S8 ? number : 0;
	ret->most = which == KY_INSN_LT_S8 - KY_INSN_LT_S8 ? number - 1 : number;
	return true;
}

static bool range_of(const struct ky_filter_insn *i, unsigned which, struct range *ret)
{
	uint64_t all = UINT64_MAX >> (64 - 8 * i->size);
	struct range type = {0, all};

	if (i->flags & KY_INSN_SIGNED)
		type = (struct range){~(all >> 1), all >> 1};
	else if (i->size == sizeof(uint64_t))
		return range_of_unsigned(which, i->number.u, ret);
	return range_of_signed(which, i->number.s, type, ret);
}

static const struct ky_filter_insn *successor(const struct ky_filter_insn *i, int32_t distance)
{
	return (const struct ky_filter_insn *)(const void *)((const char *)i + distance);
}

/* Returns the verdict of an exit; KY_QUICK_NEXT for another instruction. */
static enum ky_filter_verdict verdict_of(const struct ky_filter_insn *i)
{
	if (i->run == ky_filter_functions[KY_INSN_PASS])
		return KY_QUICK_PASS;
	return i->run == ky_filter_functions[KY_INSN_REJECT] ? KY_QUICK_REJECT : KY_QUICK_NEXT;
}

/* Makes a test of the instruction. Returns false if it is too complicated. */
static bool make_test(
	const struct ky_filter_insn *i, struct ky_filter_quick *q, struct ky_filter_test *t)
{
	unsigned which, unused = 64 - 8 * i->size;
	struct range range;

	if (!find_test(i, &which) || !range_of(i, which, &range))
		return false;
	t->at = KY_MAX(i->offset, 8u) - 8;
	t->shift = (uint8_t)(64 - 8 * (i->offset - t->at));
	t->least = range.least << unused;
	t->width = (range.most - range.least) << unused | (((uint64_t)1 << unused) - 1);
	t->verdict[0] = (uint8_t)verdict_of(successor(i, i->no));
	t->verdict[1] = (uint8_t)verdict_of(successor(i, i->yes));
	q->end = KY_MAX(q->end, t->at + 8);
	q->field_end = KY_MAX(q->field_end, i->offset);
	return true;
}

void ky_filter_make_quick(const struct ky_filter_insn *i, struct ky_filter_quick *ret)
{
	struct ky_filter_quick q = {0};
	const struct ky_filter_insn *yes, *no;
	bool simple = false;

	if (make_test(i, &q, &q.test[0])) {
		yes = successor(i, i->yes);
		no = successor(i, i->no);
		if (q.test[0].verdict[0] != KY_QUICK_NEXT && q.test[0].verdict[1] != KY_QUICK_NEXT)
			simple = true;
		else if (q.test[0].verdict[0] != q.test[0].verdict[1])
			simple = make_test(q.test[0].verdict[0] == KY_QUICK_NEXT ? no : yes, &q,
					 &q.test[1]) &&
				 q.test[1].verdict[0] != KY_QUICK_NEXT &&
				 q.test[1].verdict[1] != KY_QUICK_NEXT;
	}
	if (!simple)
		q.end = UINT32_MAX;
	q.word_end = q.end == sizeof(uint64_t) ? q.field_end : UINT32_MAX;
	*ret = q;
}
