/* SPDX-License-Identifier: MIT */
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
/* How light a colour looks (https://www.w3.org/TR/WCAG21/#dfn-relative-luminance). */
function luminance([r, g, b]) {
	const part = v => v / 255 <= .04045 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4;
	return .2126 * part(r) + .7152 * part(g) + .0722 * part(b);
}
const INK = [16, 22, 29], READABLE = .25; /* dark text is readable on what is as light as that */
function colour(name) {
	if (!palette[name]) {
		let h = 2166136261;
		for (const ch of head.names[name] || '')
			h = Math.imul(h ^ ch.charCodeAt(0), 16777619);
		h >>>= 0;
		let c = hsl(h % 360, .4 + (h >>> 9) % 30 / 100, .6 + (h >>> 15) % 18 / 100);
		while (luminance(c) < READABLE)
			c = mix(c, [255, 255, 255], .1);
		palette[name] = c;
	}
	return palette[name];
}
const isPrinting = () => document.documentElement.classList.contains('print');
/* Returns what draws on a canvas in pixels of the page, which may be several of the screen; clears it. */
function sized(canvas, width, height) {
	const k = Math.max(devicePixelRatio, isPrinting() ? 2 : 1), g = canvas.getContext('2d');
	canvas.width = Math.round(width * k);
	canvas.height = Math.round(height * k);
	g.scale(k, k);
	g.imageSmoothingEnabled = false;
	return g;
}
function setTheme() {
	dark = !isPrinting() && matchMedia('(prefers-color-scheme:dark)').matches;
	BG = dark ? [20, 24, 29] : [255, 255, 255];
	LINE = dark ? [44, 51, 59] : [221, 226, 232];
	DENSITY = dark ? [96, 140, 190] : [112, 150, 200];
	const style = getComputedStyle(document.documentElement);
	css = Object.fromEntries(['fg', 'dim', 'bar', 'line', 'accent', 'bad'].map(n => [n, style.getPropertyValue('--' + n)]));
}
/* Colours of states differ in lightness, too: people who do not see some hues tell them apart. */
const stateColours = {running: [0, 130, 100], ready: [240, 165, 30], waiting: [196, 206, 218], 'waiting for a device': [84, 48, 130]};

/* ---- the timeline ---- */

const canvas = $('canvas'), cx = canvas.getContext('2d', {alpha: false});
const LEFT = 210, TOP = 22, ROW = 15, TRACK = 20, STATE_ROW = 6, COUNTER = 30, MAX_ROWS = 32;
const under = document.createElement('canvas'); /* the pixels, one for each of the page */
let W = 0, H = 0, image, pixels, layout = [], labels = [], scroll = 0;
let v0 = 0, v1 = 1;       /* times at the edges */
let rowOf = new Map();    /* the row of a track by its number; of a folded process its own */
let seen = [];            /* rows on the screen */
let range = null;         /* [from, to] that is selected */
let chosen = null;        /* {t, row, i}: the selected slice */
let chosenName = 0;
let marked = -1;          /* number of the selected event */

function resize() {
	const r = canvas.getBoundingClientRect();
	W = under.width = Math.max(LEFT + 50, Math.round(r.width));
	H = under.height = Math.max(50, Math.round(r.height));
	sized(canvas, W, H);
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
	(hosts > 1 ? ' on ' + p.host : '');
function place() {
	const wanted = $('rows').value.toLowerCase();
	let y = 0;
	layout = [];
	rowOf = new Map();
	const add = (h, row) => {
		layout.push({y, h, ...row});
		y += h;
		return layout[layout.length - 1];
	};
	for (const p of processes) {
		const own = processName(p).toLowerCase().includes(wanted);
		const shown = p.tracks.filter(t => own || trackName(t).toLowerCase().includes(wanted));
		if (!shown.length)
			continue;
		const process = add(TRACK, {kind: 'process', p});
		for (const t of p.tracks)
			rowOf.set(t.number, process);
		if (p.folded)
			continue;
		for (const t of shown) {
			if (t.kind === 'counter') {
				rowOf.set(t.number, add(COUNTER, {kind: 'counter', t}));
				continue;
			}
			rowOf.set(t.number, add(TRACK, {kind: 'track', t}));
			if (t.state)
				add(STATE_ROW, {kind: 'state', t});
			for (let d = 0; !t.folded && d < Math.min(t.slices.length, t.all ? 1e9 : MAX_ROWS); d++)
				add(ROW, {kind: 'slices', t, d, row: t.slices[d]});
		}
	}
	layout.height = y;
	scrollTo(scroll);
}
function scrollTo(y) {
	scroll = Math.max(0, Math.min(Math.round(y), layout.height - H + TOP));
}
/* The row at a height of the whole layout; -1: there is none. */
function rowIndex(y) {
	let lo = 0, hi = layout.length;
	while (lo < hi) {
		const m = (lo + hi) >>> 1;
		if (layout[m].y + layout[m].h <= y)
			lo = m + 1;
		else
			hi = m;
	}
	return lo < layout.length && layout[lo].y <= y ? lo : -1;
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
/* One of the longest slices of i to j: of many, whole groups of 32 stand for all. */
function longest(row, i, j) {
	let best = i, most = -1, level = -1;
	const look = k => {
		const length = level < 0 ? row.E[k] - row.S[k] : row.lengths[level][k];
		if (length > most) {
			most = length;
			best = level < 0 ? k : row.longest[level][k];
		}
	};
	if (j - i > 256) {
		i = (i + 31) >> 5;
		j >>= 5;
		level = 0;
	}
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
	const w = W - LEFT, step = (v1 - v0) / w, n = t.times.length, width = (head.end - head.from + 1) / 1024;
	const bins = passing ? null : t.bins; /* of all events; what passes a filter is known of listed ones */
	let most = 0, i = bins ? 0 : lower(t.times, v0, 0, n);
	for (let x = 0; x < w; x++) {
		if (bins) {
			heights[x] = (bins[Math.floor((v0 + (x + .5) * step - head.from) / width)] || 0) * step / width;
		} else {
			const j = i < n ? t.times[i] < v0 + (x + 1) * step ? gallop(t.times, v0 + (x + 1) * step, i, n) : i : n;
			heights[x] = j - i;
			i = j;
		}
		most = Math.max(most, heights[x]);
	}
	return most;
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
/* Names of events beside their columns, where there are so few that they have room. */
function nameEvents(t, y) {
	const end = lower(t.times, v1, 0, t.times.length);
	let i = lower(t.times, v0, 0, end);
	if (end - i > (W - LEFT) / 20)
		return;
	for (; i < end; i++) {
		const a = Math.round(xOf(t.times[i])) + 3, room = (i + 1 < end ? xOf(t.times[i + 1]) : W) - a - 3;
		if (room > 40)
			cx.fillText(clipped(head.names[C[t.events[i]]], room), a, y);
	}
}
/* A curve of steps: the least and the greatest value of each column of pixels. */
function drawCounter(t, y, h) {
	const step = (v1 - v0) / (W - LEFT), c = pack(DENSITY), height = t.greatest - t.least || 1;
	const place = v => y + h - 3 - Math.round((v - t.least) / height * (h - 6));
	const zero = Math.max(y + 3, Math.min(y + h - 3, place(0))), under = pack(mix(BG, DENSITY, .3));
	let i = Math.max(0, upper(t.T, v0, 0, t.T.length) - 1);
	for (let x = 0; x < W - LEFT; x++) {
		const from = v0 + x * step;
		if (from + step < t.T[0])
			continue;
		const last = gallop(t.T, from + step, i, t.T.length) - 1;
		let low = t.V[i], high = t.V[i];
		while (i < last) {
			const isWhole = !(++i & 63) && i + 63 <= last;
			low = Math.min(low, isWhole ? t.lows[i >> 6] : t.V[i]);
			high = Math.max(high, isWhole ? t.highs[i >> 6] : t.V[i]);
			i += isWhole ? 63 : 0;
		}
		fill(LEFT + x, LEFT + x + 1, Math.min(zero, place(high)), Math.abs(zero - place(high)), under);
		fill(LEFT + x, LEFT + x + 1, place(high), place(low) - place(high) + 2, c);
	}
}
const UNITS = [['ns', 1], ['µs', 1e3], ['ms', 1e6], ['s', 1e9]];
function duration(ns) {
	let unit = UNITS[0];
	for (const u of UNITS)
		if (Math.abs(ns) >= u[1] * .99995) // 1000 when it is rounded
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

function drawPixels() {
	const first = rowIndex(scroll);
	pixels.fill(pack(BG));
	labels = [];
	seen = [];
	for (let i = first; i >= 0 && i < layout.length && layout[i].y - scroll < H - TOP; i++)
		seen.push(layout[i]);
	for (const r of seen) {
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
	under.getContext('2d').putImageData(image, 0, 0);
	cx.drawImage(under, 0, 0, W, H);
}
function clipped(text, room) {
	/* Measuring each text is slow; letters of other scripts have other widths. */
	const width = /^[ -~]*$/.test(text) ? 6.2 : cx.measureText(text).width / text.length;
	return text.length * width > room ? text.slice(0, Math.max(0, Math.floor(room / width) - 1)) + (room > 30 ? '…' : '') : text;
}
/* What stands right of a track's name. */
function summaryOf(t) {
	if (t.kind === 'counter')
		return `${shortNumber(t.least)} … ${shortNumber(t.greatest)}`;
	return t.kind === 'async' ? '' : t.n.toLocaleString('en');
}
const shortNumber = v => Math.abs(v) >= 1e6 || (v && Math.abs(v) < 1e-3) ? v.toExponential(2) : String(+v.toPrecision(6));
function drawTexts() {
	cx.font = '11px system-ui';
	cx.textBaseline = 'middle';
	cx.textAlign = 'left';
	for (let i = 0; i < labels.length; i += 4) {
		const c = sliceColour(labels[i]), drawn = labels[i] & 1 ? mix(BG, c, .45) : c;
		cx.fillStyle = luminance(drawn) < READABLE ? css.fg : `rgb(${INK})`;
		const room = labels[i + 2] - labels[i + 1] - 6;
		cx.fillText(clipped(head.names[labels[i] >> 2], room), labels[i + 1] + 3, labels[i + 3] + ROW / 2 + 1);
	}
	for (const r of seen) {
		if (r.kind === 'slices' || r.kind === 'state')
			continue;
		const y = TOP + r.y - scroll + r.h / 2, isProcess = r.kind === 'process';
		cx.font = isProcess ? 'bold 11px system-ui' : '11px system-ui';
		cx.fillStyle = css.fg;
		const name = isProcess ? (r.p.folded ? '▸ ' : '▾ ') + processName(r.p) : trackName(r.t);
		const right = isProcess ? '' : summaryOf(r.t);
		cx.fillText(clipped(name, LEFT - 30 - right.length * 6.2), isProcess ? 4 : 16, y);
		cx.fillStyle = css.dim;
		if (r.kind === 'track')
			nameEvents(r.t, y);
		cx.textAlign = 'right';
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
	const drawn = new Map(); /* up to which pixel, by track; many losses may share one */
	for (const [from, to, , track] of head.losses) {
		if (to < v0 || from > v1)
			continue;
		const a = Math.max(LEFT, xOf(from), drawn.get(track) ?? 0), end = Math.max(Math.min(W, xOf(to)), Math.max(LEFT, xOf(from)) + 2);
		if (end <= a)
			continue;
		drawn.set(track, end);
		cx.fillStyle = css.bad;
		cx.fillRect(a, TOP - 4, end - a, 4);
		cx.fillStyle = hatch();
		for (const r of seen)
			if (track < 0 ? r.kind !== 'process' : r.t && r.t.number === track)
				cx.fillRect(a, Math.max(TOP, TOP + r.y - scroll), end - a, r.h);
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
	if (marked >= 0)
		drawMark();
	const r = chosen && seen.find(l => l.row === chosen.row);
	if (r) {
		const a = Math.max(LEFT, xOf(chosen.row.S[chosen.i])), b = Math.max(a + 2, Math.min(W, xOf(chosen.row.E[chosen.i])));
		cx.strokeStyle = css.fg;
		cx.lineWidth = 2;
		cx.strokeRect(a, TOP + r.y - scroll, b - a, r.h);
		cx.lineWidth = 1;
	}
}
/* The selected event: a line through all rows, and a box in its own. */
function drawMark() {
	const x = Math.round(xOf(T[marked])), r = rowOf.get(K[marked]);
	if (x < LEFT || x >= W)
		return;
	cx.fillStyle = css.accent;
	cx.fillRect(x, TOP, 1, H);
	if (r)
		cx.fillRect(x - 2, Math.max(TOP, TOP + r.y - scroll), 5, r.h);
}
/* Steps of flows that are drawn: all on the screen if they are few, and those of the selected slice. */
let through = null; /* {chosen, steps} */
function flowsThroughChosen() {
	if (through?.chosen === chosen)
		return through.steps;
	const {t, row, i} = chosen, numbers = new Set(), steps = [];
	for (let k = lower(flows.T, row.S[i], 0, flows.T.length); k < flows.T.length && flows.T[k] <= row.E[i]; k++)
		if (flows.track[k] === t.number)
			numbers.add(flows.flow[k]);
	for (let k = 0; numbers.size && k < flows.T.length; k++)
		if (numbers.has(flows.flow[k]))
			steps.push(k);
	through = {chosen, steps};
	return steps;
}
function drawFlow(k) {
	const from = flows.before[k], a = from >= 0 && rowOf.get(flows.track[from]), b = rowOf.get(flows.track[k]);
	if (!a || !b)
		return;
	const x0 = xOf(flows.T[from]), x = xOf(flows.T[k]), y0 = TOP + a.y - scroll + a.h / 2, y = TOP + b.y - scroll + b.h / 2;
	if (x < LEFT || x0 > W)
		return;
	const bend = Math.max(8, Math.abs(x - x0) / 2);
	cx.beginPath();
	cx.moveTo(x0, y0);
	cx.bezierCurveTo(x0 + bend, y0, x - bend, y, x, y);
	cx.stroke();
	cx.beginPath();
	cx.moveTo(x, y);
	cx.lineTo(x - 7, y - 3);
	cx.lineTo(x - 7, y + 3);
	cx.fill();
}
const MAX_FLOWS = 200;
function drawFlows() {
	if (!flows)
		return;
	const a = lower(flows.T, v0, 0, flows.T.length), b = upper(flows.T, v1, 0, flows.T.length);
	cx.save();
	cx.beginPath();
	cx.rect(LEFT, TOP, W - LEFT, H - TOP);
	cx.clip();
	cx.strokeStyle = cx.fillStyle = css.dim;
	for (let k = a; b - a <= MAX_FLOWS && k < b; k++)
		drawFlow(k);
	cx.strokeStyle = cx.fillStyle = css.accent;
	cx.lineWidth = 2;
	if (chosen)
		flowsThroughChosen().forEach(drawFlow);
	cx.restore();
}
/* Where the rows on the screen are among all. */
const BAR = 8;
function drawBar() {
	const room = H - TOP, all = layout.height;
	if (all <= room)
		return;
	cx.fillStyle = css.bar;
	cx.fillRect(W - BAR, TOP, BAR, room);
	cx.fillStyle = css.dim;
	cx.fillRect(W - BAR + 1, TOP + scroll / all * room, BAR - 2, Math.max(12, room / all * room));
}
function draw() {
	const begin = performance.now();
	drawPixels();
	drawTexts();
	drawScale();
	drawLosses();
	drawSelection();
	drawFlows();
	drawBar();
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

