/* SPDX-License-Identifier: MIT */
/*
 * Events in C++: in a template, a lambda, and an inline member function; and one from the shared
 * header.
 */
#include <string>
#include <vector>

#include "forms.h"

namespace
{

enum class Shape : int8_t { round = -2 };

template <typename T> void in_template(T value)
{
	kymo_event(forms, in_template, kymo_i64(value, static_cast<int64_t>(value)));
}

struct Thing {
	std::string name;
	std::vector<int32_t> numbers;

	void tell() const
	{
		kymo_event(forms, in_member, kymo_string(name, name.c_str()),
			kymo_seq_i32(numbers, numbers.data(), numbers.size()));
	}
};

} // namespace

void forms_cplusplus()
{
	auto lambda = [](int n, Shape shape) {
		kymo_event(forms, in_lambda, kymo_i32(number, n), kymo_i32(shape, shape),
			kymo_i64(wide, shape));
	};

	in_template<int>(1);
	lambda(2, Shape::round);
	Thing{"thing", {1, 2, 3}}.tell();
	kymo_trace(forms, shared, 3, "C++");
}
