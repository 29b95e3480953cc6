/* SPDX-License-Identifier: MIT */
/*
 * The lifetime of a ring set's memory: enter_set() and the sequences of src/ring, and of src/tracer
 * tracer_set_quiesce() in set-hooks.c and drop() in sets.c. A hook leads into a set. The listener
 * switches it off, waits for writers, and unmaps the memory. Then hook and set are used again, for
 * another event identifier. Writers that saw the hook on may be at any step meanwhile.
 *
 * It shows: no writer accesses a set whose memory is unmapped, and each record has an identifier of
 * the set that it goes into.
 *
 * Must fail: LOOK_FIRST     the writer reads `on` before it is counted in `users`
 *            EARLY_ID       the writer reads the identifier before it checks that the hook leads
 *            into this set
 *            NO_BARRIER     sequences are not aborted before the memory is unmapped
 *            WAIT_FIRST     the listener waits for writers before it switches the hook off
 */
#define WRITERS 2
#define TURNS	2		/* sets that the hook leads into, one after the other */

bool on;			/* of the hook; n_rings is set and cleared with it */
byte id;			/* of the hook; 0: none yet */
byte users;			/* of the set, which is always the same structure */
byte mapped;			/* 0, or the identifier whose memory is mapped */
bool inside[WRITERS], aborted[WRITERS];

/* Accesses the set's memory, with a record of event `what`. */
#define TOUCH(what) assert(mapped != 0 && mapped == what)

/* The slow paths, and rings of threads: counted in `users`. */
inline record_counted() {
#ifdef LOOK_FIRST
	if :: !on -> goto done :: else fi;
#endif
	users++;
#ifdef EARLY_ID
	mine = id;
#endif
#ifndef LOOK_FIRST
	if :: !on -> users--; goto done :: else fi;
#endif
#ifndef EARLY_ID
	mine = id;
#endif
	TOUCH(mine);
	TOUCH(mine);
	users--
}

/* A restartable sequence: none of its steps is executed after it was aborted. */
#define SEQ(x) if :: atomic { !aborted[me] -> x } :: atomic { aborted[me] -> inside[me] = false; goto done } fi
inline record_in_sequence() {
	atomic { inside[me] = true; aborted[me] = false };
	SEQ(if :: !on -> inside[me] = false; goto done :: else fi);
	SEQ(mine = id);
	SEQ(TOUCH(mine));
	SEQ(TOUCH(mine); inside[me] = false)
}

proctype writer(byte me) {
	byte mine, n;

	do
	:: n < 2 ->
		n++;
		mine = 0;
		if
		:: record_counted()
		:: record_in_sequence()
		fi;
done:		skip
	:: break
	od
}

proctype listener() {
	byte turn = 1, i;

	do
	:: turn <= TURNS ->
		mapped = turn;
		id = turn;
		on = true;
#ifdef WAIT_FIRST
		users == 0;
		on = false;
#else
		on = false;
#endif
#ifndef NO_BARRIER
		i = 0;
		do
		:: i < WRITERS -> atomic { aborted[i] = inside[i]; i++ }
		:: else -> break
		od;
#endif
#ifndef WAIT_FIRST
		users == 0;
#endif
		mapped = 0;
		turn++
	:: else -> break
	od
}

init { atomic { run writer(0); run writer(1); run listener() } }
