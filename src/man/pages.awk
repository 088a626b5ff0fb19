# SPDX-License-Identifier: MIT
#
# Makes the manual's pages of section 3, in mdoc(7), of the public headers:
#
#     awk -f pages.awk -v folder=build/man/man3 -v date=2026-01-31 -v release=1.0.0 \
#         -v beside="name.7 ..." HEADER...
#
# A comment and the declarations behind it, up to the next comment or empty line, are an item, with
# a page if they declare a function, a struct, an enum or a type of functions. The page has the
# declarations as they stand in the header, and the comment's paragraphs; its lists, tables and code
# keep their lines. What stands behind a line "Returns:" is RETURN VALUES. Further names are links to
# the page. A header's own page has its opening comment, what is said without a declaration, and all
# items with their first sentences, in the header's order.
#
#     header_of, text_of, code_of, names_of   by item, 1 to `items`
#     constants_of                            names in #defines
#     item_of                                 by name: the item of its page
#     headers, opening                        each header, its first comment

BEGIN {
	place = "pages.awk"
	spaces = sprintf("%24s", "")
	if (date !~ /^[0-9]+-[0-9][0-9]-[0-9][0-9]$/)
		fail("no date, as 2026-01-31, but: " date)
}

function fail(text)
{
	print place ": " text >"/dev/stderr"
	failed = 1
	exit 1
}

# --- Reading -----------------------------------------------------------------------------------
# Joins two texts, of which the first may be empty.
function join(first, second, between)
{
	return first (first == "" ? "" : between) second
}

# A line of a comment, without what makes it a comment.
function bare(line)
{
	sub(/^\/\*/, "", line)
	sub(/[ \t]*\*\/.*$/, "", line)
	sub(/^ \*/, "", line)
	sub(/^ /, "", line)
	sub(/[ \t]+$/, "", line)
	return line
}

function begin_item(comment)
{
	items++
	header_of[items] = header
	text_of[items] = comment
}

# Gives the name a page, that of this item.
function add_page(name, is_function)
{
	if (is_function && text_of[items] == "")
		fail(name " has no comment")
	if (name in item_of)
		fail(name " would have two pages")
	item_of[name] = items
	names_of[items] = join(names_of[items], name, " ")
}

# The last line of a declaration has been read.
function end_declaration(code, name)
{
	name = code
	if (code ~ /^(struct|enum) [a-z_0-9]+ \{/) {
		sub(/ \{.*/, "", name)
		sub(/.* /, "", name)
		add_page(name)
	} else if (code ~ /\(/) {
		sub(/[ \t]*\(.*/, "", name)
		sub(/.*[ *]/, "", name)
		add_page(name, code !~ /^typedef/)
	} else if (text_of[items] != "") {
		sub(/;.*/, "", name)
		sub(/.* /, "", name)
		constants_of[items] = join(constants_of[items], name, " ")
	}
	code_of[items] = join(code_of[items], code, "\n")
	declaration = ""
}

FNR == 1 {
	header = FILENAME
	sub(/.*include\//, "", header)
	headers[++header_count] = header
	declaration = ""
	in_comment = in_define = is_open = 0
}

{
	place = FILENAME ":" FNR
}

in_comment {
	in_comment = !/\*\//
	if (bare($0) != "" || in_comment)
		text_of[items] = join(text_of[items], bare($0), "\n")
	next
}

declaration != "" {
	gsub(/\t/, "        ")
	declaration = declaration "\n" (index($0, spaces) == 1 ? substr($0, 8) : $0)
	if (declaration ~ /^(struct|enum) [a-z_0-9]+ \{/ ? /^}/ : /;[ \t]*$/)
		end_declaration(declaration)
	next
}

in_define {
	in_define = /\\$/
	# A table of statuses becomes one of text.
	if (in_statuses && split($0, parts, /X\(|, "|"/) > 2)
		text_of[items] = text_of[items] sprintf("\n  %-15s %s", parts[2], parts[3])
	next
}

/^\/\* SPDX/ || /^TW_(CHECKED|NONNULL|READS|FILLS)/ {
	next
}

/^\/\*/ {
	begin_item(bare($0))
	is_open = 1
	in_comment = !/\*\//
	next
}

/^$/ {
	is_open = 0
	next
}

/^#ifndef TIMINGWHEEL_/ {
	opening[header] = text_of[items--]
	next
}

/^#define/ {
	in_define = /\\$/
	in_statuses = /STATUS_LIST\(X\)/
	if (in_statuses)
		text_of[items] = text_of[items] "\n"
	else if (is_open && $2 !~ /\(|^TW_API$/ && index(constants_of[items], $2) == 0)
		constants_of[items] = join(constants_of[items], $2, " ")
	next
}

/^[a-zA-Z]/ && !/^extern/ {
	if (!is_open)
		begin_item("")
	is_open = 1
	sub(/^TW_API /, "")
	declaration = $0
	if (/;[ \t]*$/)
		end_declaration(declaration)
}

# --- Writing -----------------------------------------------------------------------------------
function put(line)
{
	print line >file
}

# A line of text or code: signs that a typesetter would make nicer stay as they are.
function literal(line)
{
	gsub(/\\/, "\\e", line)
	gsub(/≤/, "\\(<=", line)
	gsub(/≥/, "\\(>=", line)
	gsub(/…/, "...", line)
	gsub(/µ/, "u", line)
	gsub(/-/, "\\-", line)
	gsub(/'/, "\\(aq", line)
	gsub(/`/, "\\(ga", line)
	gsub(/\^/, "\\(ha", line)
	gsub(/~/, "\\(ti", line)
	return (line ~ /^\./ ? "\\&" : "") line
}

# Lines `from` to `to` of a text. Indented lines, those of a list, and lines behind these keep their
# form; others are running text, in which a sentence begins a line.
function put_lines(lines, from, to, i, line, is_literal, was_literal, has_begun)
{
	for (i = from; i <= to; i++) {
		if (lines[i] == "" && (!was_literal || i == to || lines[i + 1] !~ /^ /)) {
			if (was_literal)
				put(".Ed")
			was_literal = 0
			if (has_begun && i < to && lines[i + 1] !~ /^ /)
				put(".Pp")
			continue
		}
		is_literal = was_literal || lines[i] ~ /^ /
		if (is_literal && !was_literal)
			put(".Bd -literal")
		line = literal(lines[i])
		if (!is_literal)
			gsub(/[.!?][])]* /, "&\n", line)
		gsub(/ \n/, "\n", line)
		put(line)
		was_literal = is_literal
		has_begun = 1
	}
	if (was_literal)
		put(".Ed")
}

function put_text(text, count, lines)
{
	count = split(text, lines, "\n")
	put_lines(lines, 1, count)
}

# The description and what is returned. A header says once what all its calls return.
function put_comment(item, count, lines, returns)
{
	count = split(text_of[item], lines, "\n")
	for (returns = 1; returns <= count && lines[returns] !~ /^Returns:/; returns++)
		;
	put(".Sh DESCRIPTION")
	put_lines(lines, 1, returns - 1)
	if (returns > count && code_of[item] !~ /(^|\n)enum tw_status tw_/)
		return
	put(".Sh RETURN VALUES")
	if (returns > count) {
		put("What every call returns is in")
		put(".Xr " page_of_header(header_of[item]) " 3 .")
		return
	}
	sub(/^Returns: */, "", lines[returns])
	put_lines(lines, returns + (lines[returns] == ""), count)
}

# The beginning of a text's first sentence, as NAME and lists have it.
function first_sentence(text)
{
	sub(/\n\n.*/, "", text)
	gsub(/\n */, " ", text)
	sub(/^timingwheel: /, "", text)
	if (match(text, /[.:;]( .*)?$/))
		text = substr(text, 1, RSTART - 1)
	gsub(/`/, "", text)
	if (text ~ /^[A-Z][a-z ]/)
		text = tolower(substr(text, 1, 1)) substr(text, 2)
	return text == "" ? "the fields and values are described beside them" : literal(text)
}

function put_code(code, count, lines, i)
{
	count = split(code, lines, "\n")
	put(".Bd -literal")
	for (i = 1; i <= count; i++)
		put(literal(lines[i]))
	put(".Ed")
}

function written_date(parts, months)
{
	split(date, parts, "-")
	split("January February March April May June July August September October November " \
		"December", months, " ")
	return months[parts[2] + 0] " " (parts[3] + 0) ", " parts[1]
}

function begin_page(names, count, brief, from, i)
{
	file = folder "/" names[1] ".3"
	put(".\\\" Made of " from " by pages.awk.")
	put(".Dd " written_date())
	put(".Dt " toupper(names[1]) " 3")
	put(".Os timingwheel " release)
	put(".Sh NAME")
	for (i = 1; i <= count; i++)
		put(".Nm " names[i] (i < count ? " ," : ""))
	put(".Nd " brief)
	put(".Sh SYNOPSIS")
	put(".In " from)
}

# The page of a header is named as its calls begin.
function page_of_header(file)
{
	sub(/.*\//, "", file)
	sub(/\.h$/, "", file)
	return file == "timingwheel" ? file : "tw_" file
}

# Notes the pages of the names in a text.
function see(text, name)
{
	for (; match(text, /tw_[a-z_0-9]+/); text = substr(text, RSTART + RLENGTH)) {
		name = substr(text, RSTART, RLENGTH)
		if (name in item_of)
			seen["3 " name]
	}
}

# Ends a page with links to what it names; names[] are its own.
function end_page(names, count, i, j, found, link, last)
{
	for (i = 1; i <= count; i++)
		delete seen["3 " names[i]]
	i = 0
	for (link in seen)
		found[++i] = link
	count = i
	for (i = 2; i <= count; i++)
		for (j = i; j > 1 && found[j - 1] > found[j]; j--) {
			link = found[j - 1]
			found[j - 1] = found[j]
			found[j] = link
		}
	put(".Sh SEE ALSO")
	for (i = 1; i <= count; i++)
		put(".Xr " substr(found[i], 3) " " substr(found[i], 1, 1) (i < count ? " ," : ""))
	close(file)
	split("", seen)
}

# Notes the types that the item's functions take.
function note_types(item, code, type, names)
{
	split(names_of[item], names, " ")
	for (code = code_of[item]; match(code, /tw_[a-z_0-9]+/); code = substr(code, RSTART + RLENGTH)) {
		type = substr(code, RSTART, RLENGTH)
		if (names_of[item] != "" && names[1] != type && !((type, item) in is_user)) {
			is_user[type, item]
			users_of[type] = join(users_of[type], names[1], " ")
		}
	}
}

function put_page(item, count, names, i)
{
	count = split(names_of[item], names, " ")
	if (count == 0 || item_of[names[1]] != item)
		return
	begin_page(names, count, first_sentence(text_of[item]), header_of[item])
	put_code(code_of[item])
	put_comment(item)
	see(text_of[item] code_of[item])
	# A type that very many calls take leads to none.
	if (split(users_of[names[1]], users, " ") <= 8)
		see(users_of[names[1]])
	seen["3 " page_of_header(header_of[item])]
	end_page(names, count)
	for (i = 2; i <= count; i++)
		if (system("ln -sf " names[1] ".3 " folder "/" names[i] ".3") != 0)
			exit 1
}

# An item as an entry of the header's list.
function put_entry(item, macro, count, names, i, head)
{
	macro = names_of[item] != "" ? "Xr" : "Dv"
	count = split(names_of[item] != "" ? names_of[item] : constants_of[item], names, " ")
	for (i = 1; i <= count; i++)
		head = join(head, macro " " names[i] (macro == "Xr" ? " 3" : ""), " , ")
	put(".It " head)
	if (macro == "Xr")
		put(first_sentence(text_of[item]) ".")
	else
		put_text(text_of[item])
}

# The items in their order: texts, and lists of what stands between them.
function put_header(header, text, count, names, i, is_text, in_list)
{
	names[1] = page_of_header(header)
	begin_page(names, 1, first_sentence(opening[header]), header)
	put(".Sh DESCRIPTION")
	text = opening[header]
	sub(/^timingwheel: /, "", text)
	put_text(toupper(substr(text, 1, 1)) substr(text, 2))
	put(".Ss Calls and types")
	for (i = 1; i <= items; i++) {
		is_text = names_of[i] constants_of[i] == ""
		if (header_of[i] != header || is_text && text_of[i] == "")
			continue
		if (is_text == in_list)
			put(in_list ? ".El" : ".Bl -tag -width Ds")
		in_list = !is_text
		if (in_list)
			put_entry(i)
		else {
			put(".Pp")
			put_text(text_of[i])
		}
	}
	if (in_list)
		put(".El")
	for (i = 1; i <= header_count; i++)
		seen["3 " page_of_header(headers[i])]
	count = split(beside, pages, " ")
	for (i = 1; i <= count; i++) {
		sub(/.*\//, "", pages[i])
		seen[substr(pages[i], length(pages[i])) " " substr(pages[i], 1, length(pages[i]) - 2)]
	}
	end_page(names, 1)
}

END {
	if (failed)
		exit 1
	for (i = 1; i <= header_count; i++) {
		name = page_of_header(headers[i])
		if (name in item_of)
			fail(name " would have two pages")
	}
	for (i = 1; i <= items; i++)
		note_types(i)
	for (i = 1; i <= items; i++)
		put_page(i)
	for (i = 1; i <= header_count; i++)
		put_header(headers[i])
}
