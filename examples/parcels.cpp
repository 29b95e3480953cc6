// SPDX-License-Identifier: MIT
/*
 * Parcels travel from depot to depot: the same instrumentation in C++.
 *
 *	c++ -o parcels parcels.cpp $(pkg-config --cflags --libs kymo)
 *	kymo record -e 'parcels:*' -- ./parcels
 */
#include <cstdlib>
#include <iostream>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include <kymo/tracepoint.h>

namespace
{

struct Parcel {
	uint64_t id;
	std::string address;
	std::vector<uint32_t> route; // depots seen so far
};

class Depot
{
      public:
	Depot(uint32_t number, std::string name) : number_(number), name_(std::move(name))
	{
	}

	void take(Parcel parcel)
	{
		parcel.route.push_back(number_);
		kymo_event(parcels, arrived, kymo_u64(parcel, parcel.id),
			kymo_string(depot, name_.c_str()),
			kymo_u32(waiting, static_cast<uint32_t>(waiting_.size())));
		waiting_.push(std::move(parcel));
	}

	bool empty() const
	{
		return waiting_.empty();
	}

	Parcel send()
	{
		Parcel parcel = std::move(waiting_.front());

		waiting_.pop();
		kymo_event(parcels, left, kymo_u64(parcel, parcel.id),
			kymo_string(depot, name_.c_str()));
		return parcel;
	}

      private:
	uint32_t number_;
	std::string name_;
	std::queue<Parcel> waiting_;
};

/* Sends one parcel onward from each depot that has one. Returns true if there was any. */
bool tick(std::vector<Depot> &depots, std::mt19937 &dice, uint64_t &delivered)
{
	bool any = false;

	for (auto &depot : depots) {
		if (depot.empty())
			continue;
		any = true;
		Parcel parcel = depot.send();
		if (dice() % 3 == 0) {
			kymo_event_level(parcels, delivered, KYMO_INFO, kymo_u64(parcel, parcel.id),
				kymo_string(address, parcel.address.c_str()),
				kymo_seq_u32(route, parcel.route.data(), parcel.route.size()));
			delivered++;
		} else {
			depots[dice() % depots.size()].take(std::move(parcel));
		}
	}
	return any;
}

} // namespace

int main(int argc, char **argv)
{
	const uint64_t n = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200;
	std::vector<Depot> depots{{0, "Oslo"}, {1, "Lyon"}, {2, "Kraków"}, {3, "Porto"}};
	std::mt19937 dice(1);
	uint64_t delivered = 0;

	for (uint64_t id = 1; id <= n; id++)
		depots[id % depots.size()].take({id, "street " + std::to_string(dice() % 100), {}});
	while (tick(depots, dice, delivered))
		;
	std::cout << delivered << " parcels delivered\n";
	return 0;
}
