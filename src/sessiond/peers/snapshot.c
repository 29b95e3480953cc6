/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/snapshot.h"

#include <time.h>

#include "sessiond/kernel/kernel.h"
#include "svc/log.h"

static void set_error(struct snapshot *sn, int error, const char *message)
{
	if (sn->error && error) /* the first one counts */
		return;
	sn->error = error;
	free(sn->message);
	sn->message = strdup(message);
}

/* Reports how it ended, once. */
static void snapshot_complete(struct snapshot *sn)
{
	struct op *op = sn->op;

	if (!op)
		return;
	sn->op = NULL;
	barrier_deinit(&sn->copied);
	sn->copied = (struct barrier){0};
	if (!sn->error)
		recording_of(sn->session)->n_snapshots++;
	else
		ky_error("session '%s': snapshot in %s: %s", sn->session->name, sn->output,
			sn->message ? sn->message : "");
	op_done(op, sn->error, sn->message ? sn->message : "");
}

static struct snapshot *snapshot_free(struct snapshot *sn)
{
	barrier_deinit(&sn->copied);
	consumer_deinit(&sn->consumer);
	ky_job_cancel(&sn->ending);
	ky_list_remove(&sn->node);
	free(sn->message);
	free(sn->reason);
	free(sn->output);
	free(sn);
	return NULL;
}

static void run_ending(struct ky_job *j)
{
	snapshot_free(ky_container_of(j, struct snapshot, ending));
}

static struct snapshot *snapshot_of(struct consumer *c)
{
	return ky_container_of(c, struct snapshot, consumer);
}

static void snapshot_end(struct snapshot *sn)
{
	snapshot_complete(sn);
	ky_job_add(&sn->session->env->loop, &sn->ending);
}

static void on_ready(struct consumer *c, int status, const char *message)
{
	struct snapshot *sn = snapshot_of(c);

	if (status >= 0) {
		/* of buffers that do not exist any more */
		c->retired.overwritten = recording_of(sn->session)->consumer.retired.overwritten;
		if (sn->copied_op)
			barrier_init(&sn->copied, &sn->session->env->loop, sn->copied_op);
		consumer_snapshot(c, sn->max_size, sn->reason, sn->copied_op ? &sn->copied : NULL);
		if (sn->copied_op)
			barrier_arm(&sn->copied, CONSUMER_ANSWER_NS);
		return;
	}
	set_error(sn, status, message);
	snapshot_end(sn);
}

static void on_trouble(struct consumer *c, const char *message)
{
	set_error(snapshot_of(c), *message ? -EIO : 0, message);
}

static void on_ended(struct consumer *c, bool giving_up)
{
	struct snapshot *sn = snapshot_of(c);

	if (giving_up || !c->ready)
		set_error(sn, -ECHILD,
			"its consumer process died (see the daemon's log): what it wrote is not complete");
	snapshot_end(sn);
}

void snapshot_place(const struct session *s, const char *name, char *buf, size_t size)
{
	size_t len = strlen(s->output);
	time_t now = time(NULL);
	struct tm tm;
	char date[32];

	while (len > 1 && s->output[len - 1] == '/')
		len--;
	localtime_r(&now, &tm);
	strftime(date, sizeof(date), "%Y%m%d-%H%M%S", &tm);
	snprintf(buf, size, "%.*s%c%s-%u-%s", (int)len, s->output, s->snapshot ? '/' : '-', name,
		recording_of(s)->last_snapshot + 1, date);
}

int snapshot_new(struct session *s, const char *output, uint64_t max_size, const char *reason,
	struct op *op, struct op *copied, struct snapshot **ret_snapshot)
{
	static const struct consumer_ops ops = {
		.ready = on_ready, .trouble = on_trouble, .ended = on_ended};
	struct snapshot *sn, *other;
	unsigned n = 0;
	int ret;

	ky_list_foreach (other, &recording_of(s)->snapshots, node)
		n++;
	if (n >= SNAPSHOTS_MAX)
		return -EBUSY;
	sn = calloc(1, sizeof(*sn));
	if (!sn)
		return -ENOMEM;
	kernel_check_instances(s);
	sn->session = s;
	sn->max_size = max_size;
	sn->output = strdup(output);
	sn->reason = strdup(reason);
	ky_job_init(&sn->ending, run_ending);
	ky_list_append(&recording_of(s)->snapshots, &sn->node);
	consumer_init(&sn->consumer, s, sn->output, &ops);
	sn->consumer.snapshot = true;
	ret = sn->output && sn->reason ? consumer_spawn(&sn->consumer) : -ENOMEM;
	if (ret < 0) {
		snapshot_free(sn);
		return ret;
	}
	sn->op = op;
	sn->copied_op = copied;
	*ret_snapshot = sn;
	recording_of(s)->last_snapshot++;
	OBSERVE(s->env, snapshot_begun, s);
	return 0;
}

void snapshot_abandon(struct snapshot *sn)
{
	sn->consumer.pid = 0; /* not to be killed */
	snapshot_cancel(sn);
}

void snapshot_cancel(struct snapshot *sn)
{
	set_error(sn, -ECANCELED, "the session was destroyed meanwhile");
	snapshot_complete(sn);
	snapshot_free(sn);
}
