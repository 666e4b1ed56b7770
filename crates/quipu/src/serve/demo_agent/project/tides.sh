#!/bin/sh
# Prints a tide table from a file with lines of hour,height.
set -eu
while IFS=, read -r hour height; do
    bar=$(printf '%*s' "$(printf '%s\n' "$height" | awk '{print int($1 * 2 + 0.5)}')" '' | tr ' ' '#')
    printf '%s  %4s  %s\n' "$hour" "$height" "$bar"
done < "$1"
