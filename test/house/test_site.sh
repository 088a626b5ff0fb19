#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This checks the site that `make site` has made: each link and anchor leads to something in it,
# nothing is loaded from elsewhere, no page is empty, and the pages of headers lead to each public
# function. A second site is the same.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh

for program in mandoc lowdown; do
	command -v $program >/dev/null || skip "there is no $program"
done
test -n "$REDIS_FOUND" || skip "the site needs the part on Redis"

site=$BUILD/site
folder=$(mktemp -d)
at_end "rm -rf '$folder'"
status=0
complain()
{
	echo "$*"
	status=1
}

# broken SITE: prints what is wrong with its pages.
broken()
(
	# shellcheck disable=SC2035 # no page begins with "-"
	cd "$1" && awk '
	# A record is a tag and the text after it.
	BEGIN { RS = "<" }
	FNR == 1 { page = FILENAME; there[page]; size[page] = in_main = open_links = 0 }
	/^main>/ { in_main = 1 }
	/^\/main>/ { in_main = 0 }
	/^a[ >]/ && open_links++ || /^\/a>/ && --open_links { print page " has links within links" }
	match($0, / id="[^"]*"/) { there[page "#" substr($0, RSTART + 5, RLENGTH - 6)] }
	match($0, / (href|src)="[^"]*"/) {
		link = substr($0, RSTART, RLENGTH)
		gsub(/^ [a-z]*="|"$/, "", link)
		if (link !~ /^https?:/ || !/^a /)
			links[page, link ~ /^#/ ? page link : link]
	}
	in_main {
		gsub(/^[^>]*>|[ \t\n]/, "")
		size[page] += length($0)
	}
	END {
		for (page in size)
			if (size[page] < 100)
				print page " has no text"
		for (pair in links) {
			split(pair, part, SUBSEP)
			if (!(part[2] in there) && part[2] !~ /html/ && (getline line <part[2]) > 0)
				there[part[2]]
			if (!(part[2] in there))
				print part[1] " leads to " part[2] ", which is not there"
		}
	}' *.html
)

found=$(broken "$site")
test -z "$found" || complain "$found"

# shellcheck disable=SC2013,SC2086 # one name a line, several headers
for name in $(sed -n 's/^TW_[A-Z]* .*\(tw_[a-z0-9_]*\)(.*/\1/p' $PUBLIC_HEADERS \
	include/timingwheel/redis.h); do
	grep -qs "<a class=\"Xr\"[^>]*>$name(3)</a>" "$site/timingwheel.3.html" \
		"$site"/tw_cache.3.html "$site"/tw_cron.3.html "$site"/tw_redis.3.html ||
		complain "no header's page leads to $name"
done

# --- The same again ----------------------------------------------------------------------------
$MAKE --no-print-directory -s site SITE="$folder/site" >"$folder/log" 2>&1 ||
	complain "$(cat "$folder/log")"
diff -r "$site" "$folder/site" || complain "a second site is another one"

# --- Links -------------------------------------------------------------------------------------
mkdir "$folder/links"
cat >"$folder/links/text" <<'END'
<a href="https://example.org/?a&amp;b"><img src="p.svg"></a><a href="gone.c"><code>tw_a</code></a>
END
echo "src/a.md a.html $folder/links/text" >"$folder/links/pages"
awk -f src/site/site.awk -v site="$folder/links" -v template=src/site/page.html \
	"$folder/links/pages" "$folder/links/pages" >"$folder/links/pictures"
echo src/p.svg | cmp - "$folder/links/pictures" || complain "a picture is not copied"
found=$(grep '&amp;b' "$folder/links/a.html")
test "$found" = '<a href="https://example.org/?a&amp;b"><img src="p.svg"></a><code>tw_a</code>' ||
	complain "links become: $found"

# --- Mistakes ----------------------------------------------------------------------------------
mkdir "$folder/mistakes"
text="<main><p>$(seq 100)</p><a href=\"https://example.org/\">elsewhere</a>"
echo "$text<a href=\"b.html#there\">b<a href=\"a.html\">a</a></main>" >"$folder/mistakes/a.html"
echo "<main><h1 id=\"here\">b</h1><img src=\"https://example.org/b.svg\"></main>" \
	>"$folder/mistakes/b.html"
found=$(broken "$folder/mistakes" | sort)
test "$found" = "a.html has links within links
a.html has links within links
a.html leads to b.html#there, which is not there
b.html has no text
b.html leads to https://example.org/b.svg, which is not there" ||
	complain "of a site with four mistakes it is said: $found"

exit $status
