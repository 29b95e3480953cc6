/* SPDX-License-Identifier: MIT */
/* ---- fields of events, and the filter: in workers, too ---- */

/*
 * The language of filters (kymo-filter(7)) on the text of events. Integers are BigInts, floating-
 * point numbers are numbers, text is a string; undefined has no value. A type is known from the
 * text alone: integers are compared by their values.
 */
function filterLanguage() {
	/* ---- values of a line: "{ cpu_id = 0 }, { vpid = 1 }, { text = "a", list = [ [0] = 1 ] }" ---- */
	const NAME = /(?:(?! = ).)+/ys, SCALAR = /[^\s,\]}]+/y, STRING = /"(?:[^"\\]|\\.)*"/ys;
	let line, at;
	function take(pattern) {
		pattern.lastIndex = at;
		const m = pattern.exec(line);
		if (!m)
			throw new Error('unknown text');
		at += m[0].length;
		return m[0];
	}
	function skip(text) {
		if (!line.startsWith(text, at))
			return false;
		at += text.length;
		return true;
	}
	function scalar(text) {
		if (text === 'true' || text === 'false')
			return BigInt(text === 'true');
		if (text === '<none>')
			return undefined;
		if (/^-?\d+$/.test(text))
			return BigInt(text);
		if (/^0[xXbB][0-9a-fA-F]+$/.test(text))
			return BigInt(text);
		if (/^0o?[0-7]+$/.test(text))
			return BigInt('0o' + text.replace(/^0o?/, ''));
		return {nan: NaN, inf: Infinity, '-inf': -Infinity}[text] ?? Number(text);
	}
	const ESCAPES = {n: '\n', t: '\t', r: '\r', a: '\x07', b: '\b', f: '\f', v: '\v', 0: '\0'};
	const unquote = text => text.slice(1, -1).replace(/\\(.)/gs, (all, c) => ESCAPES[c] ?? c);
	/* Text behind a number: labels of flags, or the symbol of an address. */
	function skipNote() {
		if (line.startsWith(' { "', at)) {
			at += 2;
			do {
				skip(' ');
				take(STRING);
			} while (skip(','));
			skip(' }');
		} else if (line.startsWith(' <', at)) {
			const ends = />(?=, | [\]}]|$)/g;
			ends.lastIndex = at;
			at = ends.exec(line) ? ends.lastIndex : line.length;
		}
	}
	function value() {
		if (line[at] === '"')
			return unquote(take(STRING));
		if (skip('{ '))
			return braces();
		if (skip('[ '))
			return members(' ]', ']');
		if (skip('( ')) { /* an enumeration: ( "LABEL" : container = 1 ) */
			const found = /(?:[^"]|"(?:[^"\\]|\\.)*")*? : container = (\S+) \)/ys;
			found.lastIndex = at;
			const m = found.exec(line);
			if (!m)
				throw new Error('unknown text');
			at = found.lastIndex;
			return scalar(m[1]);
		}
		const v = scalar(take(SCALAR));
		skipNote();
		return v;
	}
	/* Behind "{ ": "a = 1 }" is a structure, "7 }" an option or a variant, "0c 1f }" a block of data. */
	function braces() {
		const OPTION = /["{[(]|[^\s,]+ (?:[}<]|\{ ")/y, BLOCK = /(?:[\da-f]{2} ){2,}\}/y;
		OPTION.lastIndex = BLOCK.lastIndex = at;
		if (BLOCK.test(line)) {
			at = BLOCK.lastIndex;
			return new Map();
		}
		if (line[at] === '}' || !OPTION.test(line))
			return members(' }', '}');
		const v = value();
		take(/ \}/y);
		return v;
	}
	/* Members of a structure by name, of an array by "[N]". */
	function members(end, empty) {
		const found = new Map();
		if (skip(empty))
			return found;
		do {
			const name = skip('[') ? '[' + take(/\d+/y) + take(/\]/y) : take(NAME);
			if (!skip(' = '))
				throw new Error('unknown text');
			found.set(name, value());
		} while (skip(', '));
		if (!skip(end))
			throw new Error('unknown text');
		return found;
	}
	/* Returns the scopes of a line: the last one has the fields, the others have contexts. */
	function scopes(text) {
		const all = [];
		line = text;
		at = 0;
		while (skip('{ ')) {
			all.push(members(' }', '}'));
			if (!skip(', '))
				break;
		}
		return all;
	}
	/* Returns [name, text] of each field of a line, the event's own first. */
	function fields(text) {
		const all = [];
		line = text;
		at = 0;
		try {
			while (skip('{ ')) {
				const own = [];
				while (!skip('}')) {
					const name = take(NAME), begin = (skip(' = '), at);
					value();
					own.push([name, line.slice(begin, at)]);
					if (!skip(', '))
						skip(' ');
				}
				all.unshift(own);
				if (!skip(', '))
					break;
			}
		} catch {
			return [['fields', text]];
		}
		return all.flat();
	}

	/* ---- expressions: C's operators, which bind as in C ---- */
	const OPERATORS = [['||'], ['&&'], ['|'], ['^'], ['&'], ['==', '!='], ['<=', '>=', '<', '>'], ['<<', '>>'], ['+', '-'], ['*', '/', '%']];
	const TOKEN = /\s*(?:("(?:[^"\\]|\\.)*")|((?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?)|(0[xX][\da-fA-F]+|0[bB][01]+|\d+)[uUlL]*|(\$(?:ctx|app)\.[\w.:$]+|[A-Za-z_]\w*)|(\|\||&&|==|!=|<=|>=|<<|>>|[-+*/%<>&|^!~()[\].]))/y;
	function tokens(text) {
		const found = [];
		TOKEN.lastIndex = 0;
		while (text.slice(TOKEN.lastIndex).trim()) {
			const begin = TOKEN.lastIndex, m = TOKEN.exec(text);
			if (!m)
				throw new Error(`the filter is not understood at character ${begin + 1}`);
			const [, string, real, integer, name, sign] = m;
			if (string !== undefined)
				found.push({kind: 'value', value: string.slice(1, -1), isPattern: true, begin});
			else if (real !== undefined)
				found.push({kind: 'value', value: Number(real), begin});
			else if (integer !== undefined)
				found.push({kind: 'value', value: BigInt(/^0\d/.test(integer) ? '0o' + integer.slice(1) : integer), begin});
			else
				found.push({kind: name !== undefined ? 'name' : 'sign', text: name ?? sign, begin});
		}
		return found;
	}
	/* A text with stars, as a test of texts; or the text itself if there is none. */
	function pattern(text) {
		const parts = text.split(/((?:\\.)|\*)/s).filter(Boolean);
		const plain = parts.map(p => /^\\./s.test(p) ? {n: '\n', t: '\t'}[p[1]] ?? p[1] : p);
		if (!parts.includes('*'))
			return plain.join('');
		return new RegExp('^' + parts.map((p, i) => p === '*' ? '.*' : plain[i].replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('') + '$', 's');
	}
	const isText = v => typeof v === 'string' || v instanceof RegExp;
	function equals(a, b) {
		if (isText(a) !== isText(b))
			return undefined;
		if (a instanceof RegExp || b instanceof RegExp)
			return a instanceof RegExp ? a.test(b) : b.test(a);
		/* eslint-disable-next-line eqeqeq: 1n == 1 */
		return a == b;
	}
	const isTrue = v => v === undefined || isText(v) || v instanceof Map ? undefined : Number.isNaN(v) || Boolean(v);
	const wrap = v => typeof v === 'bigint' ? BigInt.asIntN(64, v) : v;
	function calculate(op, a, b) {
		if (isText(a) || isText(b))
			return undefined;
		if (typeof a !== typeof b) {
			if ('% << >> & | ^'.split(' ').includes(op))
				return undefined;
			a = Number(a);
			b = Number(b);
		}
		const whole = typeof a === 'bigint';
		switch (op) {
		case '+': return wrap(a + b);
		case '-': return wrap(a - b);
		case '*': return wrap(a * b);
		case '/': return whole && b === 0n ? undefined : wrap(a / b);
		case '%': return !whole || b === 0n ? undefined : a % b;
		case '<<': return !whole || b < 0n || b > 63n ? undefined : wrap(a << b);
		case '>>': return !whole || b < 0n || b > 63n ? undefined : a >> b;
		case '&': return whole ? a & b : undefined;
		case '|': return whole ? a | b : undefined;
		default: return whole ? a ^ b : undefined;
		}
	}
	function compare(op, a, b) {
		if (isText(a) || isText(b))
			return undefined;
		return op === '<' ? a < b : op === '>' ? a > b : op === '<=' ? a <= b : a >= b;
	}
	function apply(op, a, b) {
		if (a === undefined || b === undefined || a instanceof Map || b instanceof Map)
			return undefined;
		if (op === '==' || op === '!=') {
			const same = equals(a, b);
			return same === undefined ? undefined : BigInt(same === (op === '=='));
		}
		if ('< > <= >='.split(' ').includes(op)) {
			const holds = compare(op, a, b);
			return holds === undefined ? undefined : BigInt(holds);
		}
		return calculate(op, a, b);
	}
	/* Returns an expression as a function of a line's scopes. Throws an Error that says what is wrong. */
	function parse(text) {
		const list = tokens(text);
		let next = 0;
		const is = sign => list[next]?.kind === 'sign' && list[next].text === sign;
		const place = () => list[next] ? `at character ${list[next].begin + 1} of the condition` : 'at the end of the condition';
		const expect = sign => {
			if (!is(sign))
				throw new Error(`'${sign}' is missing ${place()}`);
			next++;
		};
		function path(name) {
			const steps = [];
			for (;;) {
				if (is('[')) {
					next++;
					const index = list[next++];
					if (typeof index?.value !== 'bigint')
						throw new Error('the number of an element is a constant');
					steps.push(`[${index.value}]`);
					expect(']');
				} else if (is('.')) {
					next++;
					if (list[next]?.kind !== 'name')
						throw new Error(`a name is missing ${place()}`);
					steps.push(list[next++].text);
				} else {
					return lookUp(name, steps);
				}
			}
		}
		function operand() {
			const token = list[next++];
			if (token?.kind === 'value') {
				const v = token.isPattern ? pattern(token.value) : token.value;
				return () => v;
			}
			if (token?.kind === 'name')
				return path(token.text);
			if (token?.text === '(') {
				const inner = binary(0);
				expect(')');
				return inner;
			}
			if (token && '! ~ - +'.split(' ').includes(token.text)) {
				const of = operand();
				return all => {
					const v = of(all);
					if (v === undefined || isText(v) || v instanceof Map)
						return undefined;
					return token.text === '!' ? BigInt(!isTrue(v)) : token.text === '-' ? wrap(-v) : token.text === '+' ? v : typeof v === 'bigint' ? ~v : undefined;
				};
			}
			next--;
			throw new Error(`a name or a value is missing ${place()}`);
		}
		function binary(level) {
			if (level === OPERATORS.length)
				return operand();
			let left = binary(level + 1);
			while (list[next]?.kind === 'sign' && OPERATORS[level].includes(list[next].text)) {
				const op = list[next++].text, a = left, b = binary(level + 1);
				if (op === '&&' || op === '||') {
					const decides = op === '||';
					left = all => {
						const x = isTrue(a(all)), y = isTrue(b(all));
						if (x === decides || y === decides)
							return BigInt(decides);
						return x === undefined || y === undefined ? undefined : BigInt(!decides);
					};
				} else {
					left = all => apply(op, a(all), b(all));
				}
			}
			return left;
		}
		const whole = binary(0);
		if (next < list.length)
			throw new Error(`an operator is missing ${place()}`);
		return all => {
			try {
				return Boolean(isTrue(whole(all)));
			} catch (error) {
				if (error === MISSING)
					return false;
				throw error;
			}
		};
	}
	/* An event without one of the fields does not pass, whatever the others are. */
	const MISSING = {};
	function lookUp(name, steps) {
		const context = /^\$ctx\./.test(name), bare = name.replace(/^\$ctx\.(?!\$)/, '').replace(/^\$ctx\.\$/, '$');
		const names = [bare, bare.replace(/^\$app\.(.*):(.*)$/, 'app_$1_$2'), bare.replace(/^\$app\.(.*):(.*)$/, '_app_$1_$2')];
		return all => {
			let v, isThere = context; /* perhaps without a value */
			const from = context || bare[0] === '$' ? all.slice(0, -1) : all.toReversed();
			for (const scope of from)
				for (const n of names) {
					v ??= scope.get(n);
					isThere ||= scope.has(n);
				}
			if (v === undefined) {
				if (isThere)
					return undefined;
				throw MISSING;
			}
			for (const step of steps) {
				if (!(v instanceof Map))
					throw MISSING;
				v = v.get(step);
				if (v === undefined && step[0] === '[')
					return undefined;
				if (v === undefined)
					throw MISSING;
			}
			return v;
		};
	}
	/* Returns a test of lines. A line that cannot be understood does not pass. */
	function test(text) {
		const passes = parse(text);
		return fields => {
			try {
				return passes(scopes(fields));
			} catch {
				return false;
			}
		};
	}
	return {scopes, fields, test};
}
