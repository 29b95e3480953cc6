/* SPDX-License-Identifier: MIT */
/* ---- the view and what is selected ---- */

function date(t) {
	const ns = BigInt(head.begin) + BigInt(Math.round(t)), s = (ns - (ns % 1000000000n + 1000000000n) % 1000000000n) / 1000000000n;
	const day = new Date(Number(s) * 1000); /* years that it does not know are not valid */
	return Number.isNaN(+day) ? `${ns} ns` : day.toISOString().replace('.000Z', `.${String(ns - s * 1000000000n).padStart(9, '0')}Z`);
}
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
		parts.push('s=' + encodeURIComponent(JSON.stringify(describeSlice(chosen))));
	else if (chosenName)
		parts.push('n=' + encodeURIComponent(head.names[chosenName]));
	if (marked >= 0)
		parts.push('e=' + encodeURIComponent(JSON.stringify(describeEvent(marked))));
	for (const [key, field] of [['f', 'filter'], ['rows', 'rows']])
		if ($(field).value)
			parts.push(`${key}=${encodeURIComponent($(field).value)}`);
	try {
		history.replaceState(null, '', '#' + parts.join('&'));
	} catch {
		/* some browsers refuse this for files */
	}
	fetchIfNeeded();
	canvas.setAttribute('aria-label', `timeline from +${duration(v0)}, ${duration(v1 - v0)} shown, ${layout.length} rows`);
	update();
}
/* A link may be anybody's. Returns null for what is no JSON. */
function parsed(text) {
	try {
		return JSON.parse(text);
	} catch {
		return null;
	}
}
/* The key of a track, an event and a slice as they stay when other parts are loaded. */
const keyOf = t => `${t.kind} ${t.host} ${t.pid} ${t.id}`;
const describeEvent = i => [T[i], head.names[C[i]]];
const describeSlice = ({t, row, i}) => ({key: keyOf(t), depth: t.slices.indexOf(row), begin: row.S[i], end: row.E[i]});
function findEvent(time, name) {
	for (let i = lower(T, time, 0, T.length); T[i] === time; i++)
		if (head.names[C[i]] === name)
			return i;
	return -1;
}
function findSlice({key, depth, begin, end}) {
	const t = tracks.find(k => keyOf(k) === key), row = t?.slices[depth], i = row ? lower(row.S, begin, 0, row.S.length) : 0;
	return row && row.S[i] === begin && row.E[i] === end ? {t, row, i} : null;
}
function restore() {
	const given = new URLSearchParams(location.hash.slice(1)), numbers = k => (given.get(k) || '').split(',').map(Number);
	if (given.has('t') && numbers('t').every(Number.isFinite))
		[v0, v1] = numbers('t');
	range = given.has('r') && numbers('r').every(Number.isFinite) ? numbers('r') : null;
	const [t, d, i] = numbers('s');
	chosen = findSlice(parsed(given.get('s')) || {});
	marked = findEvent(...parsed(given.get('e')) || []);
	$('rows').value = given.get('rows') || '';
	if ((given.get('f') || '') !== $('filter').value) {
		$('filter').value = given.get('f') || '';
		setFilter($('filter').value);
	}
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
	element('h2', `durations of ${m.text}, both axes logarithmic: click a bar for its slices`, place);
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
	const begin = performance.now(), c = $('flame'), r = c.parentElement.getBoundingClientRect(), g = sized(c, r.width, r.height);
	const root = stacks(...selected(), $('mirror').getAttribute('aria-pressed') === 'true');
	g.font = '11px system-ui';
	g.textBaseline = 'middle';
	flameBoxes = [];
	const put = (node, x, w, y) => {
		for (const [name, child] of [...node.children].sort((a, b) => b[1].sum - a[1].sum)) {
			const width = w * child.sum / (node === root ? root.sum || 1 : node.sum || 1);
			if (width >= .5 && y < r.height) {
				const c = chosenName && name !== chosenName ? mix(BG, colour(name), .4) : colour(name);
				g.fillStyle = `rgb(${c})`;
				g.fillRect(x, y, Math.max(.5, width - 1), 15);
				flameBoxes.push({x, y, w: width, name, sum: child.sum, share: child.sum / (root.sum || 1)});
				if (width > 30) {
					g.fillStyle = luminance(c) < READABLE ? css.fg : `rgb(${INK})`;
					g.fillText(clipped(head.names[name], width - 6), x + 3, y + 8);
				}
				put(child, x, width, y + 16);
			}
			x += width;
		}
	};
	put(root, 0, r.width, 0);
	c.setAttribute('aria-label', `flame graph, ${duration(root.sum)} in all` + (root.complete ? '' : ', of the first 3,000,000 slices'));
	perf.flame = performance.now() - begin;
}

/* Table, flame graph, details and events of what is selected. */
function update() {
	const begin = performance.now(), [from, to] = selected();
	measured = measure(from, to);
	$('spans-title').textContent = `${range ? 'selected' : 'shown'}: ${duration(to - from)}, ${measured.reduce((n, m) => n + m.count, 0).toLocaleString('en')} slices`;
	showTable();
	perf.table = performance.now() - begin;
	showFlame();
	showDetails();
	showEvents();
}
