/* SPDX-License-Identifier: MIT */
/*
 * A thread's ring: src/ring/thread.c. A signal's handler interrupts a record at any step, and
 * another handler interrupts the first. Each handler runs to its end. The process may be killed at
 * any step. Then another thread claims the ring, which may be killed as well, and a third one.
 *
 * It shows: all records before a head are whole, their number is right, and so are the numbers with
 * which blocks begin. A record is published when the outermost record has returned. A short header
 * follows a long one that is published too. The clock that a reader finds with a head is not less
 * than those before the head, and not greater than those after it. (The clock of a record is its
 * position, and one more. A killed thread may leave a greater clock; its successor's are later.)
 *
 * Must fail: PLAIN          the outermost record stores the head, instead of raising it
 *            COUNT_APART    records are counted separately from the reservation of their space
 *            KEEP_RESERVE   a new owner continues at the reservation of its predecessor
 *            KEEP_WINDOW    a new owner uses the window of its predecessor
 *            ONE_CLOCK      handlers change the head's clock, too
 *            NO_MOVING      the outermost record does not say that it changes the head's clock
 */
#define BLOCK  3		/* units; a record takes one */
#define LIMIT  2		/* units of a block for records */
#define END    24		/* positions stay below */
#define DEPTHS 3		/* a thread, a handler, a handler that interrupts it */

byte reserve, reserved;		/* one word: position, and number of records */
byte head, count;		/* one word */
bool window, moving;
byte last_ts, nested_ts;
byte used[END / BLOCK], begin_count[END / BLOCK];
bool whole[END], wide[END];

byte owner, depth, must;
bool killed[3];

/* A step of owner `who` in a context of this depth. */
#define STEP(x) atomic { owner == who && depth == level && !killed[who] -> x }

inline record() {
	skip;
again:	STEP(from = reserve; n_before = reserved);
	STEP(nested = (head != from));
	begin = (from % BLOCK + 1 > LIMIT -> from / BLOCK * BLOCK + BLOCK : from);
	STEP(is_wide = !window);
	STEP(if
	     :: reserve == from && reserved == n_before ->
		reserve = begin + 1;
#ifndef COUNT_APART
		reserved = n_before + 1;
#endif
		wide[begin] = is_wide
	     :: else -> goto again
	     fi);
	if
	:: is_wide -> STEP(window = true)
	:: else
	fi;
	if
	:: begin != from ->
		STEP(used[from / BLOCK] = from % BLOCK);
#ifdef COUNT_APART
		STEP(n_before = reserved);
#endif
		STEP(begin_count[begin / BLOCK] = n_before)
	:: else
	fi;
#ifdef COUNT_APART
	STEP(reserved++);
#endif
#ifdef ONE_CLOCK
	STEP(last_ts = (begin + 1 > last_ts -> begin + 1 : last_ts));
#else
	if
	:: nested -> STEP(nested_ts = (begin + 1 > nested_ts -> begin + 1 : nested_ts))
	:: else -> STEP(last_ts = (begin + 1 > last_ts -> begin + 1 : last_ts))
	fi;
#endif
	STEP(whole[begin] = true);
	if
	:: nested -> goto done
	:: else
	fi;
	/* publish() */
#ifdef PLAIN
	STEP(from = reserve; n_before = reserved);
	STEP(head = from; count = n_before);
#else
#ifdef COUNT_APART
	STEP(head = begin + 1; count = reserved);
#else
	STEP(head = begin + 1; count = n_before + 1);
#endif
	STEP(if :: reserve == begin + 1 -> goto done :: else fi);
	/* publish_nested() */
#ifndef NO_MOVING
	STEP(moving = true);
#endif
	do
	:: STEP(seen = head);
	   STEP(end = reserve; n_before = reserved);
	   if
	   :: seen == end -> break
	   :: else ->
		STEP(from = nested_ts);
		STEP(last_ts = (from > last_ts -> from : last_ts));
		STEP(if :: head == seen -> head = end; count = n_before :: else fi)
	   fi
	od;
	STEP(moving = false);
#endif
done:	atomic {
		owner == who && depth == level && !killed[who] ->
		if :: level == 0 -> must = (begin + 1 > must -> begin + 1 : must) :: else fi;
		from = 0; begin = 0; n_before = 0; seen = 0; end = 0;
		is_wide = false; nested = false
	}
}

/* A new owner continues at what was published: begin_ownership(). */
inline claim() {
#ifndef KEEP_WINDOW
	STEP(window = false);
#endif
	STEP(nested_ts = 0);
	STEP(moving = false);
	STEP(from = head; n_before = count);
	begin = from;
	if
	:: from % BLOCK != 0 ->
		begin = from / BLOCK * BLOCK + BLOCK;
		STEP(used[from / BLOCK] = from % BLOCK);
		STEP(begin_count[begin / BLOCK] = n_before)
	:: else
	fi;
#ifndef KEEP_RESERVE
	STEP(reserve = begin; reserved = n_before);
#endif
	STEP(head = begin; count = n_before)
}

proctype thread(byte who; byte n) {
	byte level, from, begin, n_before, seen, end;
	bool is_wide, nested;

	if
	:: who > 0 -> owner == who; claim()
	:: else
	fi;
	do
	:: n > 0 -> record(); n--
	:: else -> break
	od
}

proctype handler(byte who; byte level; byte n) {
	byte from, begin, n_before, seen, end;
	bool is_wide, nested;

	do
	:: n > 0 ->
		atomic { owner == who && depth == level - 1 && !killed[who] -> depth = level };
		record();
		STEP(depth = level - 1);
		n--
	:: break
	od
}

/* The process may be killed; the daemon then releases its rings. */
proctype killer() {
	if
	:: atomic { killed[0] = true; depth = 0; owner = 1 };
		if
		:: atomic { killed[1] = true; owner = 2 }
		:: true
		fi
	:: true
	fi
}

/* Looks once, at any moment. */
proctype reader() {
	byte p, n;
	bool opened;

	d_step {
		/*
		 * settle_head(): the clock is read while the head stands and does not move. A clock
		 * that is read while it moves is refused, unless the head has changed afterwards.
		 */
		if
		:: !moving && !killed[0] ->
			assert(last_ts >= head);
			p = (head % BLOCK + 1 > LIMIT -> head / BLOCK * BLOCK + BLOCK : head);
			assert(last_ts <= p + 1);
			p = 0
		:: else
		fi;
		assert(head >= must);
		do
		:: p < head ->
			if
			:: p % BLOCK == 0 && p > 0 -> assert(begin_count[p / BLOCK] == n)
			:: else
			fi;
			if
			:: head / BLOCK > p / BLOCK && p % BLOCK == used[p / BLOCK] ->
				p = p / BLOCK * BLOCK + BLOCK
			:: else ->
				assert(p % BLOCK < LIMIT && whole[p] && (opened || wide[p]));
				opened = true;
				n++;
				p++
			fi
		:: else -> break
		od;
		assert(n == count)
	}
}

init {
	atomic {
		run thread(0, 2); run thread(1, 1); run thread(2, 1);
		run handler(0, 1, 1); run handler(0, 2, 1);
		run killer(); run reader()
	}
}
