/* SPDX-License-Identifier: MIT */
/* Parses and compiles any bytes as the metadata of a trace. */
#include "base/buf.h"
#include "linear.h"
#include "reader/layout.h"
#include "reader/metadata.h"
#include "reader/tsdl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t begin = linear_begin();
	struct ky_tsdl_error error;
	struct ky_buf text = {0};
	struct ky_layout layout;
	struct ky_tsdl tsdl = {0};
	char why[160];

	if (ky_metadata_text(&text, (const char *)data, size) >= 0 &&
		!ky_tsdl_parse(&tsdl, text.data ? text.data : "", text.len, &error))
		ky_layout_compile(&layout, &tsdl, why, sizeof(why));
	ky_tsdl_deinit(&tsdl);
	ky_buf_deinit(&text);
	linear_end(begin, size);
	return 0;
}
