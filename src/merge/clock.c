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
static bool find(const char *clock, const char *end, const char *before, struct part *ret)
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
static bool shift(uint64_t freq, uint64_t *s, uint64_t *cycles, int64_t ns)
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

static void put_env(struct ky_buf *to, const struct offset *o, const char *source)
{
	ky_buf_printf(to, "\n\tclock_source = \"%s\";\n\tclock_shift_ns = %" PRId64 ";", source,
		o->shift_ns);
	if (o->error_ns != OFFSETS_UNKNOWN)
		ky_buf_printf(to, "\n\tclock_error_ns = %" PRId64 ";", o->error_ns);
}

int clock_rewrite(
	struct ky_buf *to, const char *text, size_t len, const struct offset *o, const char *source)
{
	static const char env_begin[] = "\nenv {", clock_begin[] = "\nclock {",
			  block_end[] = "\n};";
	const char *env = memmem(text, len, env_begin, strlen(env_begin)), *clock, *end;
	struct part freq, seconds, cycles, absolute;
	uint64_t f, s, c;

	if (!env)
		return -EINVAL;
	env += strlen(env_begin);
	clock = memmem(env, (size_t)(text + len - env), clock_begin, strlen(clock_begin));
	end = clock ? memmem(clock, (size_t)(text + len - clock), block_end, strlen(block_end))
		    : NULL;
	if (!end || !find(clock, end, "\n\tfreq = ", &freq) ||
		!find(clock, end, "\n\toffset_s = ", &seconds) ||
		!find(seconds.at, end, "\n\toffset = ", &cycles) ||
		!find(cycles.at, end, "\n\tabsolute = ", &absolute) || !read_number(&freq, &f) ||
		!read_number(&seconds, &s) || !read_number(&cycles, &c))
		return -EINVAL;
	if (!shift(f, &s, &c, o->shift_ns))
		return -ERANGE;
	ky_buf_append(to, text, (size_t)(env - text));
	put_env(to, o, source);
	ky_buf_append(to, env, (size_t)(seconds.at - env));
	ky_buf_printf(to, "%" PRIu64 ";\n\toffset = %" PRIu64 ";\n\tabsolute = TRUE", s, c);
	ky_buf_append(
		to, absolute.at + absolute.len, (size_t)(text + len - absolute.at - absolute.len));
	return to->error ? -ENOMEM : 0;
}
