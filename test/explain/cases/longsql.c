/* span: sql:parse expect: length of sql */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 800; i++) {
		char sql[250] = "SELECT ";
		int n = 1 + (int)(-5 * log(dice() + 1e-9));
		for (int k = 0; k < n && k < 36; k++)
			sprintf(sql + strlen(sql), "c%03d, ", pick(1000));
		kymo_span_begin(sql, parse, kymo_string(sql, sql), kymo_i32(db, pick(4)));
		busy(10 + strlen(sql) * .9);
		kymo_span_end(sql, parse);
		usleep(60);
	}
}
