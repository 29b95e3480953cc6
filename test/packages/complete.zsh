# SPDX-License-Identifier: MIT
# complete.zsh FILE WORD...: prints what the completion in FILE offers for the last word. Functions
# stand in for zsh's builtins, which work inside of its line editor only.
file=$1
shift
words=("$@") CURRENT=$#
PREFIX=$words[CURRENT]
compset() { PREFIX=${PREFIX#*=}; }
compadd() {
	local word
	while [[ $1 == -* && $1 != -- ]]; do [[ $1 == -S ]] && shift; shift; done
	[[ $1 == -- ]] && shift
	for word in "$@"; do [[ $word == ${PREFIX}* ]] && print -r -- $word; done
}
_describe() { local -a all=(${(P)2}); compadd -- ${all%%:*}; }
_files() { print files; }
_command_names() { print commands; }
autoload -Uz $file
functions[_kymo]="$(<$file)"
_kymo
