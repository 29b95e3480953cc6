// SPDX-License-Identifier: MIT
#include "spans.h"

#include <kymo/span.h>

#include <stdexcept>

static void throws(int n)
{
	kymo_span(cpp, thrown, kymo_i32(n, n));
	if (n >= 0)
		throw std::runtime_error("away");
}

template <typename T> static T in_template(T n)
{
	kymo_span(cpp, in_template, kymo_i32(size, (int32_t)sizeof(n)));
	return n;
}

void spans_cplusplus(int n)
{
	kymo_span(cpp, outer);
	try {
		throws(n);
	} catch (const std::exception &) {
		kymo_event(cpp, caught);
	}
	in_template(n);
	in_template('c');
}
