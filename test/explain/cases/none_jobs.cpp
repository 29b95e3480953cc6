/* span: pool:job expect: nothing */
#include "clock.h"
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>
static std::mutex m;
static std::condition_variable c;
static std::deque<double> q;
static bool stop;
static void run()
{
	for (;;) {
		double us;
		{
			std::unique_lock<std::mutex> l(m);
			c.wait(l, [] { return stop || !q.empty(); });
			if (q.empty())
				return;
			us = q.front();
			q.pop_front();
		}
		kymo_span(pool, job);
		busy(us);
	}
}
int main()
{
	std::vector<std::thread> v;
	for (int i = 0; i < 2; i++)
		v.emplace_back(run);
	for (int i = 0; i < 1200; i++) {
		{
			std::lock_guard<std::mutex> l(m);
			q.push_back(30 - 90 * log(dice() + 1e-9));
		}
		c.notify_one();
		usleep(250);
	}
	{
		std::lock_guard<std::mutex> l(m);
		stop = true;
	}
	c.notify_all();
	for (auto &t : v)
		t.join();
}
