/* SPDX-License-Identifier: MIT */
/*
 * The ring of one CPU: src/ring/rseq-*.S, change_block() of record.c, drain.c. Writers are
 * preempted or killed at any step; a restartable sequence then begins again. A signal's handler is
 * one more writer that preempts. A consumer drains at the same time.
 *
 * It shows: all records before a head are whole, and decode to the clock with which they were
 * written. Their clocks lie between those that the consumer gives its packets. No record of a
 * writer that has returned is missing, or in the trace twice.
 *
 * Must fail: HEAD_FIRST     the head is stored before the clock and the payload
 *            WINDOW_FIRST   the window is opened in the sequence that publishes the long header
 *            STALE_HEAD     a block is changed although the head has moved since it was read
 *            CONSUMED_FIRST the consumer releases space before it has copied
 *            UNSETTLED      the consumer does not read the head again after last_ts
 */
#define WRITERS	 2
#ifndef EVENTS
#define EVENTS	 2		/* of the first writer; the other has one less */
#endif
#ifndef SWITCHES
#define SWITCHES 2		/* preemptions */
#endif
#ifndef KILLS
#define KILLS	 1
#endif
#ifndef LOOKS
#define LOOKS	 1		/* times that the consumer looks, before the last one */
#endif
#define BLOCK	 4		/* units */
/* units of a block for records: a long one takes 2, a short one 1 */
#define LIMIT	 3
#define BLOCKS	 2
#define RING	 (BLOCK * BLOCKS)
#define END	 24		/* positions stay below */
#define WINDOW	 2		/* clock values that a short header distinguishes */
#ifndef LAST
#define LAST	 4		/* the clock stops there */
#endif

typedef Unit { byte id, ts; bool wide };	/* ts of a short header: modulo WINDOW */
typedef Entry { byte used, begin_ts };

Unit unit[RING];
Entry entry[BLOCKS];
byte head, count;		/* one word */
byte window, last_ts, consumed;

byte now = WINDOW;		/* the machine's clock */
byte cpu;			/* the writer that runs */
byte switches, killed, ended;
bool inside[WRITERS], restart[WRITERS];
/* of records that are published, or will be next; by id, from 1 */
byte true_ts[WRITERS * EVENTS + 1];
bool returned[WRITERS * EVENTS + 1], seen[WRITERS * EVENTS + 1];

inline leave_cpu() {
	inside[cpu] = false;
	cpu = 1 - cpu;
	ended++
}

/* A step of the running writer `me`; `again`: what it does after its sequence was aborted. */
#define STEP(x)	if :: atomic { cpu == me && !restart[me] -> x } \
		   :: atomic { cpu == me && !restart[me] && killed < KILLS -> killed++; leave_cpu(); goto gone } \
		   :: atomic { cpu == me && restart[me] -> restart[me] = false; inside[me] = false; goto again } fi
#define ENTER	inside[me] = true
#define LEAVE	inside[me] = false

proctype scheduler() {
	do
	:: atomic { switches < SWITCHES && ended == 0 ->
		if :: inside[cpu] -> restart[cpu] = true :: else fi;
		cpu = 1 - cpu; switches++ }
	:: break
	od
}

proctype writer(byte me) {
	byte n, id, h, c, ts, size, next, looked_at, looked_count, ts_seen, kept;

	do
	:: n < EVENTS - me ->
		id = 1 + me * EVENTS + n;
again:		atomic { h = 0; c = 0; ts = 0; size = 0; next = 0; looked_at = 0; looked_count = 0; ts_seen = 0; kept = 0 };
		STEP(ENTER);
		STEP(h = head; c = count);
		if
		:: h % BLOCK + 2 > LIMIT -> goto change
		:: else
		fi;
		STEP(if :: now < LAST -> now++ :: true fi;
			ts = now; if :: ts < last_ts -> ts = last_ts :: else fi;
			size = (ts / WINDOW != window / WINDOW -> 2 : 1); true_ts[id] = ts);
#ifdef WINDOW_FIRST
		STEP(if :: size == 2 -> window = ts / WINDOW * WINDOW :: else fi);
#endif
#ifdef HEAD_FIRST
		STEP(head = h + size; count = c + 1);
#endif
		STEP(last_ts = ts);
		STEP(unit[h % RING].id = id; unit[h % RING].wide = (size == 2);
			unit[h % RING].ts = (size == 2 -> ts : ts % WINDOW));
#ifndef HEAD_FIRST
		STEP(head = h + size; count = c + 1; LEAVE);
#else
		STEP(LEAVE);
#endif
		/* A second sequence, which is not repeated. */
		if
		:: size == 2 ->
			if
			:: atomic { cpu == me && head == h + size && count == c + 1 -> window = ts / WINDOW * WINDOW }
			:: atomic { cpu == me -> skip }		/* aborted */
			fi
		:: else
		fi;
		atomic { cpu == me -> returned[id] = true; n++; goto one_done };

change:		STEP(LEAVE);
		/* change_block(): not in a sequence */
		STEP(looked_at = head; looked_count = count);
		STEP(kept = consumed);
		STEP(ts_seen = last_ts);
		next = looked_at / BLOCK * BLOCK + BLOCK;
		STEP(if :: looked_at % BLOCK + 2 <= LIMIT || head != looked_at || count != looked_count -> goto again :: else fi);
		if
		:: next + BLOCK > RING && next + BLOCK - RING > kept ->
			atomic { cpu == me -> n++; goto one_done }
		:: else
		fi;
		STEP(ENTER);
#ifndef STALE_HEAD
		STEP(if :: head != looked_at || count != looked_count -> LEAVE; goto again :: else fi);
#endif
		STEP(entry[looked_at / BLOCK % BLOCKS].used = looked_at % BLOCK);
		STEP(entry[next / BLOCK % BLOCKS].begin_ts = ts_seen);
		STEP(head = next; count = looked_count; LEAVE);
		goto again;
one_done:	skip
	:: else -> break
	od;
	atomic { cpu == me -> leave_cpu() };
gone:	atomic { h = 0; c = 0; ts = 0; size = 0; next = 0; looked_at = 0; looked_count = 0; ts_seen = 0; kept = 0; n = 0; id = 0 }
}

/* Checks the records of one block from `pos` to `end`, which the consumer is about to release. */
inline check_piece(from, end, end_ts) {
	d_step {
		p = from;
		upto = (end_ts < ts -> ts : end_ts);	/* the same as describe_piece() */
		do
		:: p < end ->
			id = unit[p % RING].id;
			assert(id != 0 && !seen[id]);
			seen[id] = true;
			t = unit[p % RING].ts;
			if
			:: unit[p % RING].wide -> p = p + 2
			:: else ->
				t = ts / WINDOW * WINDOW + t;
				if :: t < ts -> t = t + WINDOW :: else fi;
				p++
			fi;
			assert(t == true_ts[id]);	/* decodes */
			assert(t >= ts);		/* rises, also from packet to packet */
			ts = t
		:: else -> break
		od;
		assert(ts <= upto);
		ts = upto;
		p = 0; id = 0; t = 0; upto = 0
	}
}

proctype consumer() {
	byte pos, h, c, lt, p, id, t, ts, e, upto;
	byte looks;
	bool last;

	do
	:: atomic { looks < LOOKS || ended == WRITERS -> looks++; last = (ended == WRITERS) };
		atomic { h = head; c = count };
		lt = last_ts;
#ifndef UNSETTLED
		if
		:: atomic { head == h && count == c -> skip }
		:: else -> goto next_look
		fi;
#endif
		/* full blocks */
		do
		:: pos / BLOCK < h / BLOCK ->
			e = pos / BLOCK * BLOCK + entry[pos / BLOCK % BLOCKS].used;
#ifdef CONSUMED_FIRST
			consumed = pos / BLOCK * BLOCK + BLOCK;
#endif
			check_piece(pos, e, entry[(pos / BLOCK + 1) % BLOCKS].begin_ts);
			pos = pos / BLOCK * BLOCK + BLOCK;
			consumed = pos
		:: else -> break
		od;
		/* the records of the last one */
		if
		:: pos < h -> check_piece(pos, h, lt); pos = h; consumed = pos
		:: else
		fi;
next_look:	atomic { h = 0; c = 0; lt = 0; e = 0 };
		if :: last -> break :: else fi
	od;
	id = 1;
	do
	:: id <= WRITERS * EVENTS -> assert(!returned[id] || seen[id]); id++
	:: else -> break
	od;
	assert(head < END)
}

init { atomic { run writer(0); run writer(1); run scheduler(); run consumer() } }
