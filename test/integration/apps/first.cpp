/* SPDX-License-Identifier: MIT */
/*
 * Emits events from a static object's constructor (before main), at the begin of main, and from the
 * object's destructor.
 */
#include <kymo/tracepoint.h>

namespace
{
struct Early {
	Early()
	{
		kymo_event(first, constructor, kymo_i32(n, 1));
	}
	~Early()
	{
		kymo_event(first, destructor, kymo_i32(n, 3));
	}
};

Early early;
} /* namespace */

int main()
{
	kymo_event(first, main, kymo_i32(n, 2));
	return 0;
}
