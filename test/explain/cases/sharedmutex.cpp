/* span: route:lookup expect: route:rebuild */
#include "clock.h"
#include <atomic>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>
static std::shared_mutex table_lock;
static std::map<std::string, int> table;
static std::atomic<bool> stop{false};
static void rebuild()
{
	prctl(PR_SET_NAME, "bgp-updater");
	while (!stop) {
		std::this_thread::sleep_for(std::chrono::milliseconds(40));
		kymo_span(route, rebuild);
		std::unique_lock<std::shared_mutex> l(table_lock);
		table.clear();
		for (int i = 0; i < 6000; i++)
			table["10.0." + std::to_string(i)] = i;
	}
}
static void lookup()
{
	for (int i = 0; i < 900; i++) {
		{
			std::string k = "10.0." + std::to_string(pick(6000));
			kymo_span(route, lookup, kymo_string(prefix, k.c_str()));
			std::shared_lock<std::shared_mutex> l(table_lock);
			table.find(k);
			busy(25);
		}
		usleep(300);
	}
}
int main()
{
	std::thread r(rebuild);
	std::vector<std::thread> v;
	for (int i = 0; i < 2; i++)
		v.emplace_back(lookup);
	for (auto &t : v)
		t.join();
	stop = true;
	r.join();
}
