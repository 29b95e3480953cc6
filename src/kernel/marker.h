/* SPDX-License-Identifier: MIT */
/*
 * A record that compares clocks. The session daemon reads its clock and writes a marker with it
 * into an instance; the kernel stamps the record; who finds it reads the clock again. The stamp
 * must lie between the two.
 */
#ifndef KERNEL_MARKER_H
#define KERNEL_MARKER_H

#include "base/util.h"

#define KY_KMARKER	"kymo clock "
#define KY_KMARKER_SIZE (sizeof(KY_KMARKER) + 16)

struct ky_kmarker {
	uint64_t before, at, after; /* at: the kernel's stamp; 0: there is no marker */
};

static inline void ky_kmarker_write(char text[KY_KMARKER_SIZE], uint64_t before)
{
	snprintf(text, KY_KMARKER_SIZE, KY_KMARKER "%016llx", (unsigned long long)before);
}

/* Returns whether the record's data are a marker; then sets m->before. */
static inline bool ky_kmarker_read(struct ky_kmarker *m, const uint8_t *data, uint32_t len)
{
	const uint8_t *at = memmem(data, len, KY_KMARKER, strlen(KY_KMARKER));
	char text[17] = "";

	if (!at || (uint32_t)(data + len - at) < KY_KMARKER_SIZE - 1)
		return false;
	memcpy(text, at + strlen(KY_KMARKER), 16);
	m->before = strtoull(text, NULL, 16);
	return true;
}

/* slack: by which the kernel's reading of the clock may differ from ours. */
static inline bool ky_kmarker_agrees(const struct ky_kmarker *m, uint64_t slack)
{
	return m->at + slack >= m->before && m->at <= m->after + slack;
}

#endif
