/* SPDX-License-Identifier: MIT */
/* Fuzzes a line of a client: parsing and checking of control requests. */
#include "sessiond/control/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_object *object = NULL;
	const struct command *command;
	struct refusal refusal = {0};
	char *line = malloc(size + 1);

	if (!line)
		return 0;
	memcpy(line, data, size);
	line[size] = '\0';
	if (request_parse(line, size, &object, &command, &refusal))
		json_object_put(object);
	else if (!refusal.code || !*refusal.text)
		abort();
	free(line);
	return 0;
}
