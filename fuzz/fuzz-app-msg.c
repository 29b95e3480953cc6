/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the messages of an application and the descriptions in them. A description that passes the
 * check must result in an interned event, in text for users, and in metadata.
 */
#include "ctf/tsdl.h"
#include "proto/app.h"
#include "sessiond/model/describe.h"
#include "sessiond/model/user.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_description(struct ky_bytes bytes)
{
	struct ky_loop loop = {0};
	struct users users;
	struct user *u;
	struct event_desc *d = NULL;
	struct ky_buf text = {.max = 16u << 20};
	const char *why = NULL;

	users_init(&users, &loop);
	u = user_get(&users, 0);
	if (u && !user_intern(u, bytes, &d, &why)) {
		describe_event(&text, event_desc_bytes(d));
		ky_tsdl_event(&text, 0, 1, event_desc_bytes(d), NULL, 0);
		event_desc_unref(d);
	} else if (u && !why) {
		abort();
	}
	ky_buf_deinit(&text);
	user_unref(u);
}

static void use_events(uint32_t n, struct ky_bytes list)
{
	struct ky_reader r = {.buf = list.data, .len = list.len};

	for (uint32_t i = 0; i < n && !r.error; i++) {
		struct ky_bytes desc;

		ky_read_u32(&r);
		desc = ky_read_bytes(&r);
		if (!r.error)
			use_description(desc);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ky_app_hello hello;
	struct ky_app_events events;
	struct ky_app_new_events new_events;
	struct ky_app_ack ack;
	struct ky_app_uncounted uncounted;
	struct ky_app_flush flush;
	struct ky_reader r;

	switch (ky_msg_open(&r, data, size)) {
	case KY_APP_HELLO:
		if (!ky_app_hello_decode(&r, &hello))
			use_events(hello.n_listed, hello.listed);
		break;
	case KY_APP_EVENTS:
		if (!ky_app_events_decode(&r, &events))
			use_events(events.n, events.list);
		break;
	case KY_APP_NEW_EVENTS:
		ky_app_new_events_decode(&r, &new_events);
		break;
	case KY_APP_ACK:
		ky_app_ack_decode(&r, &ack);
		break;
	case KY_APP_UNCOUNTED:
		ky_app_uncounted_decode(&r, &uncounted);
		break;
	case KY_APP_FLUSH:
		ky_app_flush_decode(&r, &flush);
		break;
	default: /* most inputs are a description only */
		if (size)
			use_description((struct ky_bytes){data, (uint32_t)size});
	}
	return 0;
}
