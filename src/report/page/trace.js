/* SPDX-License-Identifier: MIT */
/* ---- the trace ---- */

/* Of listed events: time, name, track. n blocks: numbers of their events. */
let head, T, C, K, tracks, span, flows = null;
let passing = null;       /* numbers of the listed events that pass the filter; null: all do */
let passingTimes;         /* of them */
const COUNT = b => head.blocks[2 * b + 1];
let hosts;                /* number of machines */
let blockBegins;          /* index of the first listed event of each block */
const texts = new Map();  /* of blocks that were looked at last */
const KEPT_TEXTS = 24;

function blockText(b) {
	if (!texts.has(b)) {
		texts.set(b, part('p', b, true).then(({text}) => text.split('\n')));
		if (texts.size > KEPT_TEXTS)
			texts.delete(texts.keys().next().value);
	}
	return texts.get(b);
}
function blockOf(i) {
	return upper(blockBegins, i, 0, blockBegins.length) - 1;
}
/* Returns a promise of the fields of a listed event, as text. */
async function fieldsOf(i) {
	const b = blockOf(i), lines = await blockText(b).catch(() => []); /* other parts may have come */
	return lines[i - blockBegins[b]] || '';
}

const trackName = t => {
	if (t.kind === 'cpu')
		return `CPU ${t.id}`;
	if (t.kind === 'counter')
		return t.name;
	if (t.kind === 'async')
		return 'asynchronous spans';
	if (t.kind === 'stream')
		return `stream ${t.id}`;
	return (t.name ? t.name + ' ' : 'thread ') + t.id;
};

async function loadEvents() {
	const n = head.blocks.length / 2, parts = [];
	blockBegins = new Float64Array(n);
	let total = 0;
	for (let b = 0; b < n; b++) {
		blockBegins[b] = total;
		total += COUNT(b);
		parts.push(part('e', b));
	}
	T = new Float64Array(total);
	C = new Uint32Array(total);
	K = new Uint32Array(total);
	for (let b = 0; b < n; b++) {
		const e = await parts[b];
		T.set(e.T, blockBegins[b]);
		C.set(e.C, blockBegins[b]);
		K.set(e.K, blockBegins[b]);
	}
	setEvents(null);
}
/*
 * The listed events that are shown: all, or those with a 1 in mask. Of each track, events are their
 * numbers, and times their times.
 */
function setEvents(mask) {
	const begins = new Uint32Array(tracks.length + 1);
	let n = 0;
	for (let i = 0; i < T.length; i++) {
		if (mask && !mask[i])
			continue;
		n++;
		begins[K[i] + 1]++;
	}
	for (let i = 1; i < begins.length; i++)
		begins[i] += begins[i - 1];
	const events = new Uint32Array(n), times = new Float64Array(n), put = begins.slice();
	passing = mask ? new Uint32Array(n) : null;
	for (let i = 0, k = 0; i < T.length; i++) {
		if (mask && !mask[i])
			continue;
		if (passing)
			passing[k++] = i;
		times[put[K[i]]] = T[i];
		events[put[K[i]]++] = i;
	}
	passingTimes = passing ? Float64Array.from(passing, i => T[i]) : T;
	tracks.forEach((t, i) => {
		t.events = events.subarray(begins[i], begins[i + 1]);
		t.times = times.subarray(begins[i], begins[i + 1]);
	});
}
async function loadTrack(t, i) {
	if (t.kind === 'counter')
		Object.assign(t, await part('c', i));
	else if (t.rows || t.states)
		t.slices = (await part('s', i)).rows;
	if (t.states)
		t.state = t.slices.shift();
	if (t.bins)
		t.bins = (await part('d', i)).bins;
	if (t.kind === 'counter')
		summarizeCounter(t);
}
/* The least and the greatest value of each 64, and of all. */
function summarizeCounter(t) {
	const n = t.V.length;
	t.lows = new Float64Array(Math.ceil(n / 64)).fill(Infinity);
	t.highs = new Float64Array(t.lows.length).fill(-Infinity);
	for (let i = 0; i < n; i++) {
		t.lows[i >> 6] = Math.min(t.lows[i >> 6], t.V[i]);
		t.highs[i >> 6] = Math.max(t.highs[i >> 6], t.V[i]);
	}
	t.least = t.lows.reduce((a, b) => Math.min(a, b), Infinity);
	t.greatest = t.highs.reduce((a, b) => Math.max(a, b), -Infinity);
}
/* Of each step of a flow, the step before it; -1: none. */
function linkFlows(columns) {
	const last = new Map(), before = new Int32Array(columns.T.length).fill(-1);
	for (let k = 0; k < before.length; k++) {
		if (!head.names[columns.name[k]].endsWith('_begin'))
			before[k] = last.get(columns.flow[k]) ?? -1;
		last.set(columns.flow[k], k);
	}
	flows = {...columns, before};
}
async function load() {
	head = JSON.parse($('head').textContent);
	span = Math.max(1, head.end, span || 0);
	flows = null;
	texts.clear();
	palette.length = 0;
	tracks = head.tracks.map((t, i) => ({...t, number: i, slices: [], events: [], times: [], folded: false}));
	hosts = new Set(head.tracks.map(t => t.host)).size;
	if (!workers.length)
		startWorkers();
	const loads = [loadEvents(), ...tracks.map(loadTrack)];
	if (head.flows)
		loads.push(part('f', 0).then(linkFlows));
	await Promise.all(loads);
	perf.load = performance.now() - started;
}

/* ---- searching in sorted columns ---- */

function lower(a, x, lo, hi) {
	while (lo < hi) {
		const m = (lo + hi) >>> 1;
		if (a[m] < x)
			lo = m + 1;
		else
			hi = m;
	}
	return lo;
}
function upper(a, x, lo, hi) {
	while (lo < hi) {
		const m = (lo + hi) >>> 1;
		if (a[m] <= x)
			lo = m + 1;
		else
			hi = m;
	}
	return lo;
}
/* lower() from a place that is probably near. */
function gallop(a, x, i, n) {
	let step = 1, lo = i;
	while (lo + step < n && a[lo + step] < x) {
		lo += step;
		step *= 2;
	}
	return lower(a, x, lo, Math.min(n, lo + step + 1));
}
