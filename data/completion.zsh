#compdef kymo
# SPDX-License-Identifier: MIT
# Completion of kymo in zsh. It asks kymo itself: the help has the commands and options, and the
# daemon that runs, if any, has the sessions. Installed as share/zsh/site-functions/_kymo.

_kymo_commands()
{
	kymo help 2>/dev/null | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 }
		on { name = $1; sub(/^ *[^ ]+ +/, ""); print name ":" $0 }'
}

# The options before the command.
_kymo_front()
{
	kymo help 2>/dev/null | awk '$1 ~ /^-.,$/ { print $2 }'
	printf '%s\n' --json --help --version
}

_kymo_sessions()
{
	kymo list 2>/dev/null | sed -n 's/^\([^ ]*\) \[.*/\1/p'
}

# "--output=:DIR" of each long option of command $1, and "-o=:DIR" of one letter.
_kymo_options()
{
	kymo help "$1" 2>/dev/null | awk '/^Options:/ { on = 1; next } /^$/ { on = 0 }
		on && /^ +-/ {
			name = ($1 ~ /^--/) ? $1 : $2; arg = ""
			sub(/\[=.*/, "", name)
			if (i = index(name, "=")) { arg = substr(name, i + 1); name = substr(name, 1, i) }
			if (name ~ /^--/) print name ":" arg
			if (arg && $1 ~ /^-.,$/) print substr($1, 1, 2) "=:" arg
		}'
}

# What help calls $1: the argument of an option.
_kymo_value()
{
	case $1 in
	SESSION) compadd ${(f)"$(_kymo_sessions)"} ;;
	*DIR* | *FILE* | *PATH*) _files ;;
	*\|*) compadd ${(s:|:)1} ;;
	esac
}

# Is a word from number $1 on, before the current one, neither an option nor the argument of one? It uses the caller's rows.
_kymo_has_argument()
{
	local -i at=$1

	while (( at < CURRENT )); do
		case $words[at] in
		--) (( at + 1 < CURRENT )); return ;;
		-*) [[ -n ${rows[(r)$words[at]=:*]} ]] && (( at++ )) ;;
		*) return 0 ;;
		esac
		(( at++ ))
	done
	return 1
}

_kymo()
{
	local command before=$words[CURRENT-1] usage row
	local -a rows options commands
	local -i at=2

	while (( at < CURRENT )) && [[ $words[at] == -* ]]; do
		(( at++ ))
	done
	command=$words[at]
	if (( CURRENT == at )) && [[ $PREFIX == -* ]]; then
		compadd -- ${(f)"$(_kymo_front)"}
		return
	fi
	if (( CURRENT == at )); then
		commands=(${(f)"$(_kymo_commands)"})
		_describe command commands
		return
	fi
	rows=(${(f)"$(_kymo_options $command)"})
	# The words behind COMMAND are its arguments.
	if [[ $command == record ]] && _kymo_has_argument $(( at + 1 )); then
		_files
		return
	fi
	if [[ $PREFIX == --*=* ]]; then
		row=${rows[(r)${PREFIX%%=*}=:*]}
		compset -P '*='
		_kymo_value ${row#*:}
		return
	fi
	if [[ $PREFIX == -* ]]; then
		options=(${(M)${rows%%:*}:#--*})
		compadd -S '' -- ${(M)options:#*=}
		compadd -- ${options:#*=}
		return
	fi
	row=${rows[(r)$before=:*]}
	if [[ $before == -* && -n $row ]]; then
		_kymo_value ${row#*:}
		return
	fi
	usage=$(kymo help $command 2>/dev/null | sed -n 's/\[-[^]]*\]//g; s/^Usage: //p')
	case $usage in
	*'[ NAME'* | 'kymo set-session '*) compadd ${(f)"$(_kymo_sessions)"} ;;
	'kymo record '*) _command_names -e ;;
	'kymo snapshot '* | 'kymo regenerate '*) compadd ${usage[(w)3]} ;;
	'kymo fleet '*) compadd ${(s:|:)usage[(w)3]} ;;
	'kymo help '*) compadd ${${(f)"$(_kymo_commands)"}%%:*} ;;
	*) _files ;;
	esac
}

(( $+functions[compdef] )) && compdef _kymo kymo
[[ $funcstack[1] == _kymo ]] && _kymo "$@"
true
