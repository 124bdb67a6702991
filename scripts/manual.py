#!/usr/bin/env python3
"""Generates manual pages and shell completion from the command line definitions that the programs print.

    scripts/manual.py man PROGRAM PROSE VERSION       a page: PROSE with @options@ and @commands@ replaced
    scripts/manual.py config MUNIMENT PROSE VERSION   likewise with @keys@, from `muniment config print`
    scripts/manual.py bash|zsh|fish PROGRAM…          a completion script

PROGRAM is run with --command-tree; a .json file replaces its output. The build calls this script (meson.build).
"""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any, Iterator

Command = dict[str, Any]


def printed(program: str, *arguments: str) -> Any:
    if program.endswith(".json"):
        return json.loads(pathlib.Path(program).read_text())
    env = {key: value for key, value in os.environ.items() if not key.startswith("MUNIMENT_")}
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    return json.loads(subprocess.run([program, *arguments], check=True, capture_output=True, text=True, env=env).stdout)


def walk(command: Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Yields every command below the program's name, and the program itself as ()."""
    yield path, command
    for below in command["commands"]:
        yield from walk(below, path + (below["name"],))


def roff(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("^", "\\(ha").replace("~", "\\(ti").replace("`", "\\(ga").replace("'", "\\(aq")
    return "\\&" + text if text.startswith((".", "'")) else text


def sentence(text: str) -> str:
    """Returns the help text of an option with a full stop and generated sentences appended."""
    return text if not text or text[-1] in ".!?:" else text + "."


def value_of(option: Command) -> str:
    if option["choices"]:
        return "|".join(option["choices"])
    return option["value"]


def option_roff(option: Command) -> list[str]:
    value = value_of(option)
    shown = [f"\\fB{roff(name)}\\fR" for name in option["names"]]
    if option["positional"]:
        shown.append(f"\\fI{roff(option['positional'])}\\fR" + ("…" if option["many"] else ""))
    head = ", ".join(shown)
    if value and option["names"]:
        head += f" \\fI{roff(value)}\\fR"
    text = sentence(option["text"])
    if not option["names"] and option["choices"]:
        text += " One of: " + ", ".join(option["choices"]) + "."
    if option["bounds"]:
        text += f" From {option['bounds'].replace(' - ', ' to ')}."
    if option["default"]:
        text += f" Default: {option['default'].strip('[]')}."
    return [".TP", head, roff(text) or "\\&"]


def options_roff(command: Command) -> list[str]:
    positionals = [one for one in command["options"] if not one["names"]]
    return [line for one in positionals + [one for one in command["options"] if one["names"]] for line in option_roff(one)]


def synopsis(path: tuple[str, ...], command: Command) -> str:
    words = [f"\\fB{roff(' '.join(path))}\\fR"]
    if any(one["names"] for one in command["options"]):
        words.append("[\\fIOPTION\\fR]…")
    for one in command["options"]:
        if one["names"]:
            continue
        word = f"\\fI{roff(one['positional'])}\\fR" + ("…" if one["many"] else "")
        words.append(word if one["required"] else f"[{word}]")
    return " ".join(words)


def commands_roff(tree: Command) -> list[str]:
    lines = []
    for path, command in walk(tree):
        if not path or command["commands"]:
            continue
        lines += [".SS " + synopsis((tree["name"], *path), command), roff(sentence(command["text"]))]
        lines += options_roff(command)
    return lines


def keys_roff(keys: dict[str, Any]) -> list[str]:
    lines = []
    for name, key in keys.items():
        facts = [key["type"] + (f" ({key['unit']})" if key["unit"] else "")]
        if "min" in key:
            facts.append(f"at least {key['min']}" if "max" not in key else f"{key['min']} to {key['max']}")
        facts.append(f"default {key['default']}" if key["default"] else "no default" if name != "data" and name != "socket" else "")
        facts = [fact for fact in facts if fact]
        lines += [".TP", f"\\fB{roff(name)}\\fR", roff(sentence(key["text"])), ".br", roff("; ".join(facts)[0].upper() + "; ".join(facts)[1:] + ".")]
    return lines


def page(prose: str, version: str, filled: dict[str, list[str]]) -> str:
    lines = []
    for line in pathlib.Path(prose).read_text().splitlines():
        lines += filled[line] if line in filled else [line.replace("@version@", version)]
    # groff does not read UTF-8 without a preprocessor.
    return "".join(char if ord(char) < 128 else f"\\[u{ord(char):04X}]" for char in "\n".join(lines) + "\n")


def kind_of(option: Command) -> str:
    """Returns the kind of an option's value: words …, run, dir, file, or empty if unknown."""
    if option["choices"]:
        return "words " + " ".join(option["choices"])
    names = {option["value"], option["positional"], *(name.lstrip("-").upper() for name in option["names"])}
    if any("RUN" in name.replace("|", " ").split() for name in names):
        return "run"
    if names & {"DIR", "FOLDER", "SPOOL", "DATA", "TILES", "ARTIFACTS", "ARCHIVE"}:
        return "dir"
    if any(name.startswith("FILE") for name in names) or names & {"PATH", "OUTPUT", "KEY", "PROOF", "BUNDLE", "RECEIPT", "CHECKPOINT",
                                                                    "RESUME", "SAVE", "CONFIG", "SOCKET", "LOG-KEY"}:
        return "file"
    return "any"


def positionals(command: Command) -> list[str]:
    """Returns the kinds of the arguments in order; a last "*" means that the previous one repeats."""
    kinds: list[str] = []
    for one in command["options"]:
        if one["names"] or not one["positional"]:
            continue
        kinds.append(kind_of(one))
        if one["many"]:
            return kinds + ["*"]
    return kinds


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def table(name: str, rows: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> list[str]:
    lines = [f"{name}() {{", '  case "$1" in']
    lines += [f"    {quoted(key)}) printf '%s\\n' {quoted(value)} ;;" for key, value in rows if value]
    return lines + ["  esac", "}"]


def tables(tree: Command) -> list[str]:
    """Returns shell functions of a command's path that work in bash and zsh: one line per word, "word<TAB>meaning"."""
    start, everything = f"_{tree['name'].replace('-', '_')}", list(walk(tree))
    commands = [(" ".join(path), "\n".join(f"{one['name']}\t{one['text']}" for one in command["commands"])) for path, command in everything]
    options = [(" ".join(path), "\n".join(f"{name}\t{one['text']}" for one in command["options"] for name in one["names"])
                + ("" if path else "\n--help\tPrint this help")) for path, command in everything]
    values = [(" ".join((*path, name)), kind_of(one)) for path, command in everything for one in command["options"] if one["value"] for name in one["names"]]
    places = [(" ".join(path), "\n".join(positionals(command))) for path, command in everything]
    return (table(start + "_commands", commands) + table(start + "_options", options) + table(start + "_value", values) +
            table(start + "_places", places))


# Shared by bash and zsh. $words_: the words before the completed one, without the program.
WALK = r"""# The options of the program itself are accepted everywhere.
@_kind() { local own; own=$(@_value "${at:+$at }$1"); if [ -n "$own" ] || [ -z "$at" ]; then printf '%s' "$own"; else @_value "$1"; fi; }
@_offered() { @_options "$at"; [ -z "$at" ] || @_options ''; }
# Sets at (the command so far), wanted (the kind of the completed word) and place (--data DIR and similar options).
@_walk() {
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
        kind=$(@_kind "$word")
        if [ -n "$kind" ]; then option=$word wanted=$kind; fi
        continue ;;
    esac
    if @_commands "$at" | cut -f1 | grep -qxF -e "$word"; then at=${at:+$at }$word; else count=$((count + 1)); fi
  done
  [ -z "$option" ] || return 0
  wanted=$(@_places "$at" | awk -v n="$count" '$0 != "*" { last = $0; if (NR == n + 1) { print; done = 1; exit } } END { if (!done && $0 == "*") print last }')
}
# Asks a running daemon and never starts one. bash expands the candidates, so only plain ids are offered.
@_runs() {
  timeout 2 muniment "${place[@]}" --no-autostart --json run list --limit 100 2>/dev/null | sed -n 's/^{"run_id":"\([A-Za-z0-9._:-]*\)".*/\1/p'
}
"""

BASH = r"""@_complete() {
  local cur=${COMP_WORDS[COMP_CWORD]} before=() i at wanted place offered=''
  COMPREPLY=()
  # bash treats "=" as a separate word: --data=DIR is three words.
  for ((i = 1; i < COMP_CWORD; i++)); do
    [ "${COMP_WORDS[i]}" = '=' ] || before+=("${COMP_WORDS[i]}")
  done
  [ "$cur" != '=' ] || cur=''
  @_walk "${before[@]}"
  case $wanted in
    command) mapfile -t COMPREPLY < <(compgen -c -f -- "$cur"); return ;;
    dir) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur"); return ;;
    words\ *) offered=$(printf '%s\n' ${wanted#words }) ;;
    run) [[ $cur == -* ]] || offered=$(@_runs) ;;
  esac
  if [ "${#before[@]}" -gt 0 ] && [ -n "$(@_kind "${before[-1]}")" ]; then
    [ "$wanted" != file ] || { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return; }
  elif [[ $cur == -* ]]; then
    offered=$(@_offered | cut -f1)
  elif [ "$wanted" = file ]; then
    compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return
  else
    offered+=$'\n'$(@_commands "$at" | cut -f1)
  fi
  mapfile -t COMPREPLY < <(compgen -W "$offered" -- "$cur")
}
complete -F @_complete NAME
"""

ZSH = r"""@_zsh() {
  local cur=${words[CURRENT]} at wanted line option_value=''
  local -a lines place
  @_walk "${(@)words[2,CURRENT-1]}"
  [[ $CURRENT -le 2 ]] || option_value=$(@_kind "${words[CURRENT-1]}")
  case $wanted in
    command) _command_names -e; return ;;
    dir) _files -/; return ;;
    words\ *) compadd -- ${=wanted#words }; return ;;
    run) [[ $cur == -* ]] || compadd -- ${(f)"$(@_runs)"} ;;
    file) [[ $cur == -* && -z $option_value ]] || { _files; return } ;;
  esac
  [[ -z $option_value ]] || return 0
  lines=()
  if [[ $cur == -* ]]; then
    for line in ${(f)"$(@_offered)"}; do lines+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}"); done
    _describe -o option lines
  else
    for line in ${(f)"$(@_commands "$at")"}; do lines+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}"); done
    (( ! ${#lines} )) || _describe command lines
  fi
}
@_zsh "$@"
"""


def posix_completion(shell: str, trees: list[Command]) -> str:
    """Returns the completion script for bash or zsh."""
    made = "generated by scripts/manual.py from the command line definitions"
    lines = [f"#compdef {trees[0]['name']}" if shell == "zsh" else f"# Completion for bash: {made}."]
    for tree in trees:
        own = "_" + tree["name"].replace("-", "_")
        lines += tables(tree)
        lines += ((WALK + (BASH if shell == "bash" else ZSH)).replace("@_", own + "_").replace("NAME", tree["name"])).rstrip("\n").split("\n")
    return "\n".join(lines) + "\n"


FISH = r"""function @at --description 'Succeed if the command so far is $argv'
  set -l so_far
  for word in (commandline -opc)[2..]
    string match -q -- '-*' $word; and continue
    if contains -- (string join ' ' $so_far $word) $@commands
      set -a so_far $word
    end
  end
  test "$so_far" = "$argv"
end
function @runs --description 'Ask a running daemon; never start one'
  timeout 2 muniment --no-autostart --json run list --limit 100 2>/dev/null | string replace -rf '^\{"run_id":"([^"]*)".*' '$1'
end"""


def fish_option(name: str, condition: str, option: Command) -> str:
    words = [f"complete -c {name}", *condition.split("\n")]
    for one in option["names"]:
        words.append(f"-l {one[2:]}" if one.startswith("--") else f"-s {one[1:]}")
    kind = kind_of(option)
    if option["value"]:
        words.append({"run": "-x -a '(@runs)'".replace("@", f"__{name.replace('-', '_')}_"), "dir": "-x -a '(__fish_complete_directories)'",
                      "any": "-x", "file": "-r -F"}.get(kind, f"-x -a {quoted(kind[6:])}"))
    return " ".join([word for word in words if word] + [f"-d {fish_quoted(option['text'])}"])


def fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_completion(trees: list[Command]) -> str:
    lines = ["# Completion for fish: generated by scripts/manual.py from the command line definitions."]
    for tree in trees:
        name, own = tree["name"], f"__{tree['name'].replace('-', '_')}_"
        paths = [" ".join(path) for path, _ in walk(tree) if path]
        lines.append(f"set -g {own}commands " + " ".join(quoted(path) for path in paths))
        lines += FISH.replace("@", own).split("\n")
        lines += [f"complete -c {name} -s h -l help -d 'Print this help'"]
        lines += [fish_option(name, "", one) for one in tree["options"] if one["names"]]
        for path, command in walk(tree):
            condition = f"-n '{own}at {' '.join(path)}'" if path else f"-n '{own}at'"
            kinds = positionals(command)
            if command["commands"] or not any(kind in ("file", "dir") for kind in kinds):
                lines.append(f"complete -c {name} {condition} -f")
            if "run" in kinds:
                lines.append(f"complete -c {name} {condition} -a '({own}runs)'")
            lines += [f"complete -c {name} {condition} -a {kind[6:]!r}" for kind in kinds if kind.startswith("words ")]
            lines += [f"complete -c {name} {condition} -a {one['name']} -d {fish_quoted(one['text'])}" for one in command["commands"]]
            lines += [fish_option(name, condition, one) for one in command["options"] if one["names"] and command is not tree]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> None:
    if len(arguments) == 4 and arguments[0] == "man":
        tree = printed(arguments[1], "--command-tree")
        sys.stdout.write(page(arguments[2], arguments[3], {"@options@": options_roff(tree), "@commands@": commands_roff(tree)}))
    elif len(arguments) == 4 and arguments[0] == "config":
        keys = printed(arguments[1], "--data", "/nonexistent", "--json", "config", "print")
        sys.stdout.write(page(arguments[2], arguments[3], {"@keys@": keys_roff(keys)}))
    elif len(arguments) > 1 and arguments[0] in ("bash", "zsh"):
        sys.stdout.write(posix_completion(arguments[0], [printed(program, "--command-tree") for program in arguments[1:]]))
    elif len(arguments) > 1 and arguments[0] == "fish":
        sys.stdout.write(fish_completion([printed(program, "--command-tree") for program in arguments[1:]]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
