#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Makes the site: site.sh SITE MAN VERSION PAGE.md...
#
# SITE is the folder to write, MAN the one with the manual's pages. The first page is index.html.
# The page of another file in Markdown has the name of its file, with "-" for "/". A page of the
# manual that has several names is written once. The same files make the same site.

set -e
export LC_ALL=C
site=$1 man=$2 version=$3
shift 3
home=src/site

missing=
for program in mandoc lowdown; do
	command -v $program >/dev/null || missing="$missing $program"
done
if test -n "$missing"; then
	echo "make site needs these Debian packages:$missing" >&2
	exit 1
fi

rm -rf "$site"
mkdir -p "$site"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A line for each source: its path, the name of its page, the file with its text in HTML. A name of
# the manual that is a link has the page that it leads to, and no text.
name=index
for source in "$@"; do
	lowdown -T html "$source" >"$work/$name"
	echo "$source $name.html $work/$name"
	shift
	test $# = 0 || name=$(echo "${1%.md}" | tr 'A-Z/' 'a-z-')
	name=${name%-readme}
done >"$work/pages"
for source in "$man"/man?/*; do
	if test -h "$source"; then
		echo "$source $(readlink "$source").html"
	else
		page=${source##*/}
		mandoc -T html -O fragment,man=%N.%S "$source" >"$work/$page"
		echo "$source $page.html $work/$page"
	fi
done >>"$work/pages"

awk -f $home/site.awk -v site="$site" -v version="$version" -v template=$home/page.html \
	"$work/pages" "$work/pages" >"$work/pictures"
sort -u "$work/pictures" | xargs -I{} cp {} "$site"
cp $home/site.css "$site"
