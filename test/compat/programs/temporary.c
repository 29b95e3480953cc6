/* SPDX-License-Identifier: MIT */
#include "temporary-tp.h"

int main()
{
	for (std::size_t n : {2, 20, 30, 31, 32, 62, 63, 64, 65, 66, 200}) {
		tracepoint(temporary, text, std::string(n, 'a'), 1);
		tracepoint(temporary, numbers, n);
	}
	return 0;
}
