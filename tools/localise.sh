#!/bin/sh
# localise.sh ARCHIVE OUTPUT LD OBJCOPY AR - makes one object of an archive in which only the default-visibility symbols
# remain global, so that a program linking the static library cannot meet our internal names.
set -eu
archive=$1 output=$2 ld=$3 objcopy=$4 ar=$5
object=${output%.a}.o
"$ld" -r -o "$object" --whole-archive "$archive"
"$objcopy" --localize-hidden "$object"
rm -f "$output"
"$ar" rcs "$output" "$object"
rm -f "$object"
