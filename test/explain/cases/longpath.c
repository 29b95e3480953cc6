/* span: fs:open expect: path */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 700; i++) {
		char path[256] = "";
		int depth = pick(20) ? 2 + pick(3) : 22 + pick(6);
		for (int k = 0; k < depth; k++)
			sprintf(path + strlen(path), "/d%d", pick(99));
		kymo_span_begin(fs, open, kymo_string(path, path), kymo_i32(flags, pick(2)));
		busy(5 + 12 * depth);
		kymo_span_end(fs, open);
		usleep(60);
	}
}
