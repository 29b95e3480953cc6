/* SPDX-License-Identifier: MIT */
#include "readable.h"

#include "reader/layout.h"
#include "reader/tsdl.h"

bool is_readable(const char *text, size_t len)
{
	struct ky_tsdl_error error;
	struct ky_layout layout;
	struct ky_tsdl tsdl = {0};
	char why[160];
	bool readable = !ky_tsdl_parse(&tsdl, text, len, &error) &&
			!ky_layout_compile(&layout, &tsdl, why, sizeof(why));

	ky_tsdl_deinit(&tsdl);
	return readable;
}
