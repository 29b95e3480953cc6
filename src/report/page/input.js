/* SPDX-License-Identifier: MIT */
/* ---- choosing slices ---- */

function chooseName(name) {
	chosenName = name;
	chosen = null;
	marked = -1;
	redraw();
	settle();
}
/* Moves a row onto the screen. */
function reveal(r) {
	if (r && (r.y < scroll || r.y + r.h > scroll + H - TOP))
		scrollTo(r.y - H / 2);
}
function choose(t, row, i) {
	chosen = {t, row, i};
	chosenName = row.N[i] >> 2;
	marked = -1;
	reveal(layout.find(l => l.row === row));
	const d = v1 - v0, m = (row.S[i] + row.E[i]) / 2;
	if (row.E[i] < v0 || row.S[i] > v1)
		show(m - d / 2, m + d / 2);
	redraw();
	settle();
}
function fit() {
	const [a, b] = chosen ? [chosen.row.S[chosen.i], chosen.row.E[chosen.i]] : range || [Math.min(head.from, 0), span];
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
	return layout[rowIndex(y - TOP + scroll)];
}
/* The number of the event at a place of a track's row, or within four pixels; -1: none. */
function eventAt(x, y) {
	const r = y > TOP && x > LEFT ? rowAt(y) : null;
	if (r?.kind !== 'track' || !r.t.times.length)
		return -1;
	const t = timeAt(x), times = r.t.times, k = lower(times, t, 0, times.length);
	const near = [k - 1, k].filter(j => j >= 0 && j < times.length).sort((a, b) => Math.abs(times[a] - t) - Math.abs(times[b] - t))[0];
	return Math.abs(xOf(times[near]) - x) <= 4 ? r.t.events[near] : -1;
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
	drag = {x: e.offsetX, y: e.offsetY, v0, v1, scroll, selects: e.shiftKey, bar: e.offsetX > W - BAR && layout.height > H - TOP, moved: false};
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
		if (drag.bar) {
			scrollTo(drag.scroll + (e.offsetY - drag.y) * layout.height / (H - TOP));
			redraw();
		} else if (drag.selects) {
			range = [timeAt(drag.x), timeAt(e.offsetX)].sort((a, b) => a - b);
			redraw();
		} else if (drag.moved) {
			const d = (drag.x - e.offsetX) / (W - LEFT) * (drag.v1 - drag.v0);
			scrollTo(drag.scroll + drag.y - e.offsetY);
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
	const r = rowAt(y), s = sliceAt(x, y), i = eventAt(x, y);
	range = null;
	if (x < LEFT && r?.kind === 'process')
		r.p.folded = !r.p.folded;
	else if (x < LEFT && r?.kind === 'track')
		r.t.folded = !r.t.folded;
	else if (s && s.row !== s.t.state)
		return choose(s.t, s.row, s.i);
	else if (i >= 0)
		return mark(i);
	else
		chosen = null, chosenName = 0, marked = -1;
	place();
	redraw();
	settle();
}
/* What is at a place of the timeline, in lines; null: nothing. */
async function aboutPlace(x, y) {
	const s = sliceAt(x, y), i = eventAt(x, y), r = y > TOP && x > LEFT ? rowAt(y) : null;
	if (s)
		return aboutSlice(s).concat(...await Promise.all(eventsAt(s.t, head.names[s.row.N[s.i] >> 2], s.row.S[s.i]).slice(-1).map(e => fieldsOf(e))));
	if (i >= 0)
		return [head.names[C[i]], moment(T[i]), await fieldsOf(i)];
	if (r?.kind === 'counter' && timeAt(x) >= r.t.T[0])
		return [`${r.t.name}: ${r.t.V[upper(r.t.T, timeAt(x), 0, r.t.T.length) - 1]}`];
	const t = timeAt(x), slack = (v1 - v0) / (W - LEFT) * 2;
	const lost = x > LEFT ? head.losses.filter(([from, to, , track]) => from - slack <= t && t <= to + slack && (track < 0 || r?.t?.number === track || y <= TOP)) : [];
	if (lost.length)
		return [`events are missing from +${duration(lost[0][0])} to +${duration(lost[lost.length - 1][1])}: ${lost.reduce((n, l) => n + l[2], 0).toLocaleString('en') || 'an unknown number'}`];
	return x > LEFT && t < head.complete ? ['the trace is not complete before here'] : null;
}
let tipTurn = 0;
async function showTip(x, y) {
	const turn = ++tipTurn, lines = await aboutPlace(x, y), tip = $('tip');
	if (turn !== tipTurn)
		return;
	tip.style.display = lines ? 'block' : 'none';
	if (!lines)
		return;
	tip.textContent = short(lines.join('\n'), 1000);
	tip.style.left = `${Math.max(0, Math.min(x + 14, W - tip.offsetWidth))}px`;
	tip.style.top = `${y + 14 + tip.offsetHeight < H ? y + 14 : Math.max(0, y - 8 - tip.offsetHeight)}px`;
}
canvas.onpointerleave = () => {
	tipTurn++;
	$('tip').style.display = 'none';
};
canvas.ondblclick = e => {
	const s = sliceAt(e.offsetX, e.offsetY);
	if (s)
		show(s.row.S[s.i] - (s.row.E[s.i] - s.row.S[s.i]) * .1, s.row.E[s.i] + (s.row.E[s.i] - s.row.S[s.i]) * .1);
};
canvas.onwheel = e => {
	e.preventDefault();
	if (e.shiftKey || e.offsetX < LEFT) {
		scrollTo(scroll + e.deltaY);
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
	const at = t => {
		const ns = BigInt(head.begin) + BigInt(Math.round(t)), digits = String(ns < 0n ? -ns : ns).padStart(10, '0');
		return `${ns < 0n ? '@-' : ''}${digits.slice(0, -9)}.${digits.slice(-9)}`;
	};
	return `${head.command} --begin=${at(Math.max(0, v0))} --end=${at(Math.min(span, v1))}`;
};
function scrollBy(d) {
	scrollTo(scroll + d);
	redraw();
}
const keys = {
	w: () => show(v0 + (v1 - v0) * .15, v1 - (v1 - v0) * .15),
	s: () => show(v0 - (v1 - v0) * .2, v1 + (v1 - v0) * .2),
	a: () => show(v0 - (v1 - v0) * .15, v1 - (v1 - v0) * .15),
	d: () => show(v0 + (v1 - v0) * .15, v1 + (v1 - v0) * .15),
	f: fit,
	ArrowUp: () => scrollBy(-40),
	ArrowDown: () => scrollBy(40),
	PageUp: () => scrollBy(TOP - H),
	PageDown: () => scrollBy(H - TOP),
	ArrowLeft: () => keys.a(),
	ArrowRight: () => keys.d(),
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
		marked = -1;
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
let filterTimer;
$('filter').oninput = () => {
	clearTimeout(filterTimer);
	filterTimer = setTimeout(() => {
		setFilter($('filter').value);
		settle();
	}, 200);
};
$('rows').oninput = () => {
	place();
	redraw();
	settle();
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
$('events-copy').onclick = copyEvents;
$('list').onscroll = renderList;
/* The borders between the parts of the page can be dragged. */
for (const split of document.querySelectorAll('.split')) {
	split.onpointerdown = e => split.setPointerCapture(e.pointerId);
	split.onpointermove = e => {
		if (!split.hasPointerCapture(e.pointerId))
			return;
		if (split.id === 'split') {
			$('low').style.height = `${Math.max(40, Math.min(innerHeight - 160, innerHeight - e.clientY))}px`;
		} else {
			const before = split.previousElementSibling, d = e.clientX - split.getBoundingClientRect().left;
			before.style.flex = `0 0 ${Math.max(60, before.getBoundingClientRect().width + d)}px`;
		}
	};
	split.onpointerup = resized;
}
function resized() {
	resize();
	place();
	redraw();
	showFlame();
	renderList();
}
new ResizeObserver(() => layout.length && resized()).observe(canvas);
function restyled() {
	setTheme();
	hatching = null;
	if (!layout.length)
		return;
	resized();
	draw();
}
matchMedia('(prefers-color-scheme:dark)').addEventListener('change', restyled);
/* The window may come to a screen of another density, at the same size. */
(function watchDensity() {
	matchMedia(`(resolution:${devicePixelRatio}dppx)`).addEventListener('change', () => {
		watchDensity();
		restyled();
	}, {once: true});
})();
/* On paper: light, as wide as a sheet, without what can only be clicked. */
onbeforeprint = onafterprint = e => {
	document.documentElement.classList.toggle('print', e.type === 'beforeprint');
	restyled();
};
onhashchange = () => {
	restore();
	place();
	redraw();
	update();
};

