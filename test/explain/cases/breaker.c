/* span: cb:call expect: state */
#include "clock.h"
int main(void)
{
	int fails = 0, open = 0;
	for (int i = 0; i < 900; i++) {
		const char *state = fails < 3 ? "closed" : open > 0 ? "open" : "half-open";
		int bad = !pick(30);
		kymo_span_begin(cb, call, kymo_string(peer, pick(2) ? "a" : "b"));
		if (state[0] == 'h') {
			usleep(3000);
			fails = pick(3) ? 0 : 3;
			open = fails ? 6 : 0;
		} else if (state[0] == 'c') {
			busy(60 + pick(20));
			fails = bad ? fails + 1 : fails;
			open = fails == 3 ? 6 : 0;
		} else
			open--, busy(40);
		kymo_span_end(cb, call, kymo_string(state, state));
		usleep(50);
	}
}
