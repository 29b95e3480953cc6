/* SPDX-License-Identifier: MIT */
/*
 * Parses the `format` file of an event (tracefs, events/SYSTEM/EVENT/format): the kernel's own
 * description of a record's fields. `print fmt` is not needed to record.
 */
#ifndef KERNEL_FORMAT_H
#define KERNEL_FORMAT_H

#include "base/util.h"

#define KY_KFIELDS_MAX 64
#define KY_KNAME_MAX   96 /* bytes of a name, with its NUL */

enum ky_kfield_kind {
	KY_KFIELD_INT,	    /* `size` bytes in the ring, `out` bytes in the trace */
	KY_KFIELD_TEXT,	    /* char[size] */
	KY_KFIELD_ARRAY,    /* size / elem elements */
	KY_KFIELD_STRING,   /* __data_loc char[]: u32, offset in the low half, length in the high */
	KY_KFIELD_SEQUENCE, /* __data_loc of other elements */
};

struct ky_kfield {
	char name[KY_KNAME_MAX];
	uint8_t kind; /* enum ky_kfield_kind */
	uint8_t elem; /* bytes of an element */
	uint8_t out;  /* arguments of system calls take 8 bytes in the ring, whatever their type */
	bool is_signed, hex;
	bool other_sign;      /* the kernel compares it as if it had the other sign */
	bool relative;	      /* the offset counts from behind the u32 (__rel_loc) */
	bool is_text_pointer; /* char *: the address of a text */
	uint16_t offset, size;
};

struct ky_kformat {
	char name[KY_KNAME_MAX];
	uint16_t id;
	uint16_t n_fields, n_common; /* the first n_common are in every event */
	uint32_t end;		     /* of the last field with a fixed place */
	struct ky_kfield fields[KY_KFIELDS_MAX];
};

/* Returns 0, or -EBADMSG if the text is not that of a format file. */
int ky_kformat_parse(struct ky_kformat *f, const char *text);
/* Returns the field of this name that is not common to all events, or NULL. */
const struct ky_kfield *ky_kformat_find(const struct ky_kformat *f, const char *name);
/*
 * Returns true if the kernel's ring has the layout that page.h reads. The texts are those of
 * events/header_page and events/header_event.
 */
bool ky_kheader_check(const char *header_page, const char *header_event);

#endif
