/* SPDX-License-Identifier: MIT */
#include "merge/clock.h"

#include <inttypes.h>
#include <stdlib.h>

#define NS_PER_S 1000000000

struct part {
	const char *at; /* behind the text that was found */
	size_t len;	/* up to the end of the line, or before the semicolon */
};

/* Finds what stands between `before` and the next semicolon, in the clock's block. */
static bool find_part(const char *clock, const char *end, const char *before, struct part *ret)
{
	const char *at = memmem(clock, (size_t)(end - clock), before, strlen(before));
	const char *semicolon;

	if (!at)
		return false;
	at += strlen(before);
	semicolon = memchr(at, ';', (size_t)(end - at));
	if (!semicolon)
		return false;
	*ret = (struct part){at, (size_t)(semicolon - at)};
	return true;
}

static bool read_number(const struct part *p, uint64_t *ret)
{
	char text[24], *end;

	if (!p->len || p->len >= sizeof(text) || p->at[0] < '0' || p->at[0] > '9')
		return false;
	memcpy(text, p->at, p->len);
	text[p->len] = '\0';
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return !errno && !*end;
}

/* Adds nanoseconds to seconds and cycles. Returns false if that is before 1970, or too late. */
static bool shift_time(uint64_t freq, uint64_t *s, uint64_t *cycles, int64_t ns)
{
	__int128 total = (__int128)*s * freq + *cycles;

	if (!freq)
		return false;
	total += (__int128)ns * (__int128)freq / NS_PER_S;
	if (total < 0 || total / freq > UINT32_MAX * (uint64_t)16)
		return false;
	*s = (uint64_t)(total / freq);
	*cycles = (uint64_t)(total % freq);
	return true;
}

static void put_env(struct ky_buf *to, const struct offset *o, const struct clock_note *note)
{
	ky_buf_printf(to, "\n\tclock_source = \"%s\";\n\tclock_shift_ns = %" PRId64 ";",
		note->source, o->shift_ns);
	if (o->error_ns != OFFSETS_UNKNOWN)
		ky_buf_printf(to, "\n\tclock_error_ns = %" PRId64 ";", o->error_ns);
	if (note->reference)
		ky_buf_printf(to, "\n\tclock_reference = \"%s\";", note->reference);
}

/* Appends these lines without those that an earlier rewriting put there. */
static void put_rest(struct ky_buf *to, const char *at, const char *end)
{
	static const char *const names[] = {"\n\tclock_source = ", "\n\tclock_shift_ns = ",
		"\n\tclock_error_ns = ", "\n\tclock_reference = "};

	while (at < end) {
		const char *next = memchr(at + 1, '\n', (size_t)(end - at - 1));
		bool drop = false;

		next = next ? next : end;
		for (size_t i = 0; i < KY_ARRAY_SIZE(names); i++)
			drop |= (size_t)(next - at) > strlen(names[i]) &&
				!memcmp(at, names[i], strlen(names[i]));
		if (!drop)
			ky_buf_append(to, at, (size_t)(next - at));
		at = next;
	}
}

/* The clock in a text of metadata. */
struct block {
	const char *env; /* behind its brace */
	const char *at, *end;
	struct part seconds, absolute;
	uint64_t freq, s, cycles;
};

static int find_block(const char *text, size_t len, struct block *b)
{
	static const char env_begin[] = "\nenv {", clock_begin[] = "\nclock {",
			  block_end[] = "\n};";
	struct part freq, cycles;

	b->env = memmem(text, len, env_begin, strlen(env_begin));
	if (!b->env)
		return -EINVAL;
	b->env += strlen(env_begin);
	b->at = memmem(b->env, (size_t)(text + len - b->env), clock_begin, strlen(clock_begin));
	b->end = b->at ? memmem(b->at, (size_t)(text + len - b->at), block_end, strlen(block_end))
		       : NULL;
	if (!b->end || !find_part(b->at, b->end, "\n\tfreq = ", &freq) ||
		!find_part(b->at, b->end, "\n\toffset_s = ", &b->seconds) ||
		!find_part(b->seconds.at, b->end, "\n\toffset = ", &cycles) ||
		!find_part(cycles.at, b->end, "\n\tabsolute = ", &b->absolute) ||
		!read_number(&freq, &b->freq) || !read_number(&b->seconds, &b->s) ||
		!read_number(&cycles, &b->cycles))
		return -EINVAL;
	return 0;
}

int clock_rewrite(struct ky_buf *to, const char *text, size_t len, const struct offset *o,
	const struct clock_note *note)
{
	struct block b;
	int r = find_block(text, len, &b);

	if (r < 0)
		return r;
	if (!shift_time(b.freq, &b.s, &b.cycles, o->shift_ns))
		return -ERANGE;
	ky_buf_append(to, text, (size_t)(b.env - text));
	put_env(to, o, note);
	put_rest(to, b.env, b.at);
	ky_buf_append(to, b.at, (size_t)(b.seconds.at - b.at));
	ky_buf_printf(
		to, "%" PRIu64 ";\n\toffset = %" PRIu64 ";\n\tabsolute = TRUE", b.s, b.cycles);
	ky_buf_append(to, b.absolute.at + b.absolute.len,
		(size_t)(text + len - b.absolute.at - b.absolute.len));
	return to->error ? -ENOMEM : 0;
}

int clock_time(const char *text, size_t len, uint64_t counter, uint64_t monotonic, int64_t *ret_ns)
{
	static const char is_monotonic[] = "\tdescription = \"CLOCK_MONOTONIC\";";
	struct block b;
	int r = find_block(text, len, &b);
	__int128 total;

	if (r < 0)
		return r;
	if (!b.freq)
		return -ERANGE;
	if (memmem(b.at, (size_t)(b.end - b.at), is_monotonic, strlen(is_monotonic)))
		counter = monotonic;
	total = ((__int128)b.cycles + counter) * NS_PER_S / b.freq + (__int128)b.s * NS_PER_S;
	if (total > INT64_MAX)
		return -ERANGE;
	*ret_ns = (int64_t)total;
	return 0;
}
