/* span: pool:borrow spans: report:run expect: waits for a condition .*(report|in report:run) */
#include "common.h"
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>
static std::mutex m;
static std::condition_variable cv;
static int available = 1;
static void give()
{
	{
		std::lock_guard<std::mutex> l(m);
		available++;
	}
	cv.notify_one();
}
static void take()
{
	std::unique_lock<std::mutex> l(m);
	cv.wait(l, [] { return available > 0; });
	available--;
}
static std::atomic<bool> stop;
int main()
{
	spin(1);
	std::thread report([] {
		name_thread("report");
		while (!stop) {
			snooze(60000);
			kymo_span_begin(report, run);
			take();
			snooze(7000);
			give();
			kymo_span_end(report, run);
		}
	});
	std::thread user([] {
		for (int i = 0; i < 1500; i++) {
			kymo_span_begin(pool, borrow);
			spin(about(30));
			take();
			spin(about(30));
			give();
			kymo_span_end(pool, borrow);
			snooze(400);
		}
	});
	user.join();
	stop = true;
	report.join();
}
