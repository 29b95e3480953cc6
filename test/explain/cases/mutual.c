/* span: sexp:eval_top expect: (sexp:apply|sexp:eval|depth) */
#include "clock.h"
static void apply(int depth);
static void eval(int depth)
{
	kymo_span_begin(sexp, eval);
	busy(4);
	if (depth > 0)
		apply(depth - 1);
	kymo_span_end(sexp, eval);
}
static void apply(int depth)
{
	kymo_span_begin(sexp, apply);
	busy(4);
	eval(depth - 1);
	kymo_span_end(sexp, apply);
}
int main(void)
{
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(sexp, eval_top, kymo_i32(line, i));
		eval(pick(20) ? pick(6) : 60 + pick(30));
		kymo_span_end(sexp, eval_top);
		usleep(80);
	}
}
