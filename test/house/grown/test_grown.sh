#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This runs a program built with grown structs with today's library, and today's program with a
# library whose structs have grown, both under the address sanitizer. A call that reads or fills a
# struct of the program gets its size, unless the struct never changes.

cd "$(dirname "$0")/../../.." || exit 1

case $SANITIZE in
"" | *address*) ;;
*)
	echo "the address sanitizer goes with no $SANITIZE"
	exit 77
	;;
esac

headers=$PUBLIC_HEADERS

# --- Which structs grow ------------------------------------------------------------------------
# pointers TEXT: prints for each parameter "struct TYPE *NAME" a line "TYPE NAME", and the name of
# the size_t behind it, if there is one.
pointers()
{
	echo "$1" | tr -s '\n\t ' ' ' |
		grep -o 'struct tw_[a-z_]* \*[a-z_]*\(, size_t [a-z_]*\)\{0,1\}[,)]' |
		sed 's/^struct //; s/[*,)]//g; s/ size_t//'
}

# shellcheck disable=SC2086 # several headers
{
	public=$(sed -n 's/^struct \(tw_[a-z_]*\) {$/\1/p' $headers | sort)
	nested=$(sed -n 's/^	struct \(tw_[a-z_]*\) [a-z].*/\1/p' $headers)
	elements=$(pointers "$(cat $headers)" | awk 'NF == 3 && $3 != $2 "_size" { print $1 }')
	calls=$(sed -n '/^TW_API/,/;$/p' $headers)
}
grown=$(printf '%s\n' "$public" | grep -vxF -e tw_alarm -e "$nested" -e "$elements")

status=0
for name in $grown; do
	if pointers "$calls" | grep "^$name " | grep -qv ' \(.*\) \1_size$'; then
		echo "a call takes struct $name without its size"
		status=1
	fi
	if ! grep -q "struct $name\\b" test/house/grown/*.c; then
		echo "no program uses struct $name"
		status=1
	fi
done

# --- Programs and libraries --------------------------------------------------------------------
folder=$BUILD/test/house/grown
mkdir -p "$folder/include/timingwheel"
if ! echo 'int main(void) { return 0; }' | $CC -fsanitize=address -o "$folder/none" -xc -; then
	echo "$CC has no address sanitizer"
	exit 77
fi
script=
for name in $grown; do
	script="$script /^struct $name {\$/,/^};\$/s/^};\$/	uint64_t grown; };/;"
done
for header in $headers; do
	sed "$script" "$header" >"$folder/new"
	cmp -s "$folder/new" "$folder/$header" || mv "$folder/new" "$folder/$header"
done

# This make is separate from the one that runs this, whose job server is out of reach here.
MAKEFLAGS='' MFLAGS='' "$MAKE" BUILD="$folder/library" SANITIZE=address CFLAGS=-O0 \
	OUR_CPPFLAGS="-D_GNU_SOURCE -I$folder/include -Isrc" "$folder/library/libtimingwheel.a" ||
	exit 1

# try NAME LIBRARY FLAG...: builds the program with these flags, and runs it.
try()
{
	program=$folder/$1
	library=$2
	shift 2
	# shellcheck disable=SC2086 # flags
	$CC -std=c11 -Wall -Wextra -Werror -g $SANITIZE_FLAGS -fsanitize=address "$@" \
		-o "$program" test/house/grown/calls.c "$library/libtimingwheel.a" -pthread &&
		"$program" || status=1
}
try grown_program "$BUILD" -DGROWN -I"$folder/include"
try grown_library "$folder/library" -Iinclude
exit $status
