/* SPDX-License-Identifier: MIT */
#include "sessiond/kernel/dump-room.h"

static uint32_t look_up(const struct dump_room *r, uid_t uid)
{
	uint32_t i = 0;

	while (i < r->n_users && r->users[i].uid != uid)
		i++;
	return i;
}

static uint32_t find_user(struct dump_room *r, uid_t uid)
{
	uint32_t i = look_up(r, uid);

	if (i == r->n_users && i < DUMP_ROOM_USERS)
		r->users[r->n_users++].uid = uid;
	return i;
}

bool dump_room_is_full(const struct dump_room *r, uid_t uid)
{
	return uid && r->users[look_up(r, uid)].is_full;
}

bool dump_room_take(struct dump_room *r, uid_t uid)
{
	uint32_t i;

	if (!uid)
		return true;
	i = find_user(r, uid);
	if (r->users[i].n >= (r->max - (r->n - r->users[i].n)) / 2) {
		r->users[i].is_full = true;
		return false;
	}
	r->users[i].n++;
	r->n++;
	return true;
}
