/* SPDX-License-Identifier: MIT */
#include "explain/words.h"

#include <inttypes.h>
#include <math.h>

#include "base/text.h"

const char *ky_words_duration(char *buf, size_t size, double ns)
{
	const char *unit = ky_scale_ns(&ns, 999.5); /* as rounded to three digits */

	if (fabs(ns) >= 1000)
		snprintf(buf, size, "%.0f %s", ns, unit);
	else
		snprintf(buf, size, "%.3g %s", ns, unit);
	return buf;
}

void ky_words_put_duration(struct ky_buf *b, double ns)
{
	char text[32];

	ky_buf_puts(b, ky_words_duration(text, sizeof(text), ns));
}

void ky_words_put_number(struct ky_buf *b, uint64_t n)
{
	if (n >= 1000)
		ky_words_put_number(b, n / 1000);
	ky_buf_printf(b, n >= 1000 ? ",%03" PRIu64 : "%" PRIu64, n % 1000);
}

const char *ky_words_thread(const struct ky_explain *x, char *buf, size_t size, uint32_t thread)
{
	const struct ky_explain_thread *t = x->threads.v[thread];
	const char *name = ky_texts_get(&x->names, t->name);

	if (t->tid <= KY_OTHERS_TID)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "thread %" PRId64 "%s%s%s", t->tid, *name ? " (" : "", name,
			*name ? ")" : "");
	return buf;
}

void ky_words_put_process(struct ky_buf *b, const struct ky_explain *x, uint32_t process)
{
	const struct ky_explain_thread *t = x->threads.v[process];
	const char *name = ky_texts_get(&x->names, t->name);

	ky_buf_printf(b, "%" PRId64 "%s%s%s", t->pid, *name ? " (" : "", name, *name ? ")" : "");
}
