/* span: wal:append expect: (wal:checkpoint|each|every) spans: (wal:checkpoint) */
#include "clock.h"
#include <mutex>
#include <thread>
static std::mutex m;
static bool stop;
int main()
{
	std::thread ck([] {
		prctl(PR_SET_NAME, "checkpointer");
		for (;;) {
			std::this_thread::sleep_for(std::chrono::milliseconds(30));
			std::lock_guard<std::mutex> l(m);
			if (stop)
				return;
			kymo_span(wal, checkpoint);
			std::this_thread::sleep_for(std::chrono::microseconds(2200));
		}
	});
	for (int i = 0; i < 1600; i++) {
		{
			kymo_span(wal, append, kymo_i32(lsn, i * 40));
			busy(25);
			std::lock_guard<std::mutex> l(m);
			busy(10);
		}
		usleep(300);
	}
	{
		std::lock_guard<std::mutex> l(m);
		stop = true;
	}
	ck.join();
}
