# SPDX-License-Identifier: MIT
# Completion of kymo in bash. It asks kymo itself: the help has the commands and options, and the
# daemon that runs, if any, has the sessions. Installed as share/bash-completion/completions/kymo.

_kymo_commands()
{
	kymo help 2>/dev/null | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }'
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

# The options of command $1, "--output=DIR", "--all", and those of one letter, "-o=DIR", "-a".
_kymo_options()
{
	kymo help "$1" 2>/dev/null | awk '/^Options:/ { on = 1; next } /^$/ { on = 0 }
		on && $1 ~ /^-.,$/ { print $2; sub(/,/, "", $1); sub(/--[a-z0-9-]*/, $1, $2); print $2; next }
		on && $1 ~ /^--/ { print $1 }'
}

# Beginnings $2 of what help calls $1: the argument of an option, or how a command is used, without its options.
_kymo_values()
{
	case $1 in
	SESSION | *'[ NAME'* | 'kymo set-session '*) compgen -W "$(_kymo_sessions)" -- "$2" ;;
	DIR | *' DIR'* | *TRACE*) compgen -d -- "$2" ;;
	'kymo record '*) compgen -c -- "$2" ;;
	'kymo help '*) compgen -W "$(_kymo_commands)" -- "$2" ;;
	'kymo fleet '*) compgen -W "$(cut -d ' ' -f 3 <<<"$1" | tr '|' ' ')" -- "$2" ;;
	'kymo snapshot '* | 'kymo regenerate '*) compgen -W "$(cut -d ' ' -f 3 <<<"$1")" -- "$2" ;;
	kymo*) ;;
	*'|'*) compgen -W "$(tr '|' '\n' <<<"$1" | grep -v '[A-Z]')" -- "$2" ;;
	esac
}

# Succeeds if a word from number $1 on, before the current one, is neither an option nor the argument of one. $2: the options.
_kymo_has_argument()
{
	local at=$1 word

	while [ "$at" -lt "$COMP_CWORD" ]; do
		word=${COMP_WORDS[at]}
		case $word in
		--) [ $((at + 1)) -lt "$COMP_CWORD" ] && return ;;
		-*)
			if [ "${COMP_WORDS[at + 1]}" = = ]; then
				at=$((at + 2))
			elif [[ $'\n'$2 == *$'\n'"$word="* ]]; then
				at=$((at + 1))
			fi
			;;
		*) return 0 ;;
		esac
		at=$((at + 1))
	done
	return 1
}

_kymo()
{
	local command cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} options what
	local at=1

	while [ "$at" -lt "$COMP_CWORD" ] && [[ ${COMP_WORDS[at]} == -* ]]; do
		at=$((at + 1))
	done
	command=${COMP_WORDS[at]}
	if [ "$COMP_CWORD" = "$at" ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_kymo_commands) $(_kymo_front)" -- "$cur")
		return
	fi
	# "--option=value" is three words.
	if [ "$cur" = = ]; then
		cur=
	elif [ "$before" = = ]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	options=$(_kymo_options "$command")
	# The words behind COMMAND are its arguments: the shell completes them as files.
	if [ "$command" = record ] && _kymo_has_argument $((at + 1)) "$options"; then
		return
	fi
	# The user's word is data: it never becomes a part of a script.
	what=$(before="$before=" awk 'index($0, ENVIRON["before"]) == 1 { print substr($0, length(ENVIRON["before"]) + 1) }' <<<"$options")
	if [ -z "$what" ] && [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(sed -n 's/^\(--[a-z0-9-]*=\{0,1\}\).*/\1/p' <<<"$options")" -- "$cur")
		[[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace
		return
	fi
	[ "$what" ] || what=$(kymo help "$command" 2>/dev/null | sed -n 's/\[-[^]]*\]//g; s/^Usage: //p')
	case $what in
	# The shell quotes names of files, and writes a slash behind those of directories.
	DIR | *' DIR'* | *TRACE*) compopt -o filenames ;;
	esac
	mapfile -t COMPREPLY < <(_kymo_values "$what" "$cur")
}

complete -o default -F _kymo kymo
