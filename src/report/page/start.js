/* SPDX-License-Identifier: MIT */
/* ---- served by kymo web: parts on demand, and live ---- */

const served = $('web') && {begin: 0n, following: false, busy: false, skipped: 0, wanted: null};
const WINDOW_NS = 5e9; /* what a live view shows at first */

function pauseFollowing() {
	if (served && !served.showing)
		served.following = false;
}
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
	const event = marked >= 0 ? describeEvent(marked) : null;
	const slice = chosen && describeSlice(chosen);
	template.innerHTML = text;
	document.querySelectorAll('script[type=kymo]:not(#web)').forEach(e => e.remove());
	document.body.append(template.content);
	await load();
	tracks.forEach(t => { t.folded = folded.has(keyOf(t)); });
	chosen = slice && findSlice(slice);
	marked = event ? findEvent(...event) : -1;
	chosenName = Math.max(0, head.names.indexOf(name || ''));
	processes = sortTracks();
	showHead();
	place();
	redraw();
	if ($('filter').value)
		setFilter($('filter').value);
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
		const [a, b] = (new URLSearchParams(location.hash.slice(1)).get('t') || '').split(',').map(Number);
		served.following = served.following && !(b > a);
		v0 = b > a ? a : served.following ? Math.max(0, span - WINDOW_NS) : 0;
		v1 = b > a ? b : span;
		await fetchRange(v0, v1);
		restore();
		start();
		return;
	}
	if (!head)
		return note(state.recording ? 'nothing was recorded yet: the page begins with the first event' : state.bytes ? 'no event has a time' : 'nothing was recorded');
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
	$('low').classList.toggle('sliceless', !head.slices); /* then the list has all the room */
	$('what').textContent = `${head.events.toLocaleString('en')} events, ${head.slices.toLocaleString('en')} slices, ${duration(head.end - head.from)}, ${date(head.from)}, ${head.title}`;
	const lost = [[head.discarded, 'event', 'discarded'], [head.packets_lost, 'packet', 'lost']].filter(([n]) => n);
	$('loss').textContent = lost.map(([n, what, how]) => `${n.toLocaleString('en')} ${what}${n > 1 ? 's' : ''} ${how}`).join(', ') || (head.n_gaps ? '' : 'nothing discarded');
	$('loss').className = lost.length ? 'bad' : '';
	if (head.unreadable)
		notes.push(`${head.unreadable} ${head.unreadable > 1 ? 'files or directories' : 'file or directory'} of the trace could not be read`);
	notes.push(...head.gaps);
	if (head.n_gaps > head.gaps.length)
		notes.push(`${head.n_gaps - head.gaps.length} more notes on what is missing: kymo stat --json lists them`);
	if (head.damaged)
		notes.push(head.damaged > 1 ? `${head.damaged} damaged places were left out` : 'a damaged place was left out');
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
	for (const [name, rgb] of Object.entries(stateColours)) {
		element('i', '', $('legend')).style.background = `rgb(${rgb})`;
		$('legend').append(name);
	}
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
$('notes').textContent = '';
if (served) {
	listen();
} else {
	load().then(() => {
		v1 = span;
		restore();
		start();
	}).catch(fail);
}
