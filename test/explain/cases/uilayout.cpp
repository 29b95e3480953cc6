/* span: ui:event expect: ui:layout */
#include "clock.h"
#include <atomic>
#include <mutex>
#include <thread>
static std::recursive_mutex m;
static std::atomic<bool> stop;
static void nested()
{
	std::lock_guard<std::recursive_mutex> l(m);
	busy(5);
}
int main()
{
	std::thread t([] {
		prctl(PR_SET_NAME, "layouter");
		while (!stop) {
			usleep(40000);
			std::lock_guard<std::recursive_mutex> l(m);
			kymo_span(ui, layout);
			nested();
			usleep(3000);
		}
	});
	for (int i = 0; i < 1200; i++) {
		{
			kymo_span(ui, event, kymo_i32(type, pick(9)));
			std::lock_guard<std::recursive_mutex> l(m);
			nested();
			busy(15);
		}
		usleep(350);
	}
	stop = true;
	t.join();
}
