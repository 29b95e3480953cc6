/* SPDX-License-Identifier: MIT */
/* A session that keeps no packets: its events are only counted. Nothing here has any state. */
#include "consumerd/sink/sink.h"

static const struct sink_ops ops;
static struct {
	struct sink_trace trace;
	struct sink_stream stream;
} null = {{&ops}, {.ops = &ops}};

struct sink null_sink = {&ops};

static int null_archive(struct sink *sink, const char *archive)
{
	return *archive ? -EBADMSG : 0;
}

static int null_discard(struct sink *sink)
{
	return 0;
}

static bool null_has_chunk(const struct sink *sink)
{
	return false;
}

static int null_watermark(struct sink *sink, const struct ky_watermark *watermark)
{
	return 0;
}

static void null_close(struct sink *sink)
{
}

static int null_open_trace(
	struct sink *sink, const char *dir, bool resume, struct sink_trace **ret_trace)
{
	*ret_trace = &null.trace;
	return 0;
}

static void null_trace_done(struct sink_trace *trace)
{
}

static int null_metadata(struct sink_trace *trace, uint64_t at, const char *text, size_t len)
{
	return 0;
}

static void null_cut_metadata(struct sink_trace *trace, uint64_t size)
{
}

static int null_open_stream(
	struct sink_trace *trace, const struct sink_name *name, struct sink_stream **ret_stream)
{
	*ret_stream = &null.stream;
	return 0;
}

static void null_file(struct sink_stream *s, uint64_t number)
{
}

static int null_resume(struct sink_stream *s, const struct ky_ctf_packet *like,
	sink_visit_fn *visit, void *context)
{
	return SINK_NO_POSITION;
}

static int null_append(
	struct sink_stream *s, const struct sink_packet *packets, unsigned int n, uint64_t spare_ns)
{
	return 0;
}

static int null_count(struct sink_stream *s, uint64_t number, uint64_t *ret_n_events)
{
	*ret_n_events = 0;
	return 0;
}

static int null_set_apart(struct sink_stream *s, uint64_t number)
{
	return 0;
}

static void null_close_stream(struct sink_stream *s)
{
}

static const struct sink_ops ops = {
	.archive = null_archive,
	.discard = null_discard,
	.has_chunk = null_has_chunk,
	.watermark = null_watermark,
	.close = null_close,
	.open_trace = null_open_trace,
	.open_chunk = null_trace_done,
	.metadata = null_metadata,
	.cut_metadata = null_cut_metadata,
	.close_trace = null_trace_done,
	.open_stream = null_open_stream,
	.begin_file = null_file,
	.resume = null_resume,
	.append = null_append,
	.count = null_count,
	.remove = null_file,
	.set_apart = null_set_apart,
	.close_stream = null_close_stream,
};
