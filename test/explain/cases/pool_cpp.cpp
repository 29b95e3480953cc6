/* span: db:with_conn expect: (rep:monthly|waits for a condition) spans: rep:monthly */
#include "clock.h"
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>
class pool
{
	std::mutex m;
	std::condition_variable c;
	std::vector<int> free_;

      public:
	pool() : free_{1, 2, 3}
	{
	}
	int get()
	{
		std::unique_lock<std::mutex> l(m);
		c.wait(l, [&] { return !free_.empty(); });
		int v = free_.back();
		free_.pop_back();
		return v;
	}
	void put(int v)
	{
		std::lock_guard<std::mutex> l(m);
		free_.push_back(v);
		c.notify_one();
	}
};
static pool p;
static std::atomic<bool> stop;
int main()
{
	std::thread r([] {
		prctl(PR_SET_NAME, "reports");
		while (!stop) {
			usleep(50000);
			int a = p.get(), b = p.get(), c = p.get();
			{
				kymo_span(rep, monthly);
				usleep(5000);
			}
			p.put(a), p.put(b), p.put(c);
		}
	});
	std::vector<std::thread> v;
	for (int k = 0; k < 2; k++)
		v.emplace_back([] {
			for (int i = 0; i < 600; i++) {
				{
					kymo_span(db, with_conn, kymo_i32(q, pick(50)));
					int c = p.get();
					busy(40 + pick(20));
					p.put(c);
				}
				usleep(500);
			}
		});
	for (auto &t : v)
		t.join();
	stop = true;
	r.join();
}
