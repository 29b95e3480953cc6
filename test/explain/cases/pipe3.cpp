/* span: etl:row expect: (stats:export|waits for mutex) */
#include "common.h"
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
struct Q {
	std::deque<int> d;
	std::mutex m;
	std::condition_variable c;
	void put(int v)
	{
		{
			std::lock_guard<std::mutex> l(m);
			d.push_back(v);
		}
		c.notify_one();
	}
	int get()
	{
		std::unique_lock<std::mutex> l(m);
		c.wait(l, [&] { return !d.empty(); });
		int v = d.front();
		d.pop_front();
		return v;
	}
};
static Q a, b;
static std::mutex counters;
static volatile bool done;
int main()
{
	const int n = 700;
	spin(1);
	std::thread t1([] {
		name_thread("transform");
		for (int i = 0; i < n; i++) {
			uint64_t v = (uint64_t)a.get() + 1;
			kymo_async_begin(etl, transform, v);
			spin(about(60));
			{
				std::lock_guard<std::mutex> l(counters);
				spin(about(4));
			}
			kymo_async_end(etl, transform, v);
			b.put((int)v - 1);
		}
	});
	std::thread t2([] {
		name_thread("load");
		for (int i = 0; i < n; i++) {
			uint64_t v = (uint64_t)b.get() + 1;
			kymo_async_begin(etl, load, v);
			spin(about(40));
			kymo_async_end(etl, load, v);
			kymo_async_end(etl, row, v);
		}
	});
	std::thread t3([] {
		name_thread("exporter");
		while (!done) {
			snooze(29000);
			kymo_span_begin(stats, export);
			std::lock_guard<std::mutex> l(counters);
			snooze(3500);
			kymo_span_end(stats, export);
		}
	});
	for (int i = 0; i < n; i++) {
		kymo_async_begin(etl, row, (uint64_t)i + 1);
		a.put(i);
		snooze(700);
	}
	t1.join();
	t2.join();
	done = true;
	t3.join();
}
