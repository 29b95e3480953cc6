/* span: du:run expect: walk:dir */
#include "clock.h"
static void walk(int depth, int width)
{
	kymo_span_begin(walk, dir);
	busy(7);
	for (int i = 0; depth && i < width; i++)
		walk(depth - 1, width);
	kymo_span_end(walk, dir);
}
int main(void)
{
	for (int i = 0; i < 400; i++) {
		kymo_span_begin(du, run, kymo_i32(root, pick(300)));
		walk(pick(18) ? 1 : 4, 3);
		kymo_span_end(du, run);
		usleep(100);
	}
}
