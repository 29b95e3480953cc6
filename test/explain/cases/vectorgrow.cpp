/* span: idx:append expect: vec:grow */
#include "clock.h"
#include <string>
#include <vector>
int main()
{
	for (int round = 0; round < 6; round++) {
		std::vector<std::string> v;
		for (int i = 0; i < 400; i++) {
			kymo_span(idx, append, kymo_i32(doc, pick(9999)));
			for (int k = 0; k < 25; k++) {
				if (v.size() == v.capacity() && v.size() > 1000) {
					kymo_event(vec, grow, kymo_u64(capacity, v.capacity()));
					v.reserve(v.capacity() * 2);
				}
				v.push_back("a string that is too long for the object itself");
			}
			busy(15);
		}
	}
}
