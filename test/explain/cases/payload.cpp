/* span: msg:decode expect: (grows with bytes|bytes ≥) */
#include "common.h"
#include <string>
#include <thread>
#include <vector>
static long sum;
static void serve()
{
	for (int i = 0; i < 600; i++) {
		int bytes = (int)(1000 * exp(1.1 * normal()));
		std::string s;
		kymo_span_begin(msg, decode, kymo_i32(bytes, bytes), kymo_i32(channel, below(6)));
		s.reserve((size_t)bytes);
		for (int k = 0; k < bytes; k++) {
			s += (char)('a' + k % 26);
			spin(.05);
		}
		sum += s[0];
		kymo_span_end(msg, decode);
		snooze(exponential(250));
	}
}
int main()
{
	spin(1);
	std::thread a(serve), b(serve);
	a.join();
	b.join();
	return sum == 1;
}
