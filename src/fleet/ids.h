/* SPDX-License-Identifier: MIT */
/* Identifiers as hexadecimal digits. */
#ifndef FLEET_IDS_H
#define FLEET_IDS_H

#include "base/util.h"

/* Stores 2 * n digits and a NUL. */
static inline void ids_to_hex(const uint8_t *bytes, size_t n, char *text)
{
	for (size_t i = 0; i < n; i++)
		sprintf(text + 2 * i, "%02x", bytes[i]);
}

static inline int ids_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* Returns whether the text has 2 * n digits and nothing more. */
static inline bool ids_from_hex(const char *text, uint8_t *bytes, size_t n)
{
	if (strlen(text) != 2 * n)
		return false;
	for (size_t i = 0; i < n; i++) {
		const int high = ids_digit(text[2 * i]), low = ids_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

#endif
