/* SPDX-License-Identifier: MIT */
/*
 * A stream between a source that can be read only once, as a pipe, and a sink that fails. Each
 * record reaches the sink once, in order, and each loss is reported once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "consumerd/stream/stream-set.h"

#define N_IN_PIPE   5 /* records that one read returns */
#define RECORDS_MAX 1000
#define ERROR	    (-ENOSPC)

/* --- the source: after a read, its records exist only in `buffer` --- */

struct pipe_source {
	struct source source;
	uint32_t buffer[N_IN_PIPE];
	uint64_t buffer_pos; /* position of buffer[0] */
	uint32_t n_sent;     /* records that were read from the pipe */
	uint32_t n_waiting;  /* records in the pipe */
	bool is_busy;	     /* what was read cannot be described yet */
};

static int pipe_look(struct source *s, bool flush, bool written)
{
	struct pipe_source *p = ky_container_of(s, struct pipe_source, source);

	if (s->taken.pos != s->head || !p->n_waiting)
		return 0; /* there is no room, or nothing to read */
	p->buffer_pos = s->head;
	for (int i = 0; i < N_IN_PIPE && p->n_waiting; i++, p->n_waiting--) {
		p->buffer[i] = (p->n_sent + 1) << KY_ID_BITS;
		p->n_sent++;
		s->head += sizeof(p->buffer[i]);
		s->head_count++;
	}
	s->settled = !p->is_busy;
	s->more = p->n_waiting;
	return 0;
}

static bool pipe_next(
	struct source *s, struct source_mark *at, bool partial, struct ky_drain_piece *ret_piece)
{
	struct pipe_source *p = ky_container_of(s, struct pipe_source, source);
	uint64_t n = (s->head - at->pos) / sizeof(p->buffer[0]);
	const uint32_t *first = &p->buffer[(at->pos - p->buffer_pos) / sizeof(p->buffer[0])];

	if (!n || p->is_busy)
		return false;
	*ret_piece = (struct ky_drain_piece){.data = (const uint8_t *)first,
		.len = (uint32_t)(s->head - at->pos),
		.pos = at->pos,
		.next = s->head,
		.begin_ts = first[0] >> KY_ID_BITS,
		.end_ts = first[n - 1] >> KY_ID_BITS,
		.n_events = n};
	*at = source_behind(at, ret_piece);
	return true;
}

static void pipe_take(struct source *s, const struct source_mark *to)
{
	s->taken = *to;
}

static const struct source_ops pipe_ops = {.look = pipe_look, .next = pipe_next, .take = pipe_take};

/* --- the sink --- */

static struct {
	struct sink_stream stream;
	uint32_t records[RECORDS_MAX];
	uint32_t n_records;
	uint64_t file;
	uint64_t n_discarded;		   /* as the last packet reports them */
	int n_fail;			   /* appends that will fail */
	uint64_t spare_ns;		   /* of the last append */
	struct ky_ctf_packet before, last; /* the last two packets */
} out;

/*
 * A reader counts the clock of the first record from the begin of its packet: a record that is
 * earlier gets a time that is 2^27 units too late.
 */
static void check_clocks(const struct sink_packet *packet)
{
	const uint32_t *records = (const uint32_t *)packet->data;
	size_t n = packet->len / sizeof(*records);

	assert_true(packet->header.timestamp_begin <= packet->header.timestamp_end);
	if (!n)
		return;
	assert_true(packet->header.timestamp_begin <= records[0] >> KY_ID_BITS);
	assert_true(packet->header.timestamp_end >= records[n - 1] >> KY_ID_BITS);
}

static int out_append(
	struct sink_stream *s, const struct sink_packet *packets, unsigned int n, uint64_t spare_ns)
{
	if (out.n_fail) {
		out.n_fail--;
		return ERROR;
	}
	out.spare_ns = spare_ns;
	for (unsigned int i = 0; i < n; i++) {
		assert_true(out.n_records + packets[i].len / 4 <= RECORDS_MAX);
		assert_int_equal(packets[i].header.n_events, packets[i].len / 4);
		check_clocks(&packets[i]);
		memcpy(&out.records[out.n_records], packets[i].data, packets[i].len);
		out.n_records += packets[i].len / 4;
		out.n_discarded = packets[i].header.events_discarded;
		out.before = out.last;
		out.last = packets[i].header;
		s->size += packets[i].header.packet_bits / 8;
		s->n_packets++;
	}
	return 0;
}

static void out_begin_file(struct sink_stream *s, uint64_t number)
{
	out.file = number;
	s->size = s->n_packets = 0;
}

static void out_close_stream(struct sink_stream *s)
{
}

static const struct sink_ops out_ops = {.keeps = true,
	.append = out_append,
	.begin_file = out_begin_file,
	.close_stream = out_close_stream};

/* --- the tests --- */

static struct ky_resume_stream memory;
static struct pipe_source in;
static struct stream stream;

static void begin_stream(struct sink_stream *to, uint64_t max_size)
{
	memset(&memory, 0, sizeof(memory));
	memset(&out, 0, sizeof(out));
	out.stream.ops = &out_ops;
	out.stream.max_size = max_size;
	in = (struct pipe_source){
		.source = {.ops = &pipe_ops, .block_size = 4096, .n_blocks = 4, .resume = &memory}};
	stream_init(&stream, &in.source, to, 0);
}

static int round_of(uint32_t n_new)
{
	in.n_waiting += n_new;
	assert_int_equal(stream_look(&stream, true, 0), 0);
	return stream_write(&stream, true, 0);
}

static void expect_all(uint64_t n_discarded)
{
	assert_int_equal(in.source.taken.pos, in.source.head);
	assert_int_equal(stream.end.n_events, in.n_sent);
	assert_int_equal(out.n_records, in.n_sent);
	for (uint32_t i = 0; i < out.n_records; i++)
		assert_int_equal(out.records[i] >> KY_ID_BITS, i + 1);
	assert_int_equal(out.n_discarded, n_discarded);
}

static void test_read_once(void **state)
{
	begin_stream(&out.stream, 0);
	for (int i = 0; i < 20; i++) {
		int fails = i % 3;

		out.n_fail = fails;
		assert_int_equal(round_of(7), fails ? ERROR : 0);
	}
	out.n_fail = 0;
	while (in.n_waiting || in.source.taken.pos != in.source.head)
		assert_int_equal(round_of(0), 0);
	expect_all(0);
	assert_int_equal(in.n_sent, 20 * 7);
	stream_deinit(&stream);
}

/* A write may wait for the disk while the source fills slowly, unless more waits behind it. */
static void test_hurry(void **state)
{
	begin_stream(&out.stream, 0);
	assert_int_equal(round_of(1), 0);
	assert_true(out.spare_ns > 0);
	in.source.hurries = true;
	assert_int_equal(round_of(1), 0);
	assert_int_equal(out.spare_ns, 0);
	expect_all(0);
	stream_deinit(&stream);
}

static void test_losses(void **state)
{
	begin_stream(&out.stream, 0);
	assert_int_equal(round_of(3), 0);
	in.source.n_lost = 10;
	out.n_fail = 1;
	assert_int_equal(round_of(3), ERROR);
	assert_int_equal(out.n_discarded, 0);
	assert_int_equal(round_of(0), 0);
	expect_all(10);
	in.source.n_lost = 12; /* without a record */
	assert_int_equal(round_of(0), 0);
	expect_all(12);
	stream_deinit(&stream);
}

/* The packet that ends the stream comes behind what the source had no room for at first. */
static void test_end(void **state)
{
	begin_stream(&out.stream, 0);
	in.source.until = 1000;
	assert_int_equal(round_of(2 * N_IN_PIPE), 0);
	assert_int_equal(stream.end.ts, N_IN_PIPE);
	assert_int_equal(round_of(0), 0);
	expect_all(0);
	assert_int_equal(stream.end.ts, 1000);
	stream_deinit(&stream);
}

/* A consumer began later than the records that it finds; these cannot be described at once. */
static void test_losses_before_records(void **state)
{
	begin_stream(&out.stream, 0);
	stream.since = 1000;
	in.is_busy = true;
	in.source.n_lost = 10;
	assert_int_equal(round_of(3), 0);
	assert_int_equal(out.n_discarded, 0);
	in.is_busy = false;
	assert_int_equal(round_of(0), 0);
	expect_all(10);
	stream_deinit(&stream);
}

/* The same, with records in an earlier chunk only. */
static void test_losses_in_new_chunk(void **state)
{
	begin_stream(&out.stream, 0);
	assert_int_equal(round_of(3), 0);
	stream.since = 1000;
	stream_prepare(&stream, 1, false);
	stream_enter(&stream, 1);
	in.source.n_lost = 10;
	assert_int_equal(round_of(0), 0);
	assert_int_equal(out.n_discarded, 10);
	assert_int_equal(round_of(3), 0);
	expect_all(10);
	stream_deinit(&stream);
}

/* A file that is full is complete, and the next one continues in a slot of its own. */
static void test_files(void **state)
{
	begin_stream(&out.stream, 2 * (sizeof(struct ky_ctf_packet) + N_IN_PIPE * 4));
	for (int i = 0; i < 7; i++)
		assert_int_equal(round_of(N_IN_PIPE), 0);
	expect_all(0);
	assert_int_equal(out.file, 3);
	assert_int_equal(stream.slots.base.file, 3);
	assert_int_equal(stream.slots.base.pos, 6 * N_IN_PIPE * 4);
	assert_memory_equal(&stream.slots.base, &memory.slots[stream.slots.used], 8);
	stream_deinit(&stream);
}

static void test_counted_only(void **state)
{
	struct ky_cons_stats stats = {0};
	struct sink_stream *to;

	assert_int_equal(null_sink.ops->open_stream(NULL, NULL, &to), 0);
	begin_stream(to, 0);
	assert_int_equal(round_of(5), 0);
	stream_add_stats(&stream, &stats);
	assert_int_equal(stats.recorded, 5);
	assert_int_equal(stats.packets + stats.bytes, 0);
	assert_int_equal(in.source.taken.count, 5);
	stream_deinit(&stream);
}

/* --- sets of two streams --- */

static struct {
	struct pipe_source pipes[2];
	struct ky_resume_stream memory[2];
	struct sink_stream to[2];
	int open_error, resume_error; /* of the second and of the first stream */
	int n_apart;		      /* files */
} pair;

static int pair_resume_source(struct source *s, const struct source_mark *stored)
{
	return 0;
}

static void pair_abandon(struct source *s, bool again)
{
	s->abandoned = true;
}

static const struct source_ops pair_source_ops = {.look = pipe_look,
	.next = pipe_next,
	.take = pipe_take,
	.resume = pair_resume_source,
	.abandon = pair_abandon};

static uint32_t pair_n_used(const struct source_set *set)
{
	return 2;
}

static struct source *pair_open(struct source_set *set, uint32_t i)
{
	pair.pipes[i].source = (struct source){.ops = &pair_source_ops,
		.block_size = 4096,
		.n_blocks = 4,
		.released = true,
		.resume = &pair.memory[i]};
	return &pair.pipes[i].source;
}

static void pair_free(struct source_set *set)
{
}

static const struct source_set_ops pair_ops = {
	.n_used = pair_n_used, .open = pair_open, .free = pair_free};

static int pair_open_stream(
	struct sink_trace *trace, const struct sink_name *name, struct sink_stream **ret_stream)
{
	if (name->n && pair.open_error)
		return pair.open_error;
	*ret_stream = &pair.to[name->n];
	return 0;
}

static int pair_resume(struct sink_stream *s, const struct ky_ctf_packet *like,
	sink_visit_fn *visit, void *context)
{
	return s == &pair.to[0] ? pair.resume_error : 0;
}

static int pair_set_apart(struct sink_stream *s, uint64_t number)
{
	pair.n_apart += s == &pair.to[0];
	return 0;
}

static const struct sink_ops pair_sink_ops = {.keeps = true,
	.open_stream = pair_open_stream,
	.resume = pair_resume,
	.set_apart = pair_set_apart,
	.append = out_append,
	.begin_file = out_begin_file,
	.close_stream = out_close_stream};

static struct stream_set *pair_begin(struct source_set *sources, struct trace *t)
{
	static char name[] = "c";
	static struct sink_trace to = {&pair_sink_ops};
	struct ky_cons_ring_set m = {.name = name};
	struct stream_set *set = NULL;

	memset(&out, 0, sizeof(out));
	pair.to[0].ops = pair.to[1].ops = &pair_sink_ops;
	*sources = (struct source_set){.ops = &pair_ops, .n_max = 2};
	*t = (struct trace){.dir = name, .to = &to, .resume = true, .log_fd = -1};
	assert_int_equal(stream_set_new(&m, t, sources, &set), 0);
	return set;
}

static void pair_round(struct stream_set *set)
{
	uint64_t alive;

	if (stream_set_look(set, false, 0))
		stream_set_write(set, 0, &alive);
}

/* A stream whose file is another's does not prevent the others from being written. */
static void test_others_file(void **state)
{
	struct source_set sources;
	struct stream_set *set;
	struct trace t;

	memset(&pair, 0, sizeof(pair));
	pair.resume_error = -EBADMSG;
	set = pair_begin(&sources, &t);
	assert_int_equal(set->n_streams, 2);
	assert_int_equal(set->n_quarantined, 1);
	assert_int_equal(pair.n_apart, 1);
	assert_true(pair.pipes[0].source.abandoned && !pair.pipes[1].source.abandoned);
	stream_set_free(set);
}

/* A set is not written before each of its streams is open, and has no records left. */
static void test_set_is_written(void **state)
{
	struct source_set sources;
	struct stream_set *set;
	struct trace t;

	memset(&pair, 0, sizeof(pair));
	set = pair_begin(&sources, &t);
	set->n_streams = 1; /* a thread has a ring now */
	pair.open_error = -EMFILE;
	stream_set_end(set);
	pair_round(set);
	assert_false(stream_set_is_written(set));
	pair.open_error = 0;
	pair.pipes[0].n_waiting = 1;
	pair.pipes[0].is_busy = true;
	pair_round(set);
	assert_false(stream_set_is_written(set));
	pair.pipes[0].is_busy = false;
	pair_round(set);
	assert_true(stream_set_is_written(set));
	assert_int_equal(out.n_records, 1);
	stream_set_free(set);
}

/* A consumer that has no room for a stream at its start opens the stream as soon as it has room. */
static void test_set_begun_without_room(void **state)
{
	struct source_set sources;
	struct stream_set *set;
	struct trace t;

	memset(&pair, 0, sizeof(pair));
	pair.open_error = -ENOSPC;
	set = pair_begin(&sources, &t);
	assert_int_equal(set->n_streams, 1);
	assert_int_equal(set->unopened, -ENOSPC);
	stream_set_end(set);
	pair_round(set);
	assert_false(stream_set_is_written(set));
	pair.open_error = 0;
	pair_round(set);
	pair.pipes[1].n_waiting = 1;
	pair_round(set);
	assert_true(stream_set_is_written(set));
	assert_int_equal(out.n_records, 1);
	stream_set_free(set);
}

/*
 * A stream that has got no file has losses, as the whole set has: the other stream reports them,
 * once. The counts of the streams are as before.
 */
static void test_losses_without_file(void **state)
{
	struct source_set sources;
	struct stream_set *set;
	struct ky_cons_stats stats = {0};
	struct trace t;

	memset(&pair, 0, sizeof(pair));
	set = pair_begin(&sources, &t);
	pair.pipes[0].n_waiting = 1;
	pair_round(set);
	assert_int_equal(out.n_records, 1);
	pair.pipes[0].source.settled = pair.pipes[1].source.settled = true;
	pair.pipes[1].source.head += 4;
	pair.pipes[1].source.head_count++;
	pair.pipes[1].source.n_lost = 2;
	out.n_fail = 1; /* the second stream's last packet */
	stream_set_give_up(set);
	stream_set_give_up(set);
	assert_int_equal(out.n_discarded, 3);
	assert_int_equal(pair.to[1].n_packets, 0);
	stream_set_add_stats(set, &stats);
	assert_int_equal(stats.unwritten, 1);
	assert_int_equal(stats.discarded, 2);
	stream_set_free(set);
}

/*
 * The disk was full from the begin to the end. The losses go from the begin of the recording to its
 * end, and the first packet begins where the records do: nothing was overwritten before.
 */
static void test_given_up_unwritten(void **state)
{
	struct source_set sources;
	struct stream_set *set;
	struct trace t;
	uint64_t since, now;

	memset(&pair, 0, sizeof(pair));
	set = pair_begin(&sources, &t);
	set->n_streams = 1;
	since = set->streams[0].since;
	pair.pipes[0].source.settled = true;
	pair.pipes[0].source.head = 12;
	pair.pipes[0].source.head_count = 3;
	now = ky_clock_read(sources.clock);
	stream_set_give_up(set);
	assert_int_equal(out.before.events_discarded, 0);
	assert_int_equal(out.before.position_begin, 0);
	assert_true(out.before.timestamp_end <= since);
	assert_int_equal(out.last.events_discarded, 3);
	assert_int_equal(out.last.position_begin, 12);
	assert_true(out.last.timestamp_end >= now);
	set->n_streams = 2;
	stream_set_free(set);
}

/* A program that writes on for ever does not keep its memory. */
static void test_set_that_never_settles(void **state)
{
	struct source_set sources;
	struct stream_set *set;
	struct trace t;
	int n = 0;

	memset(&pair, 0, sizeof(pair));
	set = pair_begin(&sources, &t);
	stream_set_end(set);
	pair.pipes[0].n_waiting = 1;
	pair.pipes[0].is_busy = true;
	do
		pair_round(set);
	while (!stream_set_is_written(set) && ++n < 10000);
	assert_in_range(n, 2, 1000);
	stream_set_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_once),
		cmocka_unit_test(test_hurry),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_losses_before_records),
		cmocka_unit_test(test_losses_in_new_chunk),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_counted_only),
		cmocka_unit_test(test_others_file),
		cmocka_unit_test(test_set_is_written),
		cmocka_unit_test(test_set_begun_without_room),
		cmocka_unit_test(test_losses_without_file),
		cmocka_unit_test(test_given_up_unwritten),
		cmocka_unit_test(test_set_that_never_settles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
