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

/* " on HOST", if the trace is of several hosts. */
static void put_host(struct ky_buf *b, const struct ky_explain *x, uint32_t host)
{
	if (host && ky_explain_has_hosts(x))
		ky_buf_printf(b, " on %s", ky_texts_get(&x->names, host));
}

/* " (NAME)", if it has one. */
static void put_name(struct ky_buf *b, const struct ky_explain *x, uint32_t name)
{
	if (*ky_texts_get(&x->names, name))
		ky_buf_printf(b, " (%s)", ky_texts_get(&x->names, name));
}

void ky_words_put_thread(struct ky_buf *b, const struct ky_explain *x, uint32_t thread)
{
	const struct ky_explain_thread *t = x->threads.v[thread];

	if (t->tid <= KY_OTHERS_TID) {
		ky_buf_puts(b, ky_texts_get(&x->names, t->name));
	} else {
		ky_buf_printf(b, "thread %" PRId64, t->tid);
		put_name(b, x, t->name);
	}
	put_host(b, x, t->host);
}

void ky_words_put_process(struct ky_buf *b, const struct ky_explain *x, uint32_t process)
{
	const struct ky_explain_thread *t = x->threads.v[process];

	ky_buf_printf(b, "%" PRId64, t->pid);
	put_name(b, x, t->name);
	put_host(b, x, t->host);
}

void ky_words_put_processor(struct ky_buf *b, const struct ky_explain *x, int64_t processor)
{
	ky_buf_printf(b, "%" PRIu32, (uint32_t)processor);
	put_host(b, x, (uint32_t)((uint64_t)processor >> 32));
}
