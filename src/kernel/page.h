/* SPDX-License-Identifier: MIT */
/*
 * Walks a sub-buffer of the kernel's ring as it lies in memory.
 *
 *   0    u64 clock           8    u64 commit: bits 0-19 bytes of data; bit 31 events are missing
 *                                 before it; bit 30 their number is the u64 behind the data
 *   16   records: u32 head = type_len (5 bits) | delta << 5, then
 *        1..28  4 * type_len bytes of data
 *        0      u32 n, then n - 4 bytes of data, rounded up to 4
 *        29     delta 0: the end; else u32 n: skip 4 + n bytes
 *        30     u32 t: clock += t << 27 | delta
 *        31     u32 t: clock = t << 27 | delta, but its highest 5 bits stay (Linux 4.17)
 *
 * The kernel's include/linux/ring_buffer.h, events/header_page and events/header_event define it
 * (ky_kheader_check).
 */
#ifndef KERNEL_PAGE_H
#define KERNEL_PAGE_H

#include "base/util.h"

#define KY_KPAGE_HEADER 16
#define KY_KPAGE_COMMIT ((UINT32_C(1) << 20) - 1)
#define KY_KPAGE_MSB	(UINT64_C(0xf8) << 56)

struct ky_kwalk {
	const uint8_t *at, *end;
	uint64_t ts;
};

static inline uint32_t ky_load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t ky_load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Returns the bytes of data that the page claims. */
static inline uint32_t ky_kpage_len(const uint8_t *page)
{
	return ky_load32(page + 8) & KY_KPAGE_COMMIT;
}

/* Begins a walk. size: of the sub-buffer with its header. Returns false if the page is invalid. */
static inline bool ky_kwalk_open(struct ky_kwalk *w, const uint8_t *page, uint32_t size)
{
	uint32_t n = ky_kpage_len(page);

	w->ts = ky_load64(page);
	w->at = page + KY_KPAGE_HEADER;
	w->end = w->at + n;
	return n <= size - KY_KPAGE_HEADER;
}

/*
 * Describes the next event's data; w->ts is its clock then. Returns false at the page's end: then
 * w->at is w->end, unless the rest of the page is invalid.
 */
static inline bool ky_kwalk_next(struct ky_kwalk *w, const uint8_t **ret_data, uint32_t *ret_len)
{
	while (w->end - w->at >= 4) {
		uint32_t head = ky_load32(w->at), kind = head & 31, delta = head >> 5, n;
		const uint8_t *data = w->at + 4;

		if (kind - 1 < 28) {
			n = kind * 4;
			if (n > (uint32_t)(w->end - data))
				return false;
			w->ts += delta;
			w->at = data + n;
			*ret_data = data;
			*ret_len = n;
			return true;
		}
		if (kind == 29 && !delta) {
			w->at = w->end;
			return false;
		}
		if (w->end - data < 4)
			return false;
		n = ky_load32(data);
		if (!kind) {
			if (n < 4 || n > (uint32_t)(w->end - data))
				return false;
			w->ts += delta;
			n = KY_MIN((n + 3) & ~UINT32_C(3), (uint32_t)(w->end - data));
			w->at = data + n;
			*ret_data = data + 4;
			*ret_len = n - 4;
			return true;
		}
		if (kind == 29) {
			if (n > (uint32_t)(w->end - data))
				return false;
			w->at = data + n;
			w->ts += delta;
		} else {
			uint64_t t = (uint64_t)n << 27 | delta;

			w->ts = kind == 30 ? w->ts + t : t | (w->ts & KY_KPAGE_MSB);
			w->at = data + 4;
		}
	}
	return false;
}

#endif
