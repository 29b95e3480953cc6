/* SPDX-License-Identifier: MIT */
#include "sessiond/model/user.h"

#include "base/keyed-hash.h"
#include "svc/check.h"

void users_init(struct users *users, struct ky_loop *loop)
{
	*users = (struct users){
		.own = geteuid(),
		.patience = {USERS_PATIENCE_NS, USERS_PATIENCE_NS, 0, false},
	};
	ky_list_init(&users->list);
	ky_shares_init(&users->own_time, loop);
	ky_shares_init(&users->time, loop);
}

struct user *user_get(struct users *users, uid_t uid)
{
	struct user *u;

	ky_list_foreach (u, &users->list, node) {
		if (u->uid == uid) {
			u->refs++;
			return u;
		}
	}
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	u->refs = 1;
	ky_msg_account_init(
		&u->queued, USER_QUEUE_MAX, uid == users->own ? &users->own_time : &users->time);
	u->of = users;
	u->patience = (struct patience){USER_PATIENCE_NS, USER_PATIENCE_NS, 0, false};
	ky_list_append(&users->list, &u->node);
	return u;
}

struct user *user_unref(struct user *u)
{
	if (!u || --u->refs)
		return NULL;
	KY_CHECK(!u->n_apps && !u->n_left_out && !u->n_bytes && !u->descs.n);
	ky_list_remove(&u->node);
	ky_htab_deinit(&u->descs);
	ky_msg_account_deinit(&u->queued);
	free(u);
	return NULL;
}

static size_t limit_of(const struct user *u)
{
	size_t others = u->of->n_bytes - KY_MIN(u->n_bytes, u->of->n_bytes);

	if (u->uid == u->of->own)
		return USER_BYTES_MAX;
	return KY_MIN((size_t)USER_BYTES_MAX,
		(USERS_BYTES_MAX - KY_MIN(others, (size_t)USERS_BYTES_MAX)) / 2);
}

int user_charge(struct user *u, size_t bytes)
{
	size_t limit = limit_of(u);

	if (!u->of->unlimited && (u->n_bytes > limit || bytes > limit - u->n_bytes))
		return -EDQUOT;
	u->n_bytes += bytes;
	if (u->uid != u->of->own)
		u->of->n_bytes += bytes;
	return 0;
}

void user_discharge(struct user *u, size_t bytes)
{
	KY_CHECK(bytes <= u->n_bytes);
	u->n_bytes -= bytes;
	if (u->uid != u->of->own)
		u->of->n_bytes -= bytes;
}

static bool patience_take(struct patience *p, uint64_t now_ns, uint64_t ns)
{
	uint64_t regained_ns = (now_ns - p->at_ns) / PATIENCE_REGAIN;

	if (p->at_ns == now_ns)
		return p->granted;
	p->at_ns = now_ns;
	p->left_ns = KY_MIN(p->left_ns + regained_ns, p->max_ns);
	p->granted = ns <= p->left_ns;
	if (p->granted)
		p->left_ns -= ns;
	return p->granted;
}

bool user_take_patience(struct user *u, uint64_t now_ns, uint64_t ns)
{
	return patience_take(&u->patience, now_ns, ns) &&
	       patience_take(&u->of->patience, now_ns, ns);
}

void user_end_patience(struct user *u)
{
	u->patience.left_ns = 0;
}

static struct event_desc *find_desc(const struct user *u, struct ky_bytes bytes, uint32_t hash)
{
	struct ky_hnode *n;

	for (n = ky_htab_first(&u->descs, hash); n; n = ky_htab_next(n)) {
		struct event_desc *d = ky_container_of(n, struct event_desc, node);

		if (d->len == bytes.len && !memcmp(d->bytes, bytes.data, bytes.len))
			return d;
	}
	return NULL;
}

static struct event_desc *desc_new(struct ky_bytes bytes)
{
	struct event_desc *d;
	struct ky_desc open;
	size_t name_size;

	ky_desc_open(&open, bytes);
	name_size = strlen(open.provider) + 1 + strlen(open.name) + 1;
	d = calloc(1, sizeof(*d) + bytes.len + name_size);
	if (!d)
		return NULL;
	d->len = bytes.len;
	memcpy(d->bytes, bytes.data, bytes.len);
	d->name = (char *)d->bytes + bytes.len;
	snprintf(d->name, name_size, "%s:%s", open.provider, open.name);
	d->name_hash = ky_hash(d->name, name_size - 1);
	d->loglevel = open.loglevel;
	return d;
}

/* Bytes that a description takes, with its name, which is part of its bytes, too. */
static size_t desc_size(size_t len)
{
	return sizeof(struct event_desc) + 2 * len;
}

int user_intern(
	struct user *u, struct ky_bytes bytes, struct event_desc **ret_desc, const char **ret_why)
{
	static uint64_t last_serial;
	uint32_t hash = ky_hash(bytes.data, bytes.len);
	struct event_desc *d = find_desc(u, bytes, hash);

	if (d) {
		*ret_desc = event_desc_ref(d);
		return 0;
	}
	if (ky_desc_check(bytes, ret_why) < 0)
		return -EBADMSG;
	if ((u->descs.n >= USER_EVENTS_MAX && !u->of->unlimited) ||
		user_charge(u, desc_size(bytes.len)) < 0)
		return -EDQUOT;
	d = desc_new(bytes);
	if (!d || ky_htab_add(&u->descs, &d->node, hash) < 0) {
		user_discharge(u, desc_size(bytes.len));
		free(d);
		return -ENOMEM;
	}
	d->user = u;
	d->serial = ++last_serial;
	u->refs++;
	*ret_desc = event_desc_ref(d);
	return 0;
}

struct event_desc *event_desc_ref(struct event_desc *d)
{
	d->refs++;
	return d;
}

struct event_desc *event_desc_unref(struct event_desc *d)
{
	if (!d || --d->refs)
		return NULL;
	ky_htab_remove(&d->user->descs, &d->node);
	user_discharge(d->user, desc_size(d->len));
	user_unref(d->user);
	free(d);
	return NULL;
}
