/* SPDX-License-Identifier: MIT */
/*
 * The page of `kymo report`: draws the columns that src/report/report.c wrote before this script.
 * docs/report.md describes them. Times are nanoseconds from the begin of the report.
 *
 * Nothing is prepared for levels of zoom. Slices of a row are sorted and do not overlap, so each
 * column of pixels finds its slices by binary search. Work is columns of pixels x log(slices).
 */
'use strict';
const $ = id => document.getElementById(id);
const started = performance.now();
const perf = window.kymoPerf = {};

/* ---- unpacking, in workers ---- */

/* The source of the workers; also run in the page where there are none. */
function unpacker() {
	let bytes, at;
	async function unpack(text) {
		const packed = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text)
			: await (await fetch('data:application/octet-stream;base64,' + text)).arrayBuffer();
		const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
		return new Uint8Array(await new Response(stream).arrayBuffer());
	}
	function number() {
		let v = 0, scale = 1, c;
		do {
			c = bytes[at++];
			v += (c & 127) * scale;
			scale *= 128;
		} while (c > 127);
		return v;
	}
	function countNumbers(begin, length) {
		let n = 0;
		for (let i = begin; i < begin + length; i++)
			n += bytes[i] < 128;
		return n;
	}
	/* Sums of durations, and the longest, of each 32, 1024, 32768 slices. */
	function summarize(row) {
		const {S, E} = row, n = S.length, sums = new Float64Array((n >> 5) + 2);
		const longest = [0, 5, 10].map(shift => new Uint32Array((n >> (5 + shift)) + 1));
		const length = i => E[i] - S[i];
		let sum = 0, best = 0;
		for (let i = 0; i < n; i++) {
			if (!(i & 31)) {
				sums[i >> 5] = sum;
				best = i;
			}
			sum += length(i);
			if (length(i) > length(best))
				best = i;
			longest[0][i >> 5] = best;
		}
		sums[(n >> 5) + 1] = sum;
		if (!(n & 31))
			sums[n >> 5] = sum;
		for (let level = 1; level < 3; level++) {
			for (let i = 0; i << 5 < n >> 5 * level || !i; i++) {
				best = longest[level - 1][i << 5] || 0;
				for (let k = i << 5; k < (i + 1) << 5 && k < longest[level - 1].length; k++)
					if (length(longest[level - 1][k]) > length(best))
						best = longest[level - 1][k];
				longest[level][i] = best;
			}
		}
		return {...row, sums, longest};
	}
	function slices() {
		const rows = [];
		for (let depth = number(); depth; depth--) {
			const n = number(), lengths = [number(), number(), number()];
			const S = new Float64Array(n), E = new Float64Array(n), N = new Uint32Array(n);
			let gaps = at, durations = gaps + lengths[0], t = 0;
			for (let i = 0; i < n; i++) {
				at = gaps;
				S[i] = t += number();
				gaps = at;
				at = durations;
				E[i] = t += number();
				durations = at;
			}
			at = durations;
			for (let i = 0; i < n; i++)
				N[i] = number();
			rows.push(summarize({S, E, N}));
		}
		return {rows};
	}
	function columns(n) {
		const lengths = [];
		for (let i = 0; i < n; i++)
			lengths.push(number());
		return lengths.map(length => {
			const column = new Float64Array(countNumbers(at, length));
			for (let i = 0; i < column.length; i++)
				column[i] = number();
			return column;
		});
	}
	function sum(column) {
		for (let i = 1; i < column.length; i++)
			column[i] += column[i - 1];
		return column;
	}
	const kinds = {
		e() {
			const [T, C, K] = columns(3);
			return {T: sum(T), C: Uint32Array.from(C), K: Uint32Array.from(K)};
		},
		s: slices,
		c() {
			const [T] = columns(1), n = T.length;
			return {T: sum(T), V: new Float64Array(bytes.slice(at, at + 8 * n).buffer)};
		},
		d() {
			const bins = new Float64Array(1024);
			for (let i = 0; i < bins.length; i++)
				bins[i] = number();
			return {bins};
		},
		f() {
			const [T, name, id, track] = columns(4);
			return {T: sum(T), name, id, track};
		},
		p: () => ({text: new TextDecoder().decode(bytes)}),
	};
	return async ({kind, text}) => {
		bytes = await unpack(text);
		at = 0;
		return kinds[kind]();
	};
}

function startWorkers() {
	const source = `const run = (${unpacker})(); onmessage = async m => {
		let result;
		try { result = await run(m.data) } catch (error) { result = {error: String(error)} }
		const buffers = [];
		const find = v => { if (ArrayBuffer.isView(v)) buffers.push(v.buffer);
			else if (v && typeof v === 'object') Object.values(v).forEach(find) };
		find(result);
		postMessage(result, [...new Set(buffers)]);
	};`;
	const n = Math.max(1, Math.min(8, navigator.hardwareConcurrency || 2));
	const url = URL.createObjectURL(new Blob([source]));
	for (let i = 0; i < n; i++) {
		const w = {worker: new Worker(url), done: null};
		w.worker.onmessage = m => {
			const done = w.done;
			w.done = null;
			pump();
			done(m.data);
		};
		workers.push(w);
	}
}

const workers = [], waiting = [];
function pump() {
	for (const w of workers) {
		const job = !w.done && waiting.shift();
		if (!job)
			continue;
		w.done = job.done;
		w.worker.postMessage({kind: job.kind, text: job.text()});
	}
}
/* Unpacks a part; returns a promise of its columns. Parts that are kept can be unpacked again. */
function part(kind, number, kept) {
	return new Promise((done, failed) => {
		waiting.push({kind, text() {
			const element = $(kind + number), text = element.textContent;
			if (!kept)
				element.remove();
			return text;
		}, done: r => r.error ? failed(new Error(r.error)) : done(r)});
		pump();
	});
}

/* ---- the trace ---- */

/* Of listed events: time, name, track. n blocks: numbers of their events. */
let head, T, C, K, tracks, span, flows = null;
const FIRST = i => head.blocks[2 * i], COUNT = i => head.blocks[2 * i + 1];
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
	const b = blockOf(i);
	return (await blockText(b))[i - blockBegins[b]] || '';
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
	/* The listed events of each track. */
	const begins = new Uint32Array(tracks.length + 1);
	for (let i = 0; i < total; i++)
		begins[K[i] + 1]++;
	for (let i = 1; i < begins.length; i++)
		begins[i] += begins[i - 1];
	const all = new Uint32Array(total), put = begins.slice();
	for (let i = 0; i < total; i++)
		all[put[K[i]]++] = i;
	tracks.forEach((t, i) => {
		t.events = all.subarray(begins[i], begins[i + 1]);
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
		for (const v of t.V) {
			t.least = Math.min(t.least ?? v, v);
			t.greatest = Math.max(t.greatest ?? v, v);
		}
}
async function load() {
	head = JSON.parse($('head').textContent);
	span = Math.max(1, head.end, span || 0);
	flows = null;
	texts.clear();
	palette.length = 0;
	tracks = head.tracks.map((t, i) => ({...t, number: i, slices: [], events: [], folded: false}));
	if (!workers.length)
		startWorkers();
	const loads = [loadEvents(), ...tracks.map(loadTrack)];
	if (head.flows)
		flows = await part('f', 0);
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
/* Of the events of a track: the first at or after t, from index i on. */
function lowerEvent(events, t, i) {
	let lo = i, hi = events.length;
	while (lo < hi) {
		const m = (lo + hi) >>> 1;
		if (T[events[m]] < t)
			lo = m + 1;
		else
			hi = m;
	}
	return lo;
}

/* ---- colours: by name, so that two pages agree; black text is readable on all ---- */

let dark, BG, LINE, DENSITY, STATE, css;
const palette = [];
const mix = (a, b, k) => a.map((x, i) => Math.round(x + (b[i] - x) * k));
const pack = c => (255 << 24 | c[2] << 16 | c[1] << 8 | c[0]) >>> 0;
function hsl(h, s, l) {
	const a = s * Math.min(l, 1 - l);
	return [0, 8, 4].map(n => {
		const k = (n + h / 30) % 12;
		return Math.round(255 * (l - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
	});
}
function colour(name) {
	if (!palette[name]) {
		let h = 2166136261;
		for (const ch of head.names[name] || '')
			h = Math.imul(h ^ ch.charCodeAt(0), 16777619);
		h >>>= 0;
		palette[name] = hsl(h % 360, .4 + (h >>> 9) % 30 / 100, .6 + (h >>> 15) % 18 / 100);
	}
	return palette[name];
}
function setTheme() {
	dark = matchMedia('(prefers-color-scheme:dark)').matches;
	BG = dark ? [20, 24, 29] : [255, 255, 255];
	LINE = dark ? [44, 51, 59] : [221, 226, 232];
	DENSITY = dark ? [96, 140, 190] : [112, 150, 200];
	const style = getComputedStyle(document.documentElement);
	css = Object.fromEntries(['fg', 'dim', 'bar', 'line', 'accent', 'bad'].map(n => [n, style.getPropertyValue('--' + n)]));
}
/* Colours of states differ in lightness too. */
const stateColours = {running: [60, 150, 80], ready: [230, 170, 60], waiting: [190, 200, 212], 'waiting for a device': [170, 90, 90]};

/* ---- the timeline ---- */

const canvas = $('canvas'), cx = canvas.getContext('2d', {alpha: false});
const LEFT = 210, TOP = 22, ROW = 15, TRACK = 20, STATE_ROW = 6, COUNTER = 30, MAX_ROWS = 32;
let W = 0, H = 0, image, pixels, layout = [], labels = [], scroll = 0;
let v0 = 0, v1 = 1;       /* times at the edges */
let range = null;         /* [from, to] that is selected */
let chosen = null;        /* {t, row, i}: the selected slice */
let chosenName = 0;

function resize() {
	const r = canvas.getBoundingClientRect();
	W = canvas.width = Math.max(LEFT + 50, Math.round(r.width));
	H = canvas.height = Math.max(50, Math.round(r.height));
	image = cx.createImageData(W, H);
	pixels = new Uint32Array(image.data.buffer);
}
const timeOfRows = t => t.slices.length ? t.slices[0].sums[t.slices[0].sums.length - 1] : 0;
const KINDS = ['cpu', 'counter', 'async', 'thread', 'stream'];
/* Processes by the time that their spans take, then by events; processors first. */
function sortTracks() {
	const of = new Map();
	for (const t of tracks) {
		const key = t.kind === 'cpu' ? ' ' + t.host : t.host + ' ' + t.pid;
		if (!of.has(key))
			of.set(key, {key, cpus: t.kind === 'cpu', pid: t.pid, host: t.host, name: '', tracks: [], time: 0, n: 0, folded: false});
		const p = of.get(key);
		p.tracks.push(t);
		p.time += timeOfRows(t);
		p.n += t.n;
		if (t.kind === 'thread' && (!p.name || t.id === t.pid))
			p.name = t.name || p.name;
	}
	const processes = [...of.values()].sort((a, b) => b.cpus - a.cpus || (b.pid >= 0) - (a.pid >= 0) || b.time - a.time || b.n - a.n || a.pid - b.pid);
	for (const p of processes)
		p.tracks.sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) || a.id - b.id);
	return processes;
}
let processes;
const processName = p => (p.cpus ? 'processors' : p.pid >= 0 ? `${p.name || 'process'} (${p.pid})` : 'no process known') +
	(new Set(tracks.map(t => t.host)).size > 1 ? ' on ' + p.host : '');
function place() {
	const wanted = $('rows').value.toLowerCase();
	let y = 0;
	layout = [];
	const add = (h, row) => {
		layout.push({y, h, ...row});
		y += h;
	};
	for (const p of processes) {
		const own = processName(p).toLowerCase().includes(wanted);
		const shown = p.tracks.filter(t => own || trackName(t).toLowerCase().includes(wanted));
		if (!shown.length)
			continue;
		add(TRACK, {kind: 'process', p});
		if (p.folded)
			continue;
		for (const t of shown) {
			if (t.kind === 'counter') {
				add(COUNTER, {kind: 'counter', t});
				continue;
			}
			add(TRACK, {kind: 'track', t});
			if (t.state)
				add(STATE_ROW, {kind: 'state', t});
			for (let d = 0; !t.folded && d < Math.min(t.slices.length, t.all ? 1e9 : MAX_ROWS); d++)
				add(ROW, {kind: 'slices', t, d, row: t.slices[d]});
		}
	}
	layout.height = y;
	scroll = Math.max(0, Math.min(scroll, y - H + TOP));
}
function fill(x0, x1, y, h, c) {
	const end = Math.min(H, y + h);
	if (x1 > x0)
		for (let r = Math.max(TOP, y); r < end; r++)
			pixels.fill(c, r * W + x0, r * W + x1);
}
/* How much of a time slices i to j fill. Of many, whole groups of 32 stand for all. */
function busy(row, i, j) {
	if (j - i > 256) {
		const a = (i + 31) >> 5, b = j >> 5;
		return (row.sums[b] - row.sums[a]) * (j - i) / ((b - a) * 32);
	}
	let sum = 0;
	for (; i < j; i++)
		sum += row.E[i] - row.S[i];
	return sum;
}
function longest(row, i, j) {
	const length = k => row.E[k] - row.S[k];
	let best = i, level = -1;
	const look = k => {
		const s = level < 0 ? k : row.longest[level][k];
		if (length(s) > length(best))
			best = s;
	};
	for (;;) {
		if (level === 2 || j - i < 64) {
			for (; i < j; i++)
				look(i);
			return best;
		}
		while (i & 31)
			look(i++);
		while (j & 31)
			look(--j);
		i >>= 5;
		j >>= 5;
		level++;
	}
}
function sliceColour(name) {
	const c = colour(name >> 2);
	return chosenName && name >> 2 !== chosenName ? mix(BG, c, .3) : c;
}
/* A slice that is wide enough to be seen. Cut ones fade, merged ones are striped. */
function drawSlice(row, i, y, h, x0, x1, colourOf) {
	const name = row.N[i], a = Math.max(LEFT, LEFT + Math.floor(x0));
	const b = Math.min(W, LEFT + Math.max(Math.floor(x1), Math.floor(x0) + 1));
	const c = colourOf(name), plain = pack(name & 1 ? mix(BG, c, .45) : c);
	fill(a, b, y + 1, h - 2, plain);
	if (name & 2)
		for (let x = a; x < b; x += 4)
			fill(x, x + 1, y + 1, h - 2, pack(BG));
	if (b - a > 3)
		fill(b - 1, b, y + 1, h - 2, pack(mix(c, BG, .5)));
	if (b - a > 34 && h === ROW)
		labels.push(name, a, b, y);
}
function drawRow(row, y, h, colourOf) {
	const {S, E, N} = row, n = S.length, step = (v1 - v0) / (W - LEFT);
	let i = lower(E, v0, 0, n);
	while (i < n && S[i] < v1) {
		const x0 = (S[i] - v0) / step, x1 = (E[i] - v0) / step;
		if (x1 - x0 >= 1) {
			drawSlice(row, i++, y, h, x0, x1, colourOf);
			continue;
		}
		const x = Math.floor(x0), end = v0 + (x + 1) * step;
		let j = Math.max(i + 1, gallop(S, end, i, n));
		if (j - 1 > i && E[j - 1] - S[j - 1] >= step)
			j--; /* begins among narrow ones, and is wide itself */
		if (x >= 0 && LEFT + x < W) {
			const c = colourOf(N[longest(row, i, j)]);
			fill(LEFT + x, LEFT + x + 1, y + 1, h - 2, pack(mix(BG, c, Math.max(.35, Math.min(1, busy(row, i, j) / step)))));
		}
		i = j;
	}
}
const heights = new Float32Array(16384);
function countColumns(t) {
	const w = W - LEFT, step = (v1 - v0) / w;
	let most = 0, i = 0;
	if (!t.bins)
		i = lowerEvent(t.events, v0, 0);
	for (let x = 0; x < w; x++) {
		if (t.bins) {
			const width = (head.end - head.from + 1) / t.bins.length;
			heights[x] = (t.bins[Math.floor((v0 + (x + .5) * step - head.from) / width)] || 0) * step / width;
		} else {
			const j = i < t.events.length ? gallopEvents(t.events, v0 + (x + 1) * step, i) : i;
			heights[x] = j - i;
			i = j;
		}
		most = Math.max(most, heights[x]);
	}
	return most;
}
function gallopEvents(events, t, i) {
	let step = 1, lo = i;
	while (lo + step < events.length && T[events[lo + step]] < t) {
		lo += step;
		step *= 2;
	}
	let hi = Math.min(events.length, lo + step + 1);
	while (lo < hi) {
		const m = (lo + hi) >>> 1;
		if (T[events[m]] < t)
			lo = m + 1;
		else
			hi = m;
	}
	return lo;
}
/* The number of events in each column of pixels, on a logarithmic scale. */
function drawDensity(t, y, h) {
	const most = countColumns(t), c = pack(DENSITY);
	if (!most)
		return;
	const scale = (h - 4) / Math.log1p(most);
	for (let x = 0; x < W - LEFT; x++) {
		if (!heights[x])
			continue;
		const top = y + h - 2 - Math.max(2, Math.log1p(heights[x]) * scale | 0);
		for (let r = Math.max(TOP, top); r < Math.min(H, y + h - 2); r++)
			pixels[r * W + LEFT + x] = c;
	}
}
/* A curve of steps: the least and the greatest value of each column of pixels. */
function drawCounter(t, y, h) {
	const step = (v1 - v0) / (W - LEFT), c = pack(DENSITY), height = t.greatest - t.least || 1;
	const place = v => y + h - 3 - Math.round((v - t.least) / height * (h - 6));
	let i = Math.max(0, upper(t.T, v0, 0, t.T.length) - 1);
	for (let x = 0; x < W - LEFT; x++) {
		const from = v0 + x * step;
		if (from + step < t.T[0])
			continue;
		let low = t.V[i], high = t.V[i];
		while (i + 1 < t.T.length && t.T[i + 1] < from + step) {
			i++;
			low = Math.min(low, t.V[i]);
			high = Math.max(high, t.V[i]);
		}
		fill(LEFT + x, LEFT + x + 1, place(high), place(low) - place(high) + 2, c);
	}
}
const UNITS = [['ns', 1], ['µs', 1e3], ['ms', 1e6], ['s', 1e9]];
function duration(ns) {
	let unit = UNITS[0];
	for (const u of UNITS)
		if (Math.abs(ns) >= u[1])
			unit = u;
	const v = ns / unit[1];
	return (unit[1] === 1 ? v.toFixed(0) : v >= 1000 ? v.toFixed(1) : v.toPrecision(4)) + ' ' + unit[0];
}
function tick(ns, step) {
	let unit = UNITS[0];
	for (const u of UNITS)
		if (Math.abs(ns) >= u[1])
			unit = u;
	return (ns / unit[1]).toFixed(Math.max(0, Math.ceil(Math.log10(unit[1] / step)))) + ' ' + unit[0];
}
const xOf = t => LEFT + (t - v0) / (v1 - v0) * (W - LEFT);
const timeAt = x => v0 + (x - LEFT) / (W - LEFT) * (v1 - v0);
const visible = r => r.y - scroll + r.h > 0 && TOP + r.y - scroll < H;

function drawPixels() {
	pixels.fill(pack(BG));
	labels = [];
	for (const r of layout) {
		if (!visible(r))
			continue;
		const y = TOP + r.y - scroll;
		if (r.kind === 'process')
			fill(0, W, y, 1, pack(LINE));
		else if (r.kind === 'counter')
			drawCounter(r.t, y, r.h);
		else if (r.kind === 'track')
			drawDensity(r.t, y, r.h);
		else if (r.kind === 'state')
			drawRow(r.t.state, y, r.h, name => stateColours[head.names[name >> 2]] || LINE);
		else
			drawRow(r.row, y, r.h, sliceColour);
	}
	cx.putImageData(image, 0, 0);
}
function clipped(text, room) {
	return text.length * 6.2 > room ? text.slice(0, Math.max(0, Math.floor(room / 6.2))) : text;
}
function drawTexts() {
	cx.font = '11px system-ui';
	cx.textBaseline = 'middle';
	cx.textAlign = 'left';
	cx.fillStyle = '#10161d';
	for (let i = 0; i < labels.length; i += 4) {
		const room = labels[i + 2] - labels[i + 1] - 6;
		cx.fillText(clipped(head.names[labels[i] >> 2], room), labels[i + 1] + 3, labels[i + 3] + ROW / 2 + 1);
	}
	for (const r of layout) {
		if (!visible(r) || r.kind === 'slices' || r.kind === 'state')
			continue;
		const y = TOP + r.y - scroll + r.h / 2, isProcess = r.kind === 'process';
		cx.font = isProcess ? 'bold 11px system-ui' : '11px system-ui';
		cx.fillStyle = css.fg;
		const name = isProcess ? (r.p.folded ? '▸ ' : '▾ ') + processName(r.p) : trackName(r.t);
		cx.fillText(clipped(name, LEFT - 70), isProcess ? 4 : 16, y);
		cx.fillStyle = css.dim;
		cx.textAlign = 'right';
		const right = r.kind === 'counter' ? `${r.t.least} … ${r.t.greatest}` : isProcess ? '' : r.t.n.toLocaleString('en');
		cx.fillText(right, LEFT - 6, y);
		cx.textAlign = 'left';
	}
}
function drawScale() {
	cx.fillStyle = css.bar;
	cx.fillRect(0, 0, W, TOP);
	cx.font = '11px system-ui';
	cx.fillStyle = css.dim;
	cx.fillText(clipped(`+${duration(v0)}, ${duration(v1 - v0)} shown`, LEFT - 6), 6, TOP / 2);
	const wanted = (v1 - v0) / (W - LEFT) * 110;
	let step = Math.pow(10, Math.floor(Math.log10(wanted)));
	step *= wanted / step > 5 ? 10 : wanted / step > 2 ? 5 : wanted / step > 1 ? 2 : 1;
	step = Math.max(1, step);
	cx.strokeStyle = '#8883';
	cx.beginPath();
	for (let t = Math.ceil(v0 / step) * step; t < v1; t += step) {
		const x = Math.round(xOf(t)) + .5;
		cx.moveTo(x, TOP);
		cx.lineTo(x, H);
		cx.fillText(tick(t, step), x + 3, TOP / 2);
	}
	cx.stroke();
}
let hatching;
function hatch() {
	if (!hatching) {
		const c = document.createElement('canvas'), g = c.getContext('2d');
		c.width = c.height = 8;
		g.strokeStyle = css.bad;
		g.globalAlpha = .5;
		g.lineWidth = 1.5;
		g.beginPath();
		for (const d of [-8, 0, 8]) {
			g.moveTo(d, 8);
			g.lineTo(d + 8, 0);
		}
		g.stroke();
		hatching = cx.createPattern(c, 'repeat');
	}
	return hatching;
}
/* Where events are missing: across the rows that they may have belonged to. */
function drawLosses() {
	for (const [from, to, , track] of head.losses) {
		if (to < v0 || from > v1)
			continue;
		const a = Math.max(LEFT, xOf(from)), width = Math.max(2, Math.min(W, xOf(to)) - a);
		cx.fillStyle = css.bad;
		cx.fillRect(a, TOP - 4, width, 4);
		cx.fillStyle = hatch();
		for (const r of layout)
			if (visible(r) && (track < 0 ? r.kind !== 'process' : r.t && r.t.number === track))
				cx.fillRect(a, Math.max(TOP, TOP + r.y - scroll), width, r.h);
	}
	if (head.complete > v0) {
		cx.fillStyle = hatch();
		cx.fillRect(LEFT, TOP, Math.max(0, Math.min(W, xOf(head.complete)) - LEFT), H);
	}
}
function drawSelection() {
	if (range) {
		const a = xOf(range[0]), b = xOf(range[1]);
		cx.fillStyle = css.accent;
		cx.globalAlpha = .14;
		cx.fillRect(Math.max(LEFT, a), TOP, b - Math.max(LEFT, a), H);
		cx.globalAlpha = 1;
		cx.fillText(duration(range[1] - range[0]), Math.max(LEFT, a) + 4, TOP + 8);
	}
	const r = chosen && layout.find(l => l.row === chosen.row);
	if (!r)
		return;
	const a = Math.max(LEFT, xOf(chosen.row.S[chosen.i])), b = Math.max(a + 2, Math.min(W, xOf(chosen.row.E[chosen.i])));
	cx.strokeStyle = css.fg;
	cx.lineWidth = 2;
	cx.strokeRect(a, TOP + r.y - scroll, b - a, r.h);
	cx.lineWidth = 1;
	drawFlows();
}
/* Arrows of the flows that pass through the selected slice. */
function drawFlows() {
	if (!flows)
		return;
	const {t, row, i} = chosen, stem = k => head.names[flows.name[k]].replace(/_(begin|step|end)$/, '');
	const through = new Set();
	for (let k = lower(flows.T, row.S[i], 0, flows.T.length); k < flows.T.length && flows.T[k] <= row.E[i]; k++)
		if (flows.track[k] === t.number)
			through.add(stem(k) + ' ' + flows.id[k]);
	const last = new Map();
	cx.strokeStyle = cx.fillStyle = css.accent;
	for (let k = 0; through.size && k < flows.T.length; k++) {
		const key = stem(k) + ' ' + flows.id[k];
		if (!through.has(key))
			continue;
		const at = layout.find(l => l.kind === 'track' && l.t.number === flows.track[k]);
		const x = xOf(flows.T[k]), y = at ? TOP + at.y - scroll + TRACK / 2 : TOP, from = last.get(key);
		if (from && head.names[flows.name[k]].endsWith('_begin') === false) {
			cx.beginPath();
			cx.moveTo(from[0], from[1]);
			cx.bezierCurveTo((from[0] + x) / 2, from[1], (from[0] + x) / 2, y, x, y);
			cx.stroke();
			cx.beginPath();
			cx.moveTo(x, y);
			cx.lineTo(x - 7, y - 3);
			cx.lineTo(x - 7, y + 3);
			cx.fill();
		}
		last.set(key, [x, y]);
	}
}
function draw() {
	const begin = performance.now();
	drawPixels();
	drawTexts();
	drawScale();
	drawLosses();
	drawSelection();
	perf.frame = performance.now() - begin;
}
let drawing = false;
function redraw() {
	if (drawing)
		return;
	drawing = true;
	requestAnimationFrame(() => {
		drawing = false;
		draw();
	});
}

/* ---- the view and what is selected ---- */

const date = t => new Date(Number((BigInt(head.begin) + BigInt(Math.round(t))) / 1000000n)).toISOString();
let settled;
function show(a, b) {
	const d = Math.max(20, Math.min(span * 1.1, b - a)), m = (a + b) / 2;
	v0 = Math.max(-span * .05, Math.min(span * 1.05 - d, m - d / 2));
	v1 = v0 + d;
	redraw();
	clearTimeout(settled);
	settled = setTimeout(settle, 150);
	pauseFollowing();
}
/* Once the view stays: link, table, events. */
function settle() {
	const parts = [`t=${Math.round(v0)},${Math.round(v1)}`];
	if (range)
		parts.push(`r=${Math.round(range[0])},${Math.round(range[1])}`);
	if (chosen)
		parts.push(`s=${chosen.t.number},${chosen.t.slices.indexOf(chosen.row)},${chosen.i}`);
	else if (chosenName)
		parts.push('n=' + encodeURIComponent(head.names[chosenName]));
	try {
		history.replaceState(null, '', '#' + parts.join('&'));
	} catch {
		/* some browsers refuse this for files */
	}
	fetchIfNeeded();
	canvas.setAttribute('aria-label', `timeline from +${duration(v0)}, ${duration(v1 - v0)} shown, ${layout.length} rows`);
	update();
}
function restore() {
	const given = new URLSearchParams(location.hash.slice(1)), numbers = k => (given.get(k) || '').split(',').map(Number);
	if (given.has('t') && numbers('t').every(Number.isFinite))
		[v0, v1] = numbers('t');
	if (given.has('r') && numbers('r').every(Number.isFinite))
		range = numbers('r');
	const [t, d, i] = numbers('s');
	if (given.has('s') && tracks[t]?.slices[d]?.S.length > i)
		chosen = {t: tracks[t], row: tracks[t].slices[d], i};
	chosenName = chosen ? chosen.row.N[chosen.i] >> 2 : Math.max(0, head.names.indexOf(given.get('n') || ''));
}
const selected = () => range || [v0, v1];
const isCounted = t => t.kind === 'thread' || t.kind === 'async' || t.kind === 'stream';

/* Sums over the slices of a range, by name. Slices whose begin or end is missing are left out. */
function measure(from, to) {
	const by = new Map();
	for (const t of tracks) {
		if (!isCounted(t))
			continue;
		t.slices.forEach((row, d) => {
			const {S, E, N} = row, inner = t.kind === 'async' ? null : t.slices[d + 1];
			let k = inner ? lower(inner.E, from, 0, inner.E.length) : 0;
			for (let i = lower(E, from, 0, S.length); i < S.length && S[i] < to; i++) {
				if (N[i] & 1)
					continue;
				let e = by.get(N[i] >> 2);
				if (!e)
					by.set(N[i] >> 2, e = {name: N[i] >> 2, n: 0, total: 0, self: 0, durations: []});
				const length = Math.min(to, E[i]) - Math.max(from, S[i]);
				e.n++;
				e.total += length;
				e.self += length;
				e.durations.push(length);
				while (inner && k < inner.S.length && inner.E[k] <= S[i])
					k++;
				for (; inner && k < inner.S.length && inner.S[k] < E[i]; k++) {
					e.self -= Math.max(0, Math.min(to, E[i], inner.E[k]) - Math.max(from, S[i], inner.S[k]));
					if (inner.E[k] > E[i])
						break;
				}
			}
		});
	}
	return [...by.values()].map(e => {
		const d = Float64Array.from(e.durations).sort(), q = p => d[Math.max(0, Math.ceil(p * d.length) - 1)];
		return {name: e.name, text: head.names[e.name], count: e.n, total: e.total, self: e.self, mean: e.total / e.n,
			min: d[0], median: q(.5), p99: q(.99), max: d[d.length - 1], durations: d};
	});
}
const COLUMNS = [['span', 'text'], ['count', 'count'], ['total', 'total'], ['self', 'self'], ['mean', 'mean'], ['min', 'min'],
	['median', 'median'], ['99 %', 'p99'], ['max', 'max']];
let sorting = 'total', measured = [];
const element = (name, text, parent) => {
	const e = document.createElement(name);
	if (text !== undefined)
		e.textContent = text;
	parent?.append(e);
	return e;
};
function showTable() {
	const table = $('spans').querySelector('table'), line = document.createElement('tr'), body = table.tBodies[0];
	for (const [title, key] of COLUMNS) {
		const th = element('th', title + (key === sorting ? ' ▾' : ''), line);
		th.onclick = () => {
			sorting = key;
			showTable();
		};
	}
	table.tHead.replaceChildren(line);
	measured.sort((a, b) => sorting === 'text' ? a.text.localeCompare(b.text) : b[sorting] - a[sorting]);
	body.replaceChildren(...measured.slice(0, 300).map(m => {
		const tr = document.createElement('tr');
		for (const [, key] of COLUMNS) {
			const text = key === 'text' ? m.text : key === 'count' ? m.count.toLocaleString('en') : duration(m[key]);
			element('td', text, tr).title = key === 'text' ? m.text : typeof m[key] === 'number' && key !== 'count' ? `${Math.round(m[key])} ns` : '';
		}
		tr.className = m.name === chosenName ? 'on' : '';
		tr.tabIndex = 0;
		tr.onclick = () => chooseName(m.name === chosenName ? 0 : m.name);
		return tr;
	}));
	showBars(measured.find(m => m.name === chosenName) || measured[0]);
}
/* A histogram of durations; a bar leads to the slices behind it. */
function showBars(m) {
	const place = $('bars'), N_BARS = 40, NS = 'http://www.w3.org/2000/svg';
	place.replaceChildren();
	if (!m)
		return;
	const lo = Math.log2(Math.max(1, m.min)), hi = Math.max(lo + .01, Math.log2(Math.max(1, m.max)));
	const bars = Array.from({length: N_BARS}, () => 0);
	for (const d of m.durations)
		bars[Math.min(N_BARS - 1, Math.floor((Math.log2(Math.max(1, d)) - lo) / (hi - lo) * N_BARS))]++;
	const most = Math.max(...bars), make = (name, attributes, parent) => {
		const e = document.createElementNS(NS, name);
		for (const [k, v] of Object.entries(attributes))
			e.setAttribute(k, v);
		parent.append(e);
		return e;
	};
	element('h2', `durations of ${m.text}: click a bar for its slices`, place);
	const svg = make('svg', {viewBox: '0 0 480 84', width: '100%', height: 96, role: 'img', 'aria-label': `histogram of ${m.text}`}, place);
	const edge = i => Math.pow(2, lo + (hi - lo) * i / N_BARS);
	bars.forEach((n, i) => {
		if (!n)
			return;
		const h = Math.max(2, 62 * Math.log1p(n) / Math.log1p(most));
		const rect = make('rect', {x: i * 12, y: 66 - h, width: 11, height: h, fill: `rgb(${colour(m.name)})`, 'data-n': n}, svg);
		make('title', {}, rect).textContent = `${duration(edge(i))} to ${duration(edge(i + 1))}: ${n}`;
		rect.onclick = () => chooseWithin(m.name, edge(i), edge(i + 1));
	});
	for (const f of [0, .25, .5, .75, 1]) {
		const text = make('text', {x: Math.min(430, f * 480), y: 80, 'font-size': 10, fill: 'currentColor'}, svg);
		text.textContent = duration(edge(f * N_BARS));
	}
}
/* Stacks of slices with the same names, summed up. mirror: from the innermost outwards. */
function stacks(from, to, mirror) {
	const root = {children: new Map(), sum: 0}, MAX = 3e6;
	let n = 0;
	const into = (node, name, length) => {
		let child = node.children.get(name);
		if (!child)
			node.children.set(name, child = {children: new Map(), sum: 0});
		child.sum += length;
		return child;
	};
	const walk = (t, at, d, lo, hi, node, path) => {
		const row = t.slices[d];
		if (!row)
			return 0;
		let i = at[d], covered = 0;
		while (i < row.S.length && row.E[i] <= lo)
			i++;
		for (; i < row.S.length && row.S[i] < hi && n < MAX; i++) {
			const a = Math.max(lo, row.S[i]), b = Math.min(hi, row.E[i]), name = row.N[i] >> 2;
			n++;
			covered += b - a;
			at[d] = i;
			const here = mirror ? node : into(node, name, b - a);
			path.push(name);
			const inner = walk(t, at, d + 1, a, b, here, path);
			if (mirror) {
				let m = root;
				for (let k = path.length - 1; k >= 0; k--)
					m = into(m, path[k], b - a - inner);
			}
			path.pop();
			if (row.E[i] > hi)
				break;
		}
		at[d] = i;
		return covered;
	};
	for (const t of tracks)
		if (t.kind === 'thread' || t.kind === 'stream')
			root.sum += walk(t, t.slices.map(row => lower(row.E, from, 0, row.E.length)), 0, from, to, root, []);
	root.complete = n < MAX;
	return root;
}
let flameBoxes = [];
function showFlame() {
	const begin = performance.now(), c = $('flame'), r = c.parentElement.getBoundingClientRect(), g = c.getContext('2d');
	const root = stacks(...selected(), $('mirror').getAttribute('aria-pressed') === 'true');
	c.width = r.width;
	c.height = r.height;
	g.font = '11px system-ui';
	g.textBaseline = 'middle';
	flameBoxes = [];
	const put = (node, x, w, y) => {
		for (const [name, child] of [...node.children].sort((a, b) => b[1].sum - a[1].sum)) {
			const width = w * child.sum / (node === root ? root.sum || 1 : node.sum || 1);
			if (width >= .5 && y < c.height) {
				g.fillStyle = `rgb(${chosenName && name !== chosenName ? mix(BG, colour(name), .4) : colour(name)})`;
				g.fillRect(x, y, Math.max(.5, width - 1), 15);
				flameBoxes.push({x, y, w: width, name, sum: child.sum, share: child.sum / (root.sum || 1)});
				if (width > 30) {
					g.fillStyle = '#10161d';
					g.fillText(clipped(head.names[name], width - 6), x + 3, y + 8);
				}
				put(child, x, width, y + 16);
			}
			x += width;
		}
	};
	put(root, 0, c.width, 0);
	c.setAttribute('aria-label', `flame graph, ${duration(root.sum)} in all` + (root.complete ? '' : ', of the first 3,000,000 slices'));
	perf.flame = performance.now() - begin;
}

/* ---- events as text ---- */

/* The filter: patterns of names, and behind "if" conditions on fields. null: all. */
let filter = null;
function parseFilter(text) {
	const [, patterns, condition] = /^\s*(.*?)(?:\s*\bif\b\s*(.*))?$/.exec(text);
	const names = patterns.split(',').map(p => p.trim()).filter(Boolean);
	const matcher = p => new RegExp('^' + p.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replace(/\*/g, '.*') + '$');
	const wanted = names.filter(p => p[0] !== '!').map(matcher), unwanted = names.filter(p => p[0] === '!').map(p => matcher(p.slice(1)));
	if (!names.length && !condition)
		return null;
	const passes = head.names.map(n => (!wanted.length || wanted.some(m => m.test(n))) && !unwanted.some(m => m.test(n)));
	return {passes, condition: condition ? parseCondition(condition) : null};
}
/* FIELD OP VALUE, joined by && and ||; && binds more closely, as in the rules of events. */
function parseCondition(text) {
	const any = text.split('||').map(all => all.split('&&').map(one => {
		const m = /^\s*([\w.$[\]]+)\s*(==|!=|<=|>=|<|>)\s*("(?:[^"\\]|\\.)*"|[-+.\w]+)\s*$/.exec(one);
		if (!m)
			throw new Error(`'${one.trim()}' is no condition: write FIELD > VALUE`);
		return {field: m[1].replace(/^\$ctx\./, ''), op: m[2], value: m[3][0] === '"' ? JSON.parse(m[3]) : Number(m[3])};
	}));
	const ops = {'==': (a, b) => a === b, '!=': (a, b) => a !== b, '<': (a, b) => a < b, '>': (a, b) => a > b, '<=': (a, b) => a <= b, '>=': (a, b) => a >= b};
	return fields => any.some(all => all.every(({field, op, value}) => {
		const escaped = field.replace(/[.$[\]]/g, '\\$&');
		const m = new RegExp(`(?:^|[{,] )${escaped} = (?:\\( )?("(?:[^"\\\\]|\\\\.)*"|[-+.\\w]+)(?: : container = ([-+\\w]+) \\))?`).exec(fields);
		if (!m)
			return false;
		const isText = typeof value === 'string';
		const got = isText ? m[1].replace(/^"|"$/g, '') : Number(m[2] ?? m[1]);
		return (isText || !Number.isNaN(got)) && ops[op](got, value);
	}));
}
async function passes(i) {
	return !filter || (filter.passes[C[i]] && (!filter.condition || filter.condition(await fieldsOf(i))));
}
let listing = 0, listed = [];
async function showEvents(mark) {
	const turn = ++listing, [from, to] = selected(), lines = [], LINES = 200, LOOKED_AT = 300000;
	let i = mark !== undefined ? Math.max(0, mark - 6) : lower(T, from, 0, T.length), looked = 0;
	const begin = i;
	for (; i < T.length && lines.length < LINES && (mark !== undefined || T[i] <= to) && looked < LOOKED_AT; i++, looked++) {
		if (!(mark !== undefined && i === mark) && !(await passes(i)))
			continue;
		lines.push({i, text: `+${(T[i] / 1e9).toFixed(9)} ${head.names[C[i]]}: ${await fieldsOf(i)}`});
		if (turn !== listing)
			return;
	}
	if (turn !== listing)
		return;
	listed = lines;
	$('events-title').textContent = lines.length ? `events from +${duration(T[begin])}` + (filter ? ', filtered' : '') : 'no event here' + (filter ? ' passes the filter' : '');
	$('list').replaceChildren(...lines.map(l => {
		const div = element('div', l.text);
		div.className = l.i === mark ? 'hit' : '';
		div.onclick = () => {
			const d = (v1 - v0) / 2;
			show(T[l.i] - d, T[l.i] + d);
		};
		return div;
	}));
}
let found = -1;
/* Looks in the text and the names of events, from the last place on, once around. */
async function search(text) {
	const begin = performance.now(), n = blockBegins.length, low = text.toLowerCase();
	const first = n ? blockOf(Math.max(0, Math.min(found + 1, T.length - 1))) : 0;
	for (let k = 0; k <= n && text; k++) {
		const b = (first + k) % n;
		for (let ahead = 1; ahead <= workers.length; ahead++)
			blockText((b + ahead) % n);
		const lines = await blockText(b);
		for (let j = k ? 0 : Math.max(0, found + 1 - blockBegins[b]); j < COUNT(b); j++) {
			const i = blockBegins[b] + j;
			if (!lines[j].toLowerCase().includes(low) && !head.names[C[i]].toLowerCase().includes(low))
				continue;
			found = i;
			perf.search = performance.now() - begin;
			const d = (v1 - v0) / 2;
			show(T[i] - d, T[i] + d);
			clearTimeout(settled);
			await showEvents(i);
			return i;
		}
	}
	perf.search = performance.now() - begin;
	note(`'${text}' is in no listed event`);
	return -1;
}
let noteTimer;
function note(text) {
	$('position').textContent = text;
	clearTimeout(noteTimer);
	noteTimer = setTimeout(() => { $('position').textContent = ''; }, 5000);
}

/* Table, flame graph and events of what is selected. */
function update() {
	const begin = performance.now(), [from, to] = selected();
	measured = measure(from, to);
	$('spans-title').textContent = `${range ? 'selected' : 'shown'}: ${duration(to - from)}, ${measured.reduce((n, m) => n + m.count, 0).toLocaleString('en')} slices`;
	showTable();
	perf.table = performance.now() - begin;
	showFlame();
	showEvents();
}

/* ---- choosing slices ---- */

function chooseName(name) {
	chosenName = name;
	chosen = null;
	redraw();
	settle();
}
function choose(t, row, i) {
	chosen = {t, row, i};
	chosenName = row.N[i] >> 2;
	const r = layout.find(l => l.row === row);
	if (r && (r.y < scroll || r.y + r.h > scroll + H - TOP))
		scroll = Math.max(0, Math.min(r.y - H / 2, layout.height - H + TOP));
	const d = v1 - v0, m = (row.S[i] + row.E[i]) / 2;
	if (row.E[i] < v0 || row.S[i] > v1)
		show(m - d / 2, m + d / 2);
	redraw();
	settle();
}
function fit() {
	const [a, b] = chosen ? [chosen.row.S[chosen.i], chosen.row.E[chosen.i]] : range || [0, span];
	show(a - (b - a) * .1, b + (b - a) * .1);
}
/* Calls back with each slice of a name in a range, in no order. */
function eachSlice(name, callback) {
	for (const t of tracks)
		if (isCounted(t))
			for (const row of t.slices)
				for (let i = 0; i < row.N.length; i++)
					if (row.N[i] >> 2 === name)
						callback(t, row, i);
}
function chooseBest(better) {
	let best = null;
	eachSlice(chosenName, (t, row, i) => {
		const score = better(row.S[i], row.E[i], row.N[i]);
		if (score !== null && (!best || score > best.score))
			best = {t, row, i, score};
	});
	if (best) {
		const length = best.row.E[best.i] - best.row.S[best.i];
		if (length < (v1 - v0) / 1000)
			show(best.row.S[best.i] - length * 5, best.row.E[best.i] + length * 5);
		choose(best.t, best.row, best.i);
	}
}
const chosenBegin = () => chosen ? chosen.row.S[chosen.i] : v0;
const chooseNext = () => chooseBest((s, e) => s > chosenBegin() ? -s : null);
const choosePrevious = () => chooseBest((s, e) => s < chosenBegin() ? s : null);
const chooseLongest = () => chooseBest((s, e, n) => n & 1 ? null : e - s);
function chooseWithin(name, from, to) {
	chosenName = name;
	chooseBest((s, e) => e - s >= from * .999 && e - s <= to * 1.001 ? e - s : null);
}

/* ---- mouse, fingers, keys ---- */

function rowAt(y) {
	return layout.find(r => y - TOP + scroll >= r.y && y - TOP + scroll < r.y + r.h);
}
function sliceAt(x, y) {
	const r = y > TOP && x > LEFT ? rowAt(y) : null, row = r && (r.row || (r.kind === 'state' && r.t.state));
	if (!row)
		return null;
	/* The slice at the time itself, else one within two pixels. */
	const t = timeAt(x), close = (v1 - v0) / (W - LEFT) * 2, n = row.S.length;
	for (const d of [0, close]) {
		const i = lower(row.E, t - d, 0, n);
		if (i < n && row.S[i] <= t + d)
			return {t: r.t, row, i};
	}
	return null;
}
const fingers = new Map();
let drag = null;
canvas.onpointerdown = e => {
	canvas.focus();
	canvas.setPointerCapture(e.pointerId);
	fingers.set(e.pointerId, e.offsetX);
	drag = {x: e.offsetX, y: e.offsetY, v0, v1, scroll, selects: e.shiftKey, moved: false, two: fingers.size > 1};
	if (fingers.size === 2) {
		const [a, b] = [...fingers.values()];
		drag.times = [timeAt(a), timeAt(b)];
	}
};
canvas.onpointermove = e => {
	if (fingers.has(e.pointerId))
		fingers.set(e.pointerId, e.offsetX);
	if (drag && fingers.size === 2 && drag.times) {
		const [a, b] = [...fingers.values()], step = (drag.times[1] - drag.times[0]) / (b - a || 1);
		const begin = drag.times[0] - (a - LEFT) * step;
		if (step > 0)
			show(begin, begin + step * (W - LEFT));
		return;
	}
	if (drag) {
		drag.moved = drag.moved || Math.abs(e.offsetX - drag.x) + Math.abs(e.offsetY - drag.y) > 3;
		if (drag.selects) {
			range = [timeAt(drag.x), timeAt(e.offsetX)].sort((a, b) => a - b);
			redraw();
		} else if (drag.moved) {
			const d = (drag.x - e.offsetX) / (W - LEFT) * (drag.v1 - drag.v0);
			scroll = Math.max(0, Math.min(Math.max(0, layout.height - H + TOP), drag.scroll + drag.y - e.offsetY));
			show(drag.v0 + d, drag.v1 + d);
		}
		return;
	}
	showTip(e.offsetX, e.offsetY);
};
canvas.onpointerup = canvas.onpointercancel = e => {
	fingers.delete(e.pointerId);
	if (drag && !drag.moved && e.type === 'pointerup')
		click(e.offsetX, e.offsetY);
	else if (drag?.selects)
		settle();
	if (!fingers.size)
		drag = null;
};
function click(x, y) {
	const r = rowAt(y), s = sliceAt(x, y);
	range = null;
	if (x < LEFT && r?.kind === 'process')
		r.p.folded = !r.p.folded;
	else if (x < LEFT && r?.kind === 'track')
		r.t.folded = !r.t.folded;
	else if (s && s.row !== s.t.state)
		return choose(s.t, s.row, s.i);
	else
		chosen = null, chosenName = 0;
	place();
	redraw();
	settle();
}
let tipTurn = 0;
async function showTip(x, y) {
	const s = sliceAt(x, y), tip = $('tip'), turn = ++tipTurn;
	tip.style.display = s ? 'block' : 'none';
	if (!s)
		return;
	const {t, row, i} = s, name = row.N[i];
	let text = `${head.names[name >> 2]}\n${duration(row.E[i] - row.S[i])} at +${duration(row.S[i])}, ${date(row.S[i])}`;
	if (name & 1)
		text += '\nits begin or its end is missing';
	if (name & 2)
		text += '\nseveral short slices, drawn as one';
	tip.style.left = Math.max(0, Math.min(x + 14, W - 380)) + 'px';
	tip.style.top = Math.min(y + 14, H - 60) + 'px';
	tip.textContent = text;
	const k = lowerEvent(t.events, row.S[i], 0);
	if (k < t.events.length && T[t.events[k]] === row.S[i]) {
		const fields = await fieldsOf(t.events[k]);
		if (turn === tipTurn)
			tip.textContent = text + '\n' + fields;
	}
}
canvas.onpointerleave = () => { $('tip').style.display = 'none'; };
canvas.ondblclick = e => {
	const s = sliceAt(e.offsetX, e.offsetY);
	if (s)
		show(s.row.S[s.i] - (s.row.E[s.i] - s.row.S[s.i]) * .1, s.row.E[s.i] + (s.row.E[s.i] - s.row.S[s.i]) * .1);
};
canvas.onwheel = e => {
	e.preventDefault();
	if (e.shiftKey || e.offsetX < LEFT) {
		scroll = Math.max(0, Math.min(Math.max(0, layout.height - H + TOP), scroll + e.deltaY));
		redraw();
	} else {
		const t = timeAt(e.offsetX), k = Math.exp(Math.max(-1, Math.min(1, e.deltaY * .002)));
		show(t - (t - v0) * k, t + (v1 - t) * k);
	}
};
function copy(text, what) {
	const area = element('textarea', text, document.body);
	area.className = 'hidden';
	area.select();
	document.execCommand('copy');
	area.remove();
	note(what + ' copied');
}
const command = () => {
	const at = t => (BigInt(head.begin) + BigInt(Math.round(t))).toString().replace(/(\d{9})$/, '.$1');
	return `${head.command} --begin=${at(Math.max(0, v0))} --end=${at(Math.min(span, v1))}`;
};
const keys = {
	w: () => show(v0 + (v1 - v0) * .15, v1 - (v1 - v0) * .15),
	s: () => show(v0 - (v1 - v0) * .2, v1 + (v1 - v0) * .2),
	a: () => show(v0 - (v1 - v0) * .15, v1 - (v1 - v0) * .15),
	d: () => show(v0 + (v1 - v0) * .15, v1 + (v1 - v0) * .15),
	f: fit,
	' '() {
		if (served?.recording)
			served.following = !served.following;
	},
	m() {
		if (chosen) {
			range = [chosen.row.S[chosen.i], chosen.row.E[chosen.i]];
			redraw();
			settle();
		}
	},
	n: chooseNext,
	p: choosePrevious,
	l: chooseLongest,
	c: () => copy(command(), 'the command'),
	'0': () => show(0, span),
	'/': () => $('find').focus(),
	'?': () => $('help').showModal(),
	Escape() {
		range = chosen = null;
		chosenName = 0;
		redraw();
		settle();
	},
};
onkeydown = e => {
	const field = e.target.closest?.('input, dialog, select');
	if (field) {
		if (e.key === 'Escape')
			canvas.focus();
		return;
	}
	if (e.key === 'Enter' && e.target.closest?.('tr'))
		e.target.closest('tr').click();
	const action = !e.ctrlKey && !e.metaKey && !e.altKey && (keys[e.key] || keys[e.key.toLowerCase()]);
	if (action) {
		e.preventDefault();
		action();
	}
};
$('find').onkeydown = e => {
	if (e.key === 'Enter')
		search($('find').value);
};
$('filter').oninput = () => {
	try {
		filter = parseFilter($('filter').value);
		$('filter').setCustomValidity('');
		showEvents();
	} catch (error) {
		note(error.message);
	}
};
$('rows').oninput = () => {
	place();
	redraw();
};
$('help-button').onclick = keys['?'];
$('mirror').onclick = () => {
	$('mirror').setAttribute('aria-pressed', $('mirror').getAttribute('aria-pressed') !== 'true');
	showFlame();
};
$('flame').onclick = e => {
	const box = flameBoxes.find(b => e.offsetX >= b.x && e.offsetX < b.x + b.w && e.offsetY >= b.y && e.offsetY < b.y + 16);
	chooseName(box ? box.name : 0);
};
$('flame').onpointermove = e => {
	const box = flameBoxes.find(b => e.offsetX >= b.x && e.offsetX < b.x + b.w && e.offsetY >= b.y && e.offsetY < b.y + 16);
	$('flame').title = box ? `${head.names[box.name]}: ${duration(box.sum)}, ${(box.share * 100).toFixed(1)} %` : '';
};
$('spans-copy').onclick = () => copy([COLUMNS.map(c => c[0]).join('\t'),
	...measured.map(m => COLUMNS.map(([, key]) => key === 'text' ? m.text : Math.round(m[key])).join('\t'))].join('\n'), 'the table (times in nanoseconds)');
$('events-copy').onclick = () => copy(listed.map(l => l.text).join('\n'), `${listed.length} events`);
onresize = () => {
	resize();
	place();
	redraw();
	showFlame();
};
matchMedia('(prefers-color-scheme:dark)').addEventListener('change', () => {
	setTheme();
	hatching = null;
	redraw();
});
onhashchange = () => {
	restore();
	redraw();
	update();
};

/* ---- served by kymo web: parts on demand, and live ---- */

const served = $('web') && {begin: 0n, following: false, busy: false, skipped: 0, wanted: null};
const WINDOW_NS = 5e9; /* what a live view shows at first */

function pauseFollowing() {
	if (served && !served.showing)
		served.following = false;
}
/* The key of a track that stays when tracks are loaded again. */
const keyOf = t => `${t.kind} ${t.host} ${t.pid} ${t.id}`;
/* Loads a range of time, in nanoseconds from the begin, in the place of what is there. */
async function fetchRange(from, to) {
	if (served.busy) {
		served.wanted = [from, to];
		return;
	}
	served.busy = true;
	try {
		const ns = t => (served.begin + BigInt(Math.round(t))).toString();
		const reply = await fetch(`data?begin=${ns(Math.max(0, from))}&end=${ns(to)}`);
		if (reply.ok)
			await replaceData(await reply.text());
		else if (reply.status !== 404)
			note(`kymo web: ${await reply.text()}`);
		served.loaded = [from, to];
	} catch (error) {
		note(`kymo web has ended: ${error.message}`);
	} finally {
		served.busy = false;
	}
	const next = served.wanted;
	served.wanted = null;
	if (next)
		await fetchRange(...next);
}
async function replaceData(text) {
	const template = document.createElement('template');
	const folded = new Set(tracks?.filter(t => t.folded).map(keyOf)), name = head?.names[chosenName];
	template.innerHTML = text;
	document.querySelectorAll('script[type=kymo]:not(#web)').forEach(e => e.remove());
	document.body.append(template.content);
	await load();
	tracks.forEach(t => { t.folded = folded.has(keyOf(t)); });
	chosen = null;
	chosenName = Math.max(0, head.names.indexOf(name || ''));
	processes = sortTracks();
	showHead();
	place();
	redraw();
}
/* Loads more if the view leaves what is loaded, or shows a small part of what is drawn coarsely. */
function fetchIfNeeded() {
	if (!served || !head || served.following || !served.loaded)
		return;
	const a = Math.max(0, v0), b = Math.min(span, v1), [from, to] = served.loaded, width = b - a;
	/* A reply may end early: then it has to begin with what is shown. */
	const early = head.truncated && (a + b) / 2 > head.end && from < a;
	const outside = a < from || b > to;
	const coarse = (head.coarse || head.listed < head.events || head.truncated) && width * 2 < Math.min(head.end, to) - from;
	const margin = coarse ? width / 8 : width;
	if (early || outside || coarse)
		fetchRange(early ? a : Math.max(0, a - margin), Math.min(span, b + margin)).then(() => {
			update();
			fetchIfNeeded();
		});
}
/* A message comes each second: what there is by now. */
async function grow(state) {
	if (!served.begin && state.begin !== '0') {
		served.begin = BigInt(state.begin);
		span = Math.max(1, Number(BigInt(state.end) - served.begin));
		served.following = state.recording;
		v0 = served.following ? Math.max(0, span - WINDOW_NS) : 0;
		v1 = span;
		await fetchRange(v0, v1);
		restore();
		start();
		return;
	}
	if (!head)
		return;
	span = Math.max(span, Number(BigInt(state.end) - served.begin));
	served.recording = state.recording;
	$('position').textContent = !state.recording ? 'recording has ended' : served.following ? 'live: space pauses the view' : 'the view is paused, recording goes on: space follows';
	if (!served.following)
		return redraw();
	if (served.busy) {
		served.skipped++;
		$('notes').textContent = `${served.skipped} steps were not drawn: the page could not keep up`;
		return;
	}
	const width = v1 - v0;
	await fetchRange(Math.max(0, span - 2 * width), span);
	if (!served.following)
		return;
	served.showing = true;
	show(span - width, span);
	served.showing = false;
	if (!state.recording)
		served.following = false;
}
function listen() {
	const source = new EventSource('events');
	source.onmessage = m => grow(JSON.parse(m.data)).catch(fail);
	source.onerror = () => note('no connection to kymo web');
}

/* What is missing comes first. */
function showHead() {
	const notes = [];
	document.title = `${head.title}: Kymo report`;
	$('what').textContent = `${head.events.toLocaleString('en')} events, ${head.slices.toLocaleString('en')} slices, ${duration(head.end - head.from)}, ${date(head.from)}, ${head.title}`;
	$('loss').textContent = head.discarded ? `${head.discarded.toLocaleString('en')} events discarded` : head.packets_lost ? `${head.packets_lost} packets lost` : 'nothing discarded';
	$('loss').className = head.discarded || head.packets_lost ? 'bad' : '';
	if (head.damaged)
		notes.push(`${head.damaged} damaged places were left out`);
	if (head.complete > 0)
		notes.push(`the trace is complete from +${duration(head.complete)}: earlier, events are missing`);
	if (head.listed < head.events)
		notes.push(`all events are drawn; ${head.listed.toLocaleString('en')} are listed with their fields, the first half and the last: zoom in and press C for the command that lists the others`);
	if (head.truncated)
		notes.push(`shown up to +${duration(head.end)}: more events than a page can hold follow; move there`);
	if (head.coarse)
		notes.push(`slices shorter than ${duration(head.coarse)} that are close to each other are drawn as one, striped, and not counted singly`);
	if (head.too_deep)
		notes.push(`${head.too_deep} slices below 256 others are not drawn`);
	$('notes').textContent = notes.join('; ');
}
/* What kymo explain found, each with a link to its example. */
function showFindings() {
	const place = $('findings');
	place.replaceChildren();
	if (!head.findings)
		return;
	/* Times since 1970 need more digits than numbers have here. */
	const found = JSON.parse(head.findings.replace(/_ns": (\d{16,})/g, '_ns": "$1"'));
	element('b', found.first_line, place);
	const list = element('ol', undefined, place), at = ns => Number(BigInt(ns) - BigInt(head.begin));
	for (const f of found.findings || []) {
		const line = element('li', `${Math.round(f.share * 100)} %: ${f.text} `, list);
		if (!f.example)
			continue;
		const link = element('a', 'show an example', line), [a, b] = [at(f.example.begin_ns), at(f.example.end_ns)];
		link.href = `#t=${Math.round(a - (b - a) * .2)},${Math.round(b + (b - a) * .2)}&r=${a},${b}`;
	}
}
function start() {
	setTheme();
	showFindings();
	processes = sortTracks();
	showHead();
	resize();
	place();
	draw();
	perf.first = performance.now() - started;
	update();
	perf.ready = performance.now() - started;
	document.body.dataset.ready = '1';
}
function fail(error) {
	$('notes').textContent = `this page is damaged: ${error.message}`;
	$('notes').className = 'bad';
	document.body.dataset.ready = 'error';
}
setTheme();
if (served) {
	listen();
} else {
	load().then(async () => {
		v1 = span;
		restore();
		start();
		await showEvents();
	}).catch(fail);
}
