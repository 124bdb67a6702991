#compdef tool
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
# The options of the program itself are accepted everywhere.
_tool_kind() { local own; own=$(_tool_value "${at:+$at }$1"); if [ -n "$own" ] || [ -z "$at" ]; then printf '%s' "$own"; else _tool_value "$1"; fi; }
_tool_offered() { _tool_options "$at"; [ -z "$at" ] || _tool_options ''; }
# Sets at (the command so far), wanted (the kind of the completed word) and place (--data DIR and similar options).
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
# Asks a running daemon and never starts one. bash expands the candidates, so only plain ids are offered.
_tool_runs() {
  timeout 2 muniment "${place[@]}" --no-autostart --json run list --limit 100 2>/dev/null | sed -n 's/^{"run_id":"\([A-Za-z0-9._:-]*\)".*/\1/p'
}
_tool_zsh() {
  local cur=${words[CURRENT]} at wanted line option_value=''
  local -a lines place
  _tool_walk "${(@)words[2,CURRENT-1]}"
  [[ $CURRENT -le 2 ]] || option_value=$(_tool_kind "${words[CURRENT-1]}")
  case $wanted in
    command) _command_names -e; return ;;
    dir) _files -/; return ;;
    words\ *) compadd -- ${=wanted#words }; return ;;
    run) [[ $cur == -* ]] || compadd -- ${(f)"$(_tool_runs)"} ;;
    file) [[ $cur == -* && -z $option_value ]] || { _files; return } ;;
  esac
  [[ -z $option_value ]] || return 0
  lines=()
  if [[ $cur == -* ]]; then
    for line in ${(f)"$(_tool_offered)"}; do lines+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}"); done
    _describe -o option lines
  else
    for line in ${(f)"$(_tool_commands "$at")"}; do lines+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}"); done
    (( ! ${#lines} )) || _describe command lines
  fi
}
_tool_zsh "$@"
