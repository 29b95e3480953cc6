/* span: fs:lookup expect: dir:rename */
#include "clock.h"
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>
static std::shared_timed_mutex m;
static std::atomic<bool> stop;
int main()
{
	std::thread r([] {
		prctl(PR_SET_NAME, "renamer");
		while (!stop) {
			usleep(45000);
			std::lock_guard<std::shared_timed_mutex> l(m);
			kymo_span(dir, rename);
			usleep(3800);
		}
	});
	std::vector<std::thread> v;
	for (int k = 0; k < 2; k++)
		v.emplace_back([] {
			for (int i = 0; i < 600; i++) {
				{
					kymo_span(fs, lookup, kymo_i32(ino, pick(9000)));
					std::shared_lock<std::shared_timed_mutex> l(m);
					busy(30 + pick(10));
				}
				usleep(450);
			}
		});
	for (auto &t : v)
		t.join();
	stop = true;
	r.join();
}
