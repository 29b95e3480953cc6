/* span: sink:next expect: (src:fetch) */
#include "clock.h"
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
static std::mutex m;
static std::condition_variable c;
static std::deque<int> q;
int main()
{
	const int n = 900;
	std::thread p([] {
		prctl(PR_SET_NAME, "fetcher");
		for (int i = 0; i < n; i++) {
			{
				kymo_span(src, fetch, kymo_i32(block, i));
				usleep(pick(25) ? 150 : 5000);
			}
			std::lock_guard<std::mutex> l(m);
			q.push_back(i);
			c.notify_one();
		}
	});
	for (int i = 0; i < n; i++) {
		{
			kymo_span(sink, next);
			std::unique_lock<std::mutex> l(m);
			c.wait(l, [] { return !q.empty(); });
			q.pop_front();
		}
		busy(20);
	}
	p.join();
}
