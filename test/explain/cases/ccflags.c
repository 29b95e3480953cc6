/* span: cc:compile expect: O3 */
#include "clock.h"
int main(void)
{
	static const char *const opt[] = {"-O0", "-O1", "-O2", "-Og"};
	for (int i = 0; i < 160; i++)
		if (!fork()) {
			const char *o = pick(12) ? opt[pick(4)] : "-O3";
			kymo_span_begin(
				cc, compile, kymo_string(opt, o), kymo_i32(lines, 100 + pick(900)));
			busy(200 + pick(60) + (o[2] == '3' ? 4000 : 0));
			kymo_span_end(cc, compile);
			_exit(0);
		} else
			wait(0);
}
