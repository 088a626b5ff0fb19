# SPDX-License-Identifier: MIT
#
# Makes the pages of the site and the index of its search; prints the pictures that pages show.
# site.sh calls it, with a list of pages that it reads twice.
#
# Links to files that have a page lead to that; pictures are copied; other links within the project
# become text. Names of the library in code become links.
#
# An entry of the index is [title, address, names, brief, words]: the names that a page of the
# manual has, a sentence about it, and each word of the text once. A page of section 3 is one entry.
# Other pages have one for each section.

BEGIN {
	index_file = site "/index.js"
	print "const entries = [" >index_file
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
		sub(/\.[1-9]$/, "", name)
		names[$2] = names[$2] " " name
	}
	next
}

NF == 3 {
	make_page($1, $2, $3)
}

END {
	print "];" >index_file
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
	add_entries(text, title, page)
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

# --- The index ---------------------------------------------------------------------------------
function quoted(text)
{
	gsub(/\\/, "\\\\", text)
	gsub(/"/, "\\\"", text)
	return "\"" text "\""
}

# Returns each word of the text once, in its order.
function words(text, count, word, seen, i, out)
{
	gsub(/<[^>]*>|&[^;]*;/, " ", text)
	count = split(tolower(text), word, /[^a-z0-9_]+/)
	for (i = 1; i <= count; i++)
		if (length(word[i]) > 1 && !(word[i] in seen)) {
			seen[word[i]]
			out = out (out == "" ? "" : " ") word[i]
		}
	return out
}

function add_entry(title, to, name_list, brief, text)
{
	print "[" quoted(title) "," quoted(to) "," quoted(name_list) "," quoted(brief) "," \
		quoted(words(text)) "]," >index_file
}

function add_entries(text, title, page, name_list, section, heading, tag, section_text)
{
	name_list = substr(names[page], 2)
	if (page ~ /\.3\.html$/) {
		add_entry(title, page, name_list, plain(between(text, "<span class=\"Nd\">", "</span>")), text)
		return
	}
	section = page
	while (match(text, /<h[23][^>]* id="[^"]*"[^>]*>/)) {
		tag = substr(text, RSTART, RLENGTH)
		section_text = substr(text, 1, RSTART - 1)
		text = substr(text, RSTART + RLENGTH)
		add_entry(title, section, name_list, heading, section_text)
		name_list = ""
		section = page "#" between(tag, "id=\"", "\"")
		heading = plain(between(text, "^", "</h[23]>"))
	}
	add_entry(title, section, name_list, heading, text)
}
