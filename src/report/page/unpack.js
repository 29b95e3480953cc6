/* SPDX-License-Identifier: MIT */
/*
 * The page of `kymo report`: draws the columns that src/report/report.c wrote before this script.
 * docs/report.md describes them. Times are nanoseconds from the begin of the report.
 *
 * Nothing is prepared for levels of zoom. Slices of a row are sorted and do not overlap, so each
 * column of pixels finds its slices by binary search. Work is columns of pixels x log(slices).
 *
 * embed.py makes one script of these files, in this order: unpack, filter, trace, draw, select,
 * events, input, start.
 */
'use strict';
const $ = id => document.getElementById(id);
const started = performance.now();
const perf = window.kymoPerf = {};

/* ---- unpacking, in workers ---- */

/* The source of the workers. */
function unpacker(language) {
	const tests = new Map(); /* of filters, by their text */
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
		const lengths = longest.map(level => Float32Array.from(level, length)); /* beside each other */
		return {...row, sums, longest, lengths};
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
			const [T, name, flow, track] = columns(4);
			return {T: sum(T), name, flow, track};
		},
		p: () => ({text: new TextDecoder().decode(bytes)}),
	};
	/* Which lines of text pass a filter, or contain a text: 1 for each, else 0. */
	function scan(text, {condition, find}) {
		const lines = text.split('\n'), hits = new Uint8Array(lines.length);
		if (condition && !tests.has(condition))
			tests.set(condition, language.test(condition));
		const test = condition ? tests.get(condition) : line => line.toLowerCase().includes(find);
		for (let i = 0; i < lines.length; i++)
			hits[i] = test(lines[i]);
		return {hits};
	}
	return async ({kind, text, question}) => {
		bytes = await unpack(text);
		at = 0;
		const result = kinds[kind]();
		return question ? scan(result.text, question) : result;
	};
}

function startWorkers() {
	const source = `const run = (${unpacker})((${filterLanguage})()); onmessage = async m => {
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
		w.worker.postMessage({kind: job.kind, question: job.question, text: job.text()});
	}
}
/*
 * Unpacks a part; returns a promise of its columns. Parts that are kept can be unpacked again.
 * question: {condition} or {find}, of text; the promise is then of {hits}, by line.
 */
function part(kind, number, kept, question) {
	return new Promise((done, failed) => {
		waiting.push({kind, question, text() {
			const element = $(kind + number), text = element?.textContent || '';
			if (!kept)
				element?.remove();
			return text;
		}, done: r => r.error ? failed(new Error(r.error)) : done(r)});
		pump();
	});
}

