/* span: up:load expect: name ends with "\.?zip */
#include "common.h"
static void *work(void *x)
{
	static const char *const ext[] = {".jpg", ".txt", ".pdf", ".html", ".css"};
	for (int i = 0; i < 600; i++) {
		char name[64];
		int zip = chance(.06);
		snprintf(name, sizeof name, "f%d_%d%s", below(99999), i,
			zip ? ".zip" : ext[below(5)]);
		kymo_span_begin(up, load, kymo_string(name, name), kymo_i32(bytes, below(100000)));
		spin(about(zip ? 900 : 110));
		kymo_span_end(up, load);
		snooze(150);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
