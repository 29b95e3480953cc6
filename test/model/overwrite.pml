/* SPDX-License-Identifier: MIT */
/*
 * A ring that is overwritten while a snapshot of it is taken: change_block() and give_up_oldest()
 * of src/ring/record.c, src/ring/snapshot.c. Two writers on one CPU preempt each other at any step,
 * and may be killed at any step. The reader copies word by word.
 *
 * It shows: the records that a snapshot keeps are whole, without a gap up to its head, and its
 * number of records is right.
 *
 * Must fail: OLDEST_LATE  `oldest` rises after the block has been entered, not before
 *            ONE_LOOK     the reader does not read `oldest` again after it has copied
 *            STALE_HEAD   a block is given up although the head has moved since it was read
 *            COPY_LAST    the second copy of `oldest` rises after the first, which says whether the
 *                         block has to be given up
 */
#define WRITERS	 2
#ifdef STALE_HEAD
#define RECORDS	 8
#endif
#ifndef RECORDS
#define RECORDS	 6		/* of both together */
#endif
#ifndef SWITCHES
#define SWITCHES 2
#endif
#define BLOCK	 3		/* units; a record takes one */
#define LIMIT	 2		/* units of a block for records */
#define BLOCKS	 2
#define RING	 (BLOCK * BLOCKS)

byte unit[RING];		/* position of the record, and 1 */
byte used[BLOCKS], begin_count[BLOCKS];
byte head, count;		/* one word */
byte oldest, second;		/* second: the copy behind the data */

byte cpu, switches, killed, ended, made;
bool inside[WRITERS], restart[WRITERS];

inline leave_cpu() {
	inside[cpu] = false;
	cpu = 1 - cpu;
	ended++
}

/* A step of the running writer `me`; `again`: what it does after its sequence was aborted. */
#define STEP(x)	if :: atomic { cpu == me && !restart[me] -> x } \
		   :: atomic { cpu == me && !restart[me] && !killed -> killed = 1; leave_cpu(); goto gone } \
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
	byte h, c, next;

	do
	:: atomic { cpu == me && made < RECORDS -> made++ };
again:		atomic { h = 0; c = 0; next = 0 };
		STEP(ENTER; h = head; c = count);
		if
		:: h % BLOCK + 1 > LIMIT -> goto change
		:: else
		fi;
		STEP(unit[h % RING] = h + 1);
		STEP(head = h + 1; count = c + 1; LEAVE);
		goto one_done;

change:		STEP(LEAVE; h = head; c = count);
		if
		:: h % BLOCK + 1 <= LIMIT -> goto again
		:: else
		fi;
		next = h / BLOCK * BLOCK + BLOCK;
#ifndef OLDEST_LATE
		if
		:: next + BLOCK > RING + oldest ->
#ifdef STALE_HEAD
			STEP(second = next + BLOCK - RING);
			STEP(oldest = next + BLOCK - RING)
#else
			STEP(if :: head != h || count != c -> goto again :: else fi; ENTER);
#ifdef COPY_LAST
			STEP(oldest = next + BLOCK - RING);
			STEP(second = next + BLOCK - RING; LEAVE)
#else
			STEP(second = next + BLOCK - RING);
			STEP(oldest = next + BLOCK - RING; LEAVE)
#endif
#endif
		:: else
		fi;
#endif
		STEP(if :: head != h || count != c -> goto again :: else fi; ENTER);
		STEP(used[h / BLOCK % BLOCKS] = h % BLOCK);
		STEP(begin_count[next / BLOCK % BLOCKS] = c);
		STEP(head = next; count = c; LEAVE);
#ifdef OLDEST_LATE
		STEP(if :: next + BLOCK > RING -> second = next + BLOCK - RING; oldest = second :: else fi);
#endif
		goto again;
one_done:	skip
	:: atomic { cpu == me && made == RECORDS -> leave_cpu(); break }
	od;
gone:	skip
}

proctype reader() {
	byte from, h, c, p, n, first, copy[RING], copy_used[BLOCKS], copy_count[BLOCKS];

again:	from = oldest;
	atomic { h = head; c = count };
	if
	:: h < from || h - from >= RING -> goto again
	:: else
	fi;
	p = from;
	do
	:: p < h || p == h && p % BLOCK == 0 ->
		if
		:: p % BLOCK == 0 ->
			copy_used[p / BLOCK % BLOCKS] = used[p / BLOCK % BLOCKS];
			copy_count[p / BLOCK % BLOCKS] = begin_count[p / BLOCK % BLOCKS]
		:: else
		fi;
		copy[p % RING] = unit[p % RING];
		p++
	:: else -> break
	od;
	first = from;
#ifndef ONE_LOOK
	first = second;
	assert(first >= from);
	if
	:: first > h -> goto again
	:: else
	fi;
#endif
	d_step {
		p = first;
		n = (first > 0 -> copy_count[first / BLOCK % BLOCKS] : 0);
		do
		:: p < h ->
			if
			:: h / BLOCK > p / BLOCK && p % BLOCK == copy_used[p / BLOCK % BLOCKS] ->
				p = p / BLOCK * BLOCK + BLOCK
			:: else ->
				assert(p % BLOCK < LIMIT && copy[p % RING] == p + 1);
				n++;
				p++
			fi
		:: else -> break
		od;
		assert(n == c)
	}
}

init { atomic { run writer(0); run writer(1); run scheduler(); run reader() } }
