/* SPDX-License-Identifier: MIT */
#include "base/csv.h"

static bool needs_quotes(const char *text, size_t len)
{
	if (!len || text[0] == ' ' || text[len - 1] == ' ')
		return true;
	for (size_t i = 0; i < len; i++)
		if (text[i] == ',' || text[i] == '"' || text[i] == '\n' || text[i] == '\r')
			return true;
	return false;
}

void ky_buf_put_csv(struct ky_buf *to, const char *text, size_t len)
{
	if (!needs_quotes(text, len)) {
		ky_buf_append(to, text, len);
		return;
	}
	ky_buf_append(to, "\"", 1);
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"')
			ky_buf_append(to, "\"", 1);
		ky_buf_append(to, &text[i], 1);
	}
	ky_buf_append(to, "\"", 1);
}
