/* SPDX-License-Identifier: MIT */
/* C++: sources of fields that are in temporaries, short and long. */
#include <string>
#include <vector>

#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER temporary

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./temporary-tp.h"

#if !defined(TEMPORARY_TP_H) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define TEMPORARY_TP_H

#include <lttng/tracepoint.h>

/* clang-format off */
TRACEPOINT_EVENT(temporary, text, TP_ARGS(const std::string &, name, int, n), TP_FIELDS(
	ctf_string(path, ("/" + name + "/" + std::to_string(n)).c_str())
	ctf_array_text(char, start, (name + name).data(), 2)
	ctf_sequence_text(char, all, (name + name).data(), size_t, name.size())
	ctf_string_nowrite(aside, (name + "!").c_str())))
TRACEPOINT_EVENT(temporary, numbers, TP_ARGS(std::size_t, n), TP_FIELDS(
	ctf_sequence(int, values, (std::vector<int>(n, 7)).data(), unsigned, n)
	ctf_array(short, some, std::vector<short>(40, 3).data(), 40)
	ctf_integer(std::size_t, size, std::string(n, 'x').size())))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
