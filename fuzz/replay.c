/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target on the inputs of its corpus, a file of lines in base64. It replaces
 * libFuzzer's main(), so that each build can run the corpus in the unit suite.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* As libFuzzer has it: NULL for a target that needs none. */
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

static int value_of(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *p = c ? strchr(digits, c) : NULL;

	return p ? (int)(p - digits) : -1;
}

/* Decodes a line in place; returns the number of bytes. */
static size_t decode(char *line)
{
	uint32_t bits = 0, n_bits = 0;
	size_t n = 0;

	for (const char *p = line; value_of(*p) >= 0; p++) {
		bits = bits << 6 | (uint32_t)value_of(*p);
		n_bits += 6;
		if (n_bits >= 8) {
			n_bits -= 8;
			line[n++] = (char)(bits >> n_bits);
		}
	}
	return n;
}

/* Copies an input to its own allocation, so that sanitizers detect a read beyond its end. */
static void replay(const char *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

int main(int argc, char **argv)
{
	FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
	char *line = NULL;
	size_t cap = 0, n = 0;

	if (!f) {
		fprintf(stderr, "usage: replay CORPUS\n");
		return 2;
	}
	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	while (getline(&line, &cap, f) > 0) {
		replay(line, decode(line));
		n++;
	}
	free(line);
	fclose(f);
	printf("%zu inputs\n", n);
	return n ? 0 : 1;
}
