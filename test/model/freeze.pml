/* SPDX-License-Identifier: MIT */
/*
 * A trigger in an application that freezes a ring in overwrite mode, until the session daemon has
 * copied it: src/ring/freeze.h, change_block() of src/ring/record.c, src/tracer/trigger.c,
 * src/sessiond/peers/firing.c. Only changes of blocks are modelled: two writers on one CPU of
 * another ring than that of the thread that fires, which may be killed at any step. Each writer may
 * stand still for any time between two steps.
 *
 * It shows: from the moment at which the trigger freezes the ring, until the copy is made, at most
 * one block is entered. The copy has the event that fired, unless its thread was killed before it
 * recorded it. The ring does not stay frozen. (`allowed` is called `enabled` in the program.)
 *
 * Must fail: NO_HEAD_CHECK  a writer enters a block although the head has moved since it was read
 *            WORD_FIRST     a writer reads the word before the head
 *            RECORD_FIRST   the thread records the event, and then freezes the ring
 *            NO_WAIT        the daemon copies although the event is not recorded yet
 */
#define WRITERS	 2
#define CHANGES	 5		/* of blocks, of all writers together */
#define FIRINGS	 2
#define BLOCKS	 3		/* of the ring */
#define NEVER	 255

byte head;			/* blocks entered so far */
bool word, allowed, armed, recorded;
byte frozen_at = NEVER;		/* head when a firing has frozen the ring */
byte event_at = NEVER;		/* head when its event was recorded */
byte made, firings, ended;
bool killed;

proctype writer() {
	byte h;
	bool stop;

	do
	:: atomic { made < CHANGES -> made++ };
again:
#ifdef WORD_FIRST
		stop = word;
		h = head;
#else
		h = head;
		stop = word;
#endif
		if
		:: stop		/* the event is discarded, and counted */
		:: else ->
			atomic {
				if
#ifdef NO_HEAD_CHECK
				:: true -> head = head + 1
#else
				:: head == h -> head = head + 1
				:: else -> goto again
#endif
				fi
			}
		fi
	:: made == CHANGES -> break
	od;
	ended++
}

/* A step of the thread that fires; it may be killed in front of it. */
#define STEP(x)	if :: atomic { x } :: atomic { !killed -> killed = true; goto gone } fi

proctype thread() {
	bool won;

	do
	:: firings < FIRINGS ->
		firings++;
		won = false;
#ifdef RECORD_FIRST
		event_at = head;
#endif
		STEP(won = armed; armed = false);
		if
		:: won ->
			STEP(word = true; frozen_at = head);
#ifndef RECORD_FIRST
			STEP(event_at = head);
#endif
			STEP(recorded = true)
		:: else
		fi
	:: else -> break
	od;
gone:	ended++
}

inline arm() {
	recorded = false;
	allowed = true;
	armed = true
}

/* Clears the word, if no firing is still to be handled. */
inline thaw() {
	atomic { allowed = allowed && !armed; armed = false };
	if
	:: !allowed -> word = false
	:: else
	fi
}

proctype daemon() {
	bool late;

	arm();
	do
	:: allowed && !armed && (recorded || killed
#ifdef NO_WAIT
		|| true
#endif
		) ->
		allowed = false;
		word = true;
		/* The copy. The thread may have been killed before it froze the ring. */
		late = killed && !recorded;
		if
		:: !late ->
			assert(frozen_at != NEVER && head - frozen_at <= 1);
			assert(event_at != NEVER && head - event_at < BLOCKS - 1)
		:: else
		fi;
		atomic { frozen_at = NEVER; event_at = NEVER };
		thaw();
		arm()
	:: word && !(allowed && !armed) ->	/* left behind */
		thaw();
		arm()
	:: timeout -> break
	od;
	assert(!word)
}

init { atomic { run writer(); run writer(); run thread(); run daemon() } }
