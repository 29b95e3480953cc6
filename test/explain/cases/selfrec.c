/* span: dir:walk expect: (dir:walk|depth) */
#include "common.h"
static void walk(int depth, int width)
{
	kymo_span_begin(dir, walk, kymo_i32(depth, depth));
	spin(about(15));
	for (int k = 0; depth > 0 && k < width; k++)
		walk(depth - 1, width);
	kymo_span_end(dir, walk);
}
int main(void)
{
	spin(1);
	for (int i = 0; i < 150; i++) {
		walk(chance(.1) ? 4 : 1, 3);
		snooze(500);
	}
}
