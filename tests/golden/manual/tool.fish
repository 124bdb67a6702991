# Completion for fish: made by scripts/manual.py from the command line's definitions.
set -g __tool_commands 'run' 'run show' 'put'
function __tool_at --description 'Whether the command so far is $argv'
  set -l so_far
  for word in (commandline -opc)[2..]
    string match -q -- '-*' $word; and continue
    if contains -- (string join ' ' $so_far $word) $__tool_commands
      set -a so_far $word
    end
  end
  test "$so_far" = "$argv"
end
function __tool_runs --description 'Asks a daemon that runs, and never starts one'
  timeout 2 muniment --no-autostart --json run list --limit 100 2>/dev/null | string replace -rf '^\{"run_id":"([^"]*)".*' '$1'
end
complete -c tool -s h -l help -d 'Print this help'
complete -c tool -l version -d 'Which this is'
complete -c tool -l data -x -a '(__fish_complete_directories)' -d 'The data folder'
complete -c tool -n '__tool_at' -f
complete -c tool -n '__tool_at' -a run -d 'Runs'
complete -c tool -n '__tool_at' -a put -d 'Files'
complete -c tool -n '__tool_at run' -f
complete -c tool -n '__tool_at run' -a show -d 'What happened; it\'s here'
complete -c tool -n '__tool_at run show' -f
complete -c tool -n '__tool_at run show' -a '(__tool_runs)'
complete -c tool -n '__tool_at run show' -s n -l limit -x -d 'At most this many'
complete -c tool -n '__tool_at run show' -l on-halt -x -a 'block stop' -d '.stop: or go \\ on — by policy'
complete -c tool -n '__tool_at put' -l run -x -a '(__tool_runs)' -d 'Into which run'
