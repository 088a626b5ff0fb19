# SPDX-License-Identifier: MIT
#
# Makes the pages of the site; prints the pictures that pages show. site.sh calls it, with a list of
# pages that it reads twice.
#
# Links to files that have a page lead to that; pictures are copied; other links within the project
# become text. Names of the library in code become links.

BEGIN {
	while ((getline line <template) > 0)
		template_text = template_text line "\n"
}

# The first time, each source is mapped to its page.
NR == FNR {
	page_of[$1] = $2
	if ($1 ~ /\.[1-9]$/) {
		name = $1
		sub(/.*\//, "", name)
		page_of["manual " name] = $2
		page_of["src/man/" name] = $2
	}
	next
}

NF == 3 {
	make_page($1, $2, $3)
}

# Returns what the text has between the first pair of the patterns.
function between(text, opening, closing)
{
	if (!match(text, opening))
		return ""
	text = substr(text, RSTART + RLENGTH)
	match(text, closing)
	return substr(text, 1, RSTART - 1)
}

# Returns the text without tags, on one line.
function plain(text)
{
	gsub(/<[^>]*>/, "", text)
	gsub(/[ \t\n]+/, " ", text)
	return text
}

function replace(text, pattern, by, at)
{
	at = index(text, pattern)
	return substr(text, 1, at - 1) by substr(text, at + length(pattern))
}

function make_page(source, page, file, text, line, title, manual)
{
	text = ""
	while ((getline line <file) > 0)
		text = text line "\n"
	manual = source ~ /\.[1-9]$/
	if (manual) {
		# Titles are ours, and headings stand below them.
		text = between(text, "<div class=\"manual-text\">", "<table class=\"foot\">")
		gsub(/<h2/, "<h3", text)
		gsub(/<\/h2/, "</h3", text)
		gsub(/<h1/, "<h2", text)
		gsub(/<\/h1/, "</h2", text)
		title = page
		sub(/\.html$/, "", title)
		title = substr(title, 1, length(title) - 2) "(" substr(title, length(title)) ")"
		text = "<h1>" title "</h1>\n<div>" text
	} else
		title = text ~ /<h1/ ? plain(between(text, "<h1[^>]*>", "</h1>")) : source
	text = linked(text, source, page, manual)
	line = replace(template_text, "@TITLE@", title)
	line = replace(line, "@VERSION@", version)
	if (index(line, "href=\"" page "\""))
		line = replace(line, "href=\"" page "\"", "href=\"" page "\" aria-current=\"page\"")
	printf "%s", replace(line, "@TEXT@\n", text) >(site "/" page)
	close(site "/" page)
}

# --- Links -------------------------------------------------------------------------------------
# Returns the address in the site of what a link of the source leads to, or "".
function address(link, source, manual, anchor)
{
	if (link ~ /^(https?:|#)/)
		return link
	if (manual)
		return page_of["manual " link]
	if (match(link, /#.*/)) {
		anchor = substr(link, RSTART)
		link = substr(link, 1, RSTART - 1)
	}
	sub(/[^\/]*$/, "", source)
	link = source link
	while (sub(/[^\/]+\/\.\.\//, "", link))
		;
	if (link in page_of)
		return page_of[link] anchor
	if (link !~ /\.(svg|png)$/)
		return ""
	print link
	sub(/.*\//, "", link)
	return link
}

function linked(text, source, page, manual, out, tag, attribute, before, behind, to, in_link)
{
	while (match(text, /<(a [^>]*|\/a|img [^>]*|code)>/)) {
		tag = substr(text, RSTART, RLENGTH)
		out = out substr(text, 1, RSTART - 1)
		text = substr(text, RSTART + RLENGTH)
		if (match(tag, / (href|src)="[^"]*"/)) {
			attribute = substr(tag, RSTART, RLENGTH)
			before = substr(tag, 1, RSTART - 1)
			behind = substr(tag, RSTART + RLENGTH)
			to = address(between(attribute, "\"", "\""), source, manual)
			if (tag ~ /^<a/)
				in_link = to != ""
			sub(/".*/, "", attribute)
			tag = to == "" ? "" : before attribute "\"" to "\"" behind
		} else if (tag ~ /^<\/?a/) {
			# An anchor without an address goes, and so does the end of one that went.
			tag = in_link ? tag : ""
			in_link = 0
		} else if (tag == "<code>" && !in_link && text ~ /^tw_[a-z_0-9]+(\(\))?<\/code>/) {
			attribute = between(text, "^", "<")
			to = attribute
			sub(/\(\)/, "", to)
			to = page_of["manual " to ".3"]
			if (to != "" && to != page) {
				tag = "<a href=\"" to "\"><code>" attribute "</code></a>"
				text = substr(text, length(attribute "</code>") + 1)
			}
		}
		out = out tag
	}
	return out text
}
