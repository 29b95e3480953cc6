/* span: sql:sort expect: (grows with rows|rows ≥) */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 800; i++) {
		int rows = (int)exponential(60);
		kymo_span_begin(
			sql, sort, kymo_i64(rows, rows), kymo_string(table, below(2) ? "a" : "b"));
		spin(about(30) + 4.0 * rows);
		kymo_span_end(sql, sort);
		snooze(100);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
