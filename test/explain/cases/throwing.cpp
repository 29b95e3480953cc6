/* span: rpc:exec expect: (err:unwind|code = 7) */
#include "common.h"
#include <stdexcept>
#include <thread>
static void fail()
{
	kymo_span_begin(err, unwind);
	spin(about(500));
	kymo_span_end(err, unwind);
	throw std::runtime_error("x");
}
static void serve()
{
	for (int i = 0; i < 600; i++) {
		int code = chance(.05) ? 7 : 0;
		kymo_span_begin(rpc, exec, kymo_i32(conn, below(12)));
		spin(about(45));
		try {
			if (code)
				fail();
		} catch (std::exception &) {
		}
		kymo_span_end(rpc, exec, kymo_i32(code, code));
		snooze(exponential(250));
	}
}
int main()
{
	spin(1);
	std::thread a(serve), b(serve);
	a.join();
	b.join();
}
