#!/bin/sh
# Writes the specification, which the coder reads, and the golden file, which it cannot see.
set -e
echo 'slugify.sh TITLE prints TITLE in lower case, with "-" for each run of other characters than letters and digits.' > "$SPECIFICATION/slugify.txt"
printf 'blind-workflows\nc-20-in-2-days\n' > "$GOLDEN/slugs.txt"
