# Completion for bash: made by scripts/manual.py from the command line's definitions.
_tool_commands() {
  case "$1" in
    '') printf '%s\n' 'run	Runs
put	Files' ;;
    'run') printf '%s\n' 'show	What happened; it'\''s here' ;;
  esac
}
_tool_options() {
  case "$1" in
    '') printf '%s\n' '--version	Which this is
--data	The data folder
--help	Print this help' ;;
    'run show') printf '%s\n' '-n	At most this many
--limit	At most this many
--on-halt	.stop: or go \ on — by policy' ;;
    'put') printf '%s\n' '--run	Into which run' ;;
  esac
}
_tool_value() {
  case "$1" in
    '--data') printf '%s\n' 'dir' ;;
    'run show -n') printf '%s\n' 'any' ;;
    'run show --limit') printf '%s\n' 'any' ;;
    'run show --on-halt') printf '%s\n' 'words block stop' ;;
    'put --run') printf '%s\n' 'run' ;;
  esac
}
_tool_places() {
  case "$1" in
    'run show') printf '%s\n' 'run' ;;
    'put') printf '%s\n' 'file
*' ;;
  esac
}
# The program's own options are understood everywhere.
_tool_kind() { local own; own=$(_tool_value "${at:+$at }$1"); if [ -n "$own" ] || [ -z "$at" ]; then printf '%s' "$own"; else _tool_value "$1"; fi; }
_tool_offered() { _tool_options "$at"; [ -z "$at" ] || _tool_options ''; }
# Sets: at (the command so far), wanted (the kind of the word that is completed), and place (--data DIR and the like).
_tool_walk() {
  at='' wanted='' place=()
  local word kind='' option='' count=0 IFS=$'\n'
  for word in "$@"; do
    if [ -n "$option" ]; then
      case $option in --data|--socket|--config) place+=("$option" "$word") ;; esac
      option='' wanted=''
      continue
    fi
    case $word in
      --) wanted=command; return ;;
      --*=*) continue ;;
      -*)
        kind=$(_tool_kind "$word")
        if [ -n "$kind" ]; then option=$word wanted=$kind; fi
        continue ;;
    esac
    if _tool_commands "$at" | cut -f1 | grep -qxF -e "$word"; then at=${at:+$at }$word; else count=$((count + 1)); fi
  done
  [ -z "$option" ] || return 0
  wanted=$(_tool_places "$at" | awk -v n="$count" '$0 != "*" { last = $0; if (NR == n + 1) { print; done = 1; exit } } END { if (!done && $0 == "*") print last }')
}
# Asks a daemon that runs, and never starts one. bash expands what it completes from: only plain ids are offered.
_tool_runs() {
  timeout 2 muniment "${place[@]}" --no-autostart --json run list --limit 100 2>/dev/null | sed -n 's/^{"run_id":"\([A-Za-z0-9._:-]*\)".*/\1/p'
}
_tool_complete() {
  local cur=${COMP_WORDS[COMP_CWORD]} before=() i at wanted place offered=''
  COMPREPLY=()
  # bash takes "=" for a word of its own: --data=DIR is three.
  for ((i = 1; i < COMP_CWORD; i++)); do
    [ "${COMP_WORDS[i]}" = '=' ] || before+=("${COMP_WORDS[i]}")
  done
  [ "$cur" != '=' ] || cur=''
  _tool_walk "${before[@]}"
  case $wanted in
    command) mapfile -t COMPREPLY < <(compgen -c -f -- "$cur"); return ;;
    dir) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur"); return ;;
    words\ *) offered=$(printf '%s\n' ${wanted#words }) ;;
    run) [[ $cur == -* ]] || offered=$(_tool_runs) ;;
  esac
  if [ "${#before[@]}" -gt 0 ] && [ -n "$(_tool_kind "${before[-1]}")" ]; then
    [ "$wanted" != file ] || { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return; }
  elif [[ $cur == -* ]]; then
    offered=$(_tool_offered | cut -f1)
  elif [ "$wanted" = file ]; then
    compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return
  else
    offered+=$'\n'$(_tool_commands "$at" | cut -f1)
  fi
  mapfile -t COMPREPLY < <(compgen -W "$offered" -- "$cur")
}
complete -F _tool_complete tool
