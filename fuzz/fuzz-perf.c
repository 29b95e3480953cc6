/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes what becomes of perf's records: the input is two readings of both clocks, then records as
 * a sampled process's ring has them.
 */
#include "kernel/page.h"
#include "kernel/perf-record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUT_SIZE (128u << 10) /* of an empty block, as the consumer has them */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ky_perf_page head = {0};
	size_t n = KY_MIN(size, sizeof(head.times));
	struct ky_kplace place = {.at = sizeof(head)};
	uint8_t *page, *out, *end;
	uint32_t at;

	memcpy(&head.times, data, n);
	head.len = size - n;
	if (head.len > KY_PERF_PAGE_SIZE - sizeof(head))
		return 0;
	page = calloc(1, sizeof(head) + head.len + KY_KCOPY_SLACK);
	out = malloc(OUT_SIZE);
	memcpy(page, &head, sizeof(head));
	memcpy(page + sizeof(head), data + n, head.len);
	/* Each block takes records, and the page comes to its end. */
	do {
		at = place.at;
		end = ky_perf_transcode(&place, page, out, out + OUT_SIZE, NULL);
		if (end < out || end > out + OUT_SIZE || (place.at && place.at <= at))
			abort();
	} while (place.at);
	free(out);
	free(page);
	return 0;
}
