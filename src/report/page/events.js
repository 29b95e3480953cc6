/* SPDX-License-Identifier: MIT */
/* ---- events as text: the filter, search, the list, and what is known of the selected one ---- */

const language = filterLanguage();
/*
 * Asks all blocks of text, from one on, around, and the first once more. use(block, hits) gets the
 * answers in this order; a true result ends it.
 */
async function scanBlocks(question, first, use) {
	const n = blockBegins.length, ahead = [];
	for (let k = 0, asked = 0; n && k <= n; k++) {
		for (; asked <= n && ahead.length < Math.max(1, workers.length); asked++)
			ahead.push(part('p', (first + asked) % n, true, question).catch(() => null));
		const answer = await ahead.shift();
		if (!answer || use((first + k) % n, answer.hits))
			return;
	}
}

/* The filter: patterns of names, and behind "if" an expression. null: all events are shown. */
let filter = null, filtering = 0, mask = null;
function parseFilter(text) {
	const [, patterns, condition] = /^\s*(.*?)(?:\s*\bif\b\s*(.*?))?\s*$/s.exec(text);
	const names = patterns.split(',').map(p => p.trim()).filter(Boolean);
	const matcher = p => new RegExp('^' + p.replace(/\\(.)|(\*)|([.+?^${}()|[\]\\])/gs,
		(all, literal, star, special) => literal !== undefined ? literal.replace(/\W/, '\\$&') : star ? '.*' : '\\' + special) + '$', 's');
	const wanted = names.filter(p => p[0] !== '!').map(matcher), unwanted = names.filter(p => p[0] === '!').map(p => matcher(p.slice(1)));
	if (condition !== undefined)
		language.test(condition); /* throws what is wrong with it */
	if (!names.length && !condition)
		return null;
	const passes = head.names.map(n => (!wanted.length || wanted.some(m => m.test(n))) && !unwanted.some(m => m.test(n)));
	return {text, passes, condition};
}
/* Finds the events that pass the filter, and shows them alone. */
async function applyFilter() {
	const turn = ++filtering, found = filter && Uint8Array.from(C, c => filter.passes[c]);
	let last = -1;
	if (filter?.condition)
		await scanBlocks({condition: filter.condition}, 0, (b, hits) => {
			if (b <= last || turn !== filtering)
				return true;
			last = b;
			for (let j = 0; j < COUNT(b); j++)
				found[blockBegins[b] + j] &= hits[j];
			note(`filtering: ${Math.round((b + 1) / blockBegins.length * 100)} %`);
			return false;
		});
	if (turn !== filtering)
		return;
	mask = found;
	setEvents(mask);
	note(mask ? `${passing.length.toLocaleString('en')} of ${T.length.toLocaleString('en')} events pass the filter` : '');
	redraw();
	showEvents();
}
function setFilter(text) {
	const field = $('filter');
	try {
		filter = parseFilter(text);
	} catch (error) {
		field.setAttribute('aria-invalid', 'true');
		return note(error.message);
	}
	field.setAttribute('aria-invalid', 'false');
	return applyFilter();
}

/* ---- the list: only the lines on the screen are made ---- */

const LINE_HEIGHT = 18, MAX_HEIGHT = 8e6, MAX_SHOWN = 600, MAX_COPIED = 10000;
let list = {begin: 0, n: 0}, listing = 0;
const numberAt = k => passing ? passing[k] : k;
/* The events of what is selected, from its begin; or so that the marked event is on the screen. */
function showEvents() {
	const [from, to] = selected(), box = $('list');
	const begin = lower(passingTimes, from, 0, passingTimes.length), end = upper(passingTimes, to, begin, passingTimes.length);
	const k = marked < 0 ? -1 : (passing ? lower(passing, marked, 0, passing.length) : marked);
	list = {begin, n: end - begin, scale: Math.max(1, (end - begin) * LINE_HEIGHT / MAX_HEIGHT)};
	$('list-space').style.height = `${Math.min(MAX_HEIGHT, list.n * LINE_HEIGHT)}px`;
	box.scrollTop = k >= begin && k < end ? Math.max(0, (k - begin) * LINE_HEIGHT / list.scale - box.clientHeight / 3) : 0;
	$('events-title').textContent = `${list.n.toLocaleString('en')} events` + (mask ? ' that pass the filter' : '') +
		(head.listed < head.events ? ', of those that are listed' : '');
	return renderList();
}
/* Splits a line at its last scope: contexts, and fields. Texts may contain anything. */
function splitFields(line) {
	let at = -1;
	for (const m of line.matchAll(/"(?:[^"\\]|\\.)*"|\}, \{/gs))
		if (m[0] === '}, {')
			at = m.index;
	return at < 0 ? ['', line] : [line.slice(0, at + 1), line.slice(at + 3)];
}
const short = (text, max) => text.length > max ? `${text.slice(0, max)} … (${text.length.toLocaleString('en')} characters)` : text;
async function renderList() {
	const turn = ++listing, box = $('list'), n = Math.ceil(box.clientHeight / LINE_HEIGHT) + 2;
	const first = Math.max(0, Math.min(list.n - n + 1, Math.floor(box.scrollTop * list.scale / LINE_HEIGHT))), lines = [];
	for (let k = first; k < Math.min(list.n, first + n); k++) {
		const i = numberAt(list.begin + k), fields = await fieldsOf(i);
		if (turn !== listing)
			return;
		lines.push({i, fields});
	}
	if (turn !== listing)
		return;
	const rows = $('list-rows');
	rows.style.top = `${list.scale > 1 ? box.scrollTop : first * LINE_HEIGHT}px`;
	rows.replaceChildren(...lines.map(({i, fields}) => {
		const div = document.createElement('div'), [contexts, own] = splitFields(fields);
		element('span', `+${(T[i] / 1e9).toFixed(9)}`, div).className = 'dim';
		element('b', head.names[C[i]], div);
		element('span', trackName(tracks[K[i]]), div).className = 'dim';
		element('span', short(own, MAX_SHOWN), div);
		element('span', short(contexts, MAX_SHOWN), div).className = 'dim';
		div.className = i === marked ? 'hit' : '';
		div.setAttribute('role', 'listitem');
		div.onclick = () => mark(i);
		return div;
	}));
}
async function copyEvents() {
	const lines = [];
	for (let k = 0; k < Math.min(list.n, MAX_COPIED); k++) {
		const i = numberAt(list.begin + k);
		lines.push(`+${(T[i] / 1e9).toFixed(9)} ${head.names[C[i]]}: ${await fieldsOf(i)}`);
	}
	copy(lines.join('\n'), lines.length < list.n ? `the first ${lines.length.toLocaleString('en')} of ${list.n.toLocaleString('en')} events` : `${lines.length} events`);
}

/* ---- search ---- */

let found = -1;
/* Looks in the text and the names of events that are shown, from the last place on, once around. */
async function search(text) {
	const begin = performance.now(), low = text.toLowerCase(), from = found + 1 < T.length ? found + 1 : 0;
	const names = head.names.map(n => n.toLowerCase().includes(low)), first = T.length ? blockOf(from) : 0;
	let hit = -1, k = 0;
	if (low)
		await scanBlocks({find: low}, first, (b, hits) => {
			for (let j = k++ ? 0 : from - blockBegins[b]; j < COUNT(b) && hit < 0; j++)
				if ((hits[j] || names[C[blockBegins[b] + j]]) && (!mask || mask[blockBegins[b] + j]))
					hit = blockBegins[b] + j;
			return hit >= 0;
		});
	perf.search = performance.now() - begin;
	if (hit < 0) {
		note(`'${text}' is in no event that is listed` + (mask ? ' and passes the filter' : ''));
		return -1;
	}
	found = hit;
	mark(hit);
	return hit;
}

/* ---- the selected event, or slice ---- */

/* Selects an event, and moves the view if it is not on the screen. */
function mark(i) {
	marked = i;
	chosen = null;
	chosenName = 0;
	if (range && (T[i] < range[0] || T[i] > range[1]))
		range = null;
	const d = (v1 - v0) / 2, r = rowOf.get(K[i]);
	if (T[i] < v0 || T[i] > v1)
		show(T[i] - d, T[i] + d);
	reveal(r);
	redraw();
	settle();
}
/* Times of events as people write them, with what is between them and the begin. */
const moment = t => `+${(t / 1e9).toFixed(9)} s, ${date(t)}`;
async function linesOf(i, title) {
	const lines = [`${title}${head.names[C[i]]}  ${trackName(tracks[K[i]])}  ${moment(T[i])}`];
	for (const [name, text] of language.fields(await fieldsOf(i)))
		lines.push(`    ${name} = ${text}`);
	return lines;
}
/* The events that a slice begins or ends with. */
function eventsAt(t, name, time) {
	const all = [];
	for (let i = lower(T, time, 0, T.length); i < T.length && T[i] === time && all.length < 4; i++)
		if (t.kind === 'async' ? head.names[C[i]].startsWith(name + '_') : K[i] === t.number)
			all.push(i);
	return all;
}
let detailing = 0;
async function showDetails() {
	const turn = ++detailing, lines = [];
	if (chosen) {
		const {t, row, i} = chosen, name = head.names[row.N[i] >> 2];
		lines.push(...aboutSlice(chosen), trackName(t));
		for (const e of [...eventsAt(t, name, row.S[i]).slice(-1), ...eventsAt(t, name, row.E[i]).slice(0, row.E[i] > row.S[i] ? 1 : 0)])
			lines.push(...await linesOf(e, ''));
	} else if (marked >= 0 && marked < T.length) {
		lines.push(...await linesOf(marked, ''));
	}
	if (turn === detailing)
		$('detail').textContent = short(lines.join('\n'), 100000);
}
function aboutSlice({row, i}) {
	const lines = [head.names[row.N[i] >> 2], `${duration(row.E[i] - row.S[i])} at ${moment(row.S[i])}`];
	if (row.N[i] & 1)
		lines.push('its begin or its end is missing');
	if (row.N[i] & 2)
		lines.push('several short slices, drawn as one');
	return lines;
}
let noteTimer;
function note(text) {
	$('position').textContent = text;
	clearTimeout(noteTimer);
	noteTimer = setTimeout(() => { $('position').textContent = ''; }, 5000);
}
