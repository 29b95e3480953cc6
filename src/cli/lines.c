/* SPDX-License-Identifier: MIT */
#include "cli/lines.h"

#include <unistd.h>

#define MAX_TEXT (64 << 10) /* more is written at once */
#define MAX_KEPT (4 << 20)  /* of the buffer, for further lines */

void cli_lines_init(struct cli_lines *l, const struct ky_format *like, bool json)
{
	*l = (struct cli_lines){.format = *like, .json = json};
}

void cli_lines_deinit(struct cli_lines *l)
{
	free(l->values.v);
	ky_buf_deinit(&l->text);
}

void cli_lines_format(struct ky_format *f, struct ky_buf *to, const struct ky_item *item, bool json)
{
	to->max = to->len + KY_TEXT_MAX;
	if (json)
		ky_format_json(f, to, item);
	else
		ky_format_text(f, to, item);
}

int cli_lines_write(const char *data, size_t n)
{
	while (n) {
		ssize_t done = write(STDOUT_FILENO, data, n);

		if (done < 0 && errno != EINTR)
			return -errno;
		if (done < 0)
			continue;
		data += done;
		n -= (size_t)done;
	}
	return 0;
}

int cli_lines_flush(struct cli_lines *l)
{
	if (!l->error)
		l->error = l->text.error;
	if (!l->error && l->text.len)
		l->error = cli_lines_write(l->text.data, l->text.len);
	l->text.len = 0;
	if (l->text.cap > MAX_KEPT || l->text.error)
		ky_buf_deinit(&l->text);
	return l->error;
}

int cli_lines_add(struct cli_lines *l)
{
	cli_lines_format(&l->format, &l->text, &l->item, l->json);
	return l->text.len >= MAX_TEXT || l->text.error ? cli_lines_flush(l) : l->error;
}
