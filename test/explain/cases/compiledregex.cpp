/* span: waf:check expect: re:compile */
#include "clock.h"
#include <map>
#include <regex>
#include <string>
int main()
{
	std::map<std::string, std::regex> cache;
	for (int i = 0; i < 500; i++) {
		std::string p = "a" + std::to_string(pick(20) ? pick(5) : 100 + i) +
				"[a-z]+(b|c){2,5}x?y+";
		{
			kymo_span(waf, check, kymo_i32(rule, pick(10)));
			auto it = cache.find(p);
			if (it == cache.end()) {
				kymo_span(re, compile);
				std::regex r(p);
				for (int k = 0; k < 6; k++)
					r = std::regex(p);
				it = cache.emplace(p, r).first;
			}
			std::regex_search(std::string("xxa1abcbbxyy"), it->second);
			busy(30);
		}
		usleep(50);
	}
}
