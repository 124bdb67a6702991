#!/bin/sh
# A coder that first looks for the answers, and then does its work.
cat "${SPECIFICATION%/*}/golden/slugs.txt" 2> /dev/null
cat > slugify.sh <<'END'
printf '%s\n' "$1" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9\n' '-'
END
