/* SPDX-License-Identifier: MIT */
/* Fuzzes the names of values in a kernel trace's index: the input is the index. */
#include "reader/tsdl.h"
#include "reader/values.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "linear.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INT(name, signed) "integer { size = 64; align = 8; signed = " signed "; } _" name "; "

static const char metadata[] =
	"trace { major = 1; minor = 8; byte_order = le; };\n"
	"stream { id = 0; event.header := struct { integer { size = 32; align = 8; } id; }; };\n"
	"event { name = \"a\"; id = 0; stream_id = 0; fields := struct { " INT("f", "false")
		INT("g", "true") "string _s; }; };\n"
				 "event { name = \"syscall_exit_a\"; id = 1; stream_id = 0; "
				 "fields := struct { " INT("ret", "true") "}; };\n";

static char top[] = "/tmp/kymo-fuzz-XXXXXX";

static void remove_top(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/index/formats", top);
	unlink(path);
	snprintf(path, sizeof(path), "%s/index", top);
	rmdir(path);
	rmdir(top);
}

static void put_index(const uint8_t *data, size_t size)
{
	static bool made;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/index", made ? top : mkdtemp(top));
	if (!made && mkdir(path, 0700) < 0)
		abort();
	if (!made)
		atexit(remove_top);
	made = true;
	snprintf(path, sizeof(path), "%s/index/formats", top);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

/* The text of any value ends within its memory. */
static void show(const struct ky_node *n)
{
	static const uint64_t values[] = {0, 1, 6, 0x80000, UINT64_MAX, (uint64_t)-22};
	char text[48];

	for (size_t i = 0; i < KY_ARRAY_SIZE(values); i++) {
		text[0] = '\0';
		if (ky_named_text(n->named, values[i], text, sizeof(text)) != strlen(text))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t begin = linear_begin();
	struct ky_tsdl_error error;
	struct ky_layout layout;
	struct ky_tsdl tsdl = {0};
	char why[160];

	put_index(data, size);
	if (ky_tsdl_parse(&tsdl, metadata, strlen(metadata), &error) ||
		ky_layout_compile(&layout, &tsdl, why, sizeof(why)) ||
		ky_values_choose(&layout, &tsdl.arena, top))
		abort();
	for (size_t i = 0; i < layout.streams[0].n_events; i++) {
		const struct ky_node *fields = layout.streams[0].events[i].fields;

		for (uint32_t k = 0; k < fields->n; k++)
			if (fields->children[k].named)
				show(&fields->children[k]);
	}
	ky_tsdl_deinit(&tsdl);
	linear_end(begin, size);
	return 0;
}
