/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes what becomes of kernel events: a format's text, then a NUL and a sub-buffer. The program
 * of any format that is accepted must be one that the consumer accepts, and its names of values are
 * found. The first byte chooses
 * contexts, or that the bytes up to the NUL are steps as a message has them.
 */
#include "abi/kernel.h"
#include "kernel/page.h"
#include "kernel/print-fmt.h"
#include "kernel/transcode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS	 0x80 /* in the first byte */
#define OUT_SIZE 4096u
#define MIN	 64u

static struct ky_ktranscoder transcoder;

/* Transcodes the sub-buffer block by block, as far as none of its events waits for another one. */
static void transcode_page(struct ky_kplace *place, uint8_t *page, uint32_t size, uint8_t *out)
{
	uint64_t count;
	uint8_t *end;

	do {
		count = place->count;
		end = ky_ktranscode(&transcoder, place, page, size, 0, out, out + OUT_SIZE, true);
		if (end < out || end > out + OUT_SIZE)
			abort();
	} while (place->at && place->count > count);
	if (place->at)
		abort();
}

/* Transcodes the sub-buffer, and an empty one behind it. No copy may leave its slack. */
static void transcode(struct ky_kkind *k, const uint8_t *data, size_t size)
{
	uint32_t page_size = KY_KPAGE_HEADER + (uint32_t)size;
	uint8_t *page = calloc(1, page_size + KY_KERNEL_BEHIND);
	uint8_t *out = malloc(OUT_SIZE + KY_KCOPY_SLACK);
	struct ky_kplace place = {0};

	memcpy(page, data, KY_MIN(size, 8u));
	memcpy(page + 8, &(uint32_t){(uint32_t)size}, 4);
	memcpy(page + KY_KPAGE_HEADER, data, size);
	for (uint32_t i = 0; i < KY_KKINDS; i += 257)
		transcoder.kinds[i] = k;
	transcoder.waits = true;
	transcode_page(&place, page, page_size, out);
	memset(page, 0, KY_KPAGE_HEADER);
	place.at = KY_KPAGE_HEADER;
	transcode_page(&place, page, page_size, out);
	if (place.waiting)
		abort();
	for (uint32_t i = 0; i < KY_KKINDS; i += 257)
		transcoder.kinds[i] = NULL;
	free(out);
	free(page);
}

static struct ky_kkind *read_steps(const uint8_t *data, size_t size)
{
	uint32_t n = (uint32_t)(size / sizeof(struct ky_kstep));
	struct ky_kstep *steps = calloc(n + 1, sizeof(*steps));
	struct ky_kkind *k;

	memcpy(steps, data, n * sizeof(*steps));
	k = ky_kkind_new(3, MIN, steps, n);
	free(steps);
	return k;
}

static struct ky_kkind *read_format(const uint8_t *data, size_t size, uint8_t choice)
{
	struct ky_kformat *f = malloc(sizeof(*f));
	struct ky_kprogram *p = malloc(sizeof(*p));
	struct ky_context contexts[KY_KCONTEXTS_MAX];
	char *text = strndup((const char *)data, size);
	struct ky_buf tsdl = {0};
	struct ky_kkind *k = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < 7; i++)
		if (choice & 1 << i)
			contexts[n++].type = &ky_kcontext_types[i];
	if (!ky_kformat_parse(f, text) && !ky_kprogram_make(p, "sched", f, contexts, n)) {
		k = ky_kkind_new(3, p->min, p->steps, p->n_steps);
		if (!k && p->min <= UINT16_MAX)
			abort();
		ky_kernel_tsdl_event(&tsdl, p->name, p->fields, 0, 3, NULL, 0);
		ky_kvalues_put(&tsdl, text, p);
		if (tsdl.error)
			abort();
		ky_buf_deinit(&tsdl);
	}
	free(text);
	free(p);
	free(f);
	return k;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ky_kthreads threads;
	const uint8_t *nul;
	struct ky_kkind *k;
	size_t n;

	if (!transcoder.kinds) {
		threads.v = calloc(KY_KTHREADS, sizeof(*threads.v));
		if (ky_ktranscoder_init(&transcoder, &threads) < 0)
			abort();
	}
	if (!size)
		return 0;
	nul = size > 1 ? memchr(data + 1, '\0', size - 1) : NULL;
	if (*data & STEPS)
		n = KY_MIN(size - 1, (*data & 15u) * sizeof(struct ky_kstep));
	else
		n = (size_t)((nul ? nul : data + size) - data - 1);
	k = *data & STEPS ? read_steps(data + 1, n) : read_format(data + 1, n, *data);
	if (k)
		transcode(k, data + 1 + n, size - 1 - n);
	ky_kkind_free(k);
	return 0;
}
