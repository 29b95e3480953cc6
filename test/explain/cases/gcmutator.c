/* span: vm:call expect: gc:(mark|cycle) */
#include "clock.h"
struct node {
	struct node *l, *r;
	long mark;
};
static struct node *build(int d)
{
	struct node *n = calloc(1, sizeof(*n));
	if (d)
		n->l = build(d - 1), n->r = build(d - 1);
	return n;
}
static void mark(struct node *n, long m)
{
	if (n)
		n->mark = m, mark(n->l, m), mark(n->r, m);
}
int main(void)
{
	struct node *heap = build(17);
	size_t allocated = 0;
	for (int i = 0; i < 1500; i++) {
		kymo_span_begin(
			vm, call, kymo_string(fn, i % 3 ? "map" : "fold"), kymo_i32(argc, pick(6)));
		allocated += 2000u + (unsigned)pick(2000);
		busy(70);
		if (allocated > 150000) {
			kymo_span_begin(gc, cycle, kymo_u64(heap, allocated));
			kymo_span_begin(gc, mark);
			mark(heap, i);
			kymo_span_end(gc, mark);
			kymo_span_begin(gc, sweep);
			busy(100);
			kymo_span_end(gc, sweep);
			kymo_span_end(gc, cycle);
			allocated = 0;
		}
		kymo_span_end(vm, call);
	}
}
