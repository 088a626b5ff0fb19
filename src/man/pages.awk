# SPDX-License-Identifier: MIT
#
# Makes the manual's pages of section 3, in mdoc(7), of the comments in the public headers:
#
#     awk -f headers.awk -f mdoc.awk -f pages.awk -v folder=build/man/man3 -v date=2026-01-31 \
#         -v release=1.0.0 -v beside="name.7 ..." HEADER...
#
# Functions of one comment share a page, and the other names are links to it. Structs, enums and
# types of functions have pages too. A header's own page has its opening comment, the comments that
# stand alone, its constants, and its calls with their first sentences, in the header's order.
#
# What stands behind a line "Returns:" in a comment is RETURN VALUES: a table of statuses, or text.

BEGIN {
	place = "pages.awk"
	if (date !~ /^[0-9]+-[0-9][0-9]-[0-9][0-9]$/)
		fail("no date, as 2026-01-31, but: " date)
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
	text = escape(text)
	return text
}

function written_date(parts)
{
	split(date, parts, "-")
	split("January February March April May June July August September October November " \
		"December", months, " ")
	return months[parts[2] + 0] " " (parts[3] + 0) ", " parts[1]
}

function begin_page(name_list, brief, from, count, names, i)
{
	count = split(name_list, names, " ")
	file = folder "/" names[1] ".3"
	flow = ""
	split("", own)
	split("", seen)
	put(".\\\" Made of " from " by pages.awk.")
	put(".Dd " written_date())
	put(".Dt " toupper(names[1]) " 3")
	put(".Os timingwheel " release)
	put(".Sh NAME")
	for (i = 1; i <= count; i++) {
		own[names[i]]
		put(".Nm " names[i] (i < count ? " ," : ""))
	}
	put(".Nd " brief)
	put(".Sh SYNOPSIS")
	put(".In " from)
}

# "7 name" of "name.7".
function section_first(page)
{
	return substr(page, length(page)) " " substr(page, 1, length(page) - 2)
}

function end_page(count, names, i, j, name)
{
	put_text()
	count = 0
	for (name in seen)
		if (!(name in own))
			names[++count] = name ~ /\.[1-9]$/ ? section_first(name) : "3 " name
	for (i = 2; i <= count; i++)
		for (j = i; j > 1 && names[j - 1] > names[j]; j--) {
			name = names[j]
			names[j] = names[j - 1]
			names[j - 1] = name
		}
	if (count > 0)
		put(".Sh SEE ALSO")
	for (i = 1; i <= count; i++)
		put(".Xr " substr(names[i], 3) " " substr(names[i], 1, 1) (i < count ? " ," : ""))
	close(file)
}

# A C expression in one line.
function one_line(code)
{
	gsub(/[ \t\n]+/, " ", code)
	sub(/^ /, "", code)
	sub(/ $/, "", code)
	return code
}

# The types that a prototype names, and that have pages.
function see_types(code)
{
	for (; match(code, /tw_[a-z_0-9]+/); code = substr(code, RSTART + RLENGTH))
		if (substr(code, RSTART, RLENGTH) in item_of)
			seen[substr(code, RSTART, RLENGTH)]
}

# Notes which calls a type is for: their pages are where it leads.
function note_types(item, code, type)
{
	for (code = code_of[item]; match(code, /tw_[a-z_0-9]+/); code = substr(code, RSTART + RLENGTH)) {
		type = substr(code, RSTART, RLENGTH)
		if (!((type, item) in users_of) && type in item_of && item_of[type] != item) {
			users_of[type, item]
			user_count[type]++
		}
	}
}

# Where a type is for many, its header's page lists them.
function see_users(type, i, names)
{
	for (i = 1; i <= items && user_count[type] <= 8; i++)
		if ((type, i) in users_of) {
			split(names_of[i], names, " ")
			seen[names[1]]
		}
}

function put_prototype(code, name, head, i, depth, sign, argument)
{
	code = one_line(code)
	name = name_in(code)
	head = substr(code, 1, index(code, name "(") - 1)
	sub(/ $/, "", head)
	put(".Ft " quote_type(head))
	put(".Fo " name)
	code = substr(code, index(code, name "(") + length(name) + 1)
	sub(/\);?$/, "", code)
	see_types(head " " code)
	depth = 0
	argument = ""
	for (i = 1; i <= length(code); i++) {
		sign = substr(code, i, 1)
		depth += (sign == "(") - (sign == ")")
		if (sign == "," && depth == 0) {
			put(".Fa " quote_type(argument))
			argument = ""
		} else if (sign != " " || argument != "")
			argument = argument sign
	}
	put(".Fa " quote_type(argument))
	put(".Fc")
}

function quote_type(code)
{
	return "\"" code "\""
}

# Where what is returned begins; one more than there are lines: nowhere.
function find_returns(lines, count, i)
{
	for (i = 1; i <= count; i++)
		if (lines[i] ~ /^Returns:/)
			break
	return i
}

function put_description(text, count, lines)
{
	count = split(text, lines, "\n")
	put(".Sh DESCRIPTION")
	needs_pp = is_begun = 0
	put_lines(lines, 1, find_returns(lines, count) - 1)
}

function put_returns(text, count, lines, returns)
{
	count = split(text, lines, "\n")
	returns = find_returns(lines, count)
	if (returns > count)
		return
	put(".Sh RETURN VALUES")
	needs_pp = is_begun = 0
	sub(/^Returns: */, "", lines[returns])
	lines[returns] = capital(lines[returns])
	put_lines(lines, lines[returns] == "" ? returns + 1 : returns, count)
}

function put_functions(item, count, codes, i, type)
{
	count = split(code_of[item], codes, ";\n")
	for (i = 1; i < count; i++)
		put_prototype(codes[i])
	put_description(text_of[item])
	if (item in type_beside) {
		type = type_beside[item]
		put(".Pp")
		put(".Vt " kind_of[type] " " names_of[type])
		put(".Pp")
		put_type(type)
	}
	put_returns(text_of[item])
	# The header says once what every call returns.
	if (header_of[item] ~ /(timingwheel|redis)\.h$/ && code_of[item] ~ /enum tw_status tw_/) {
		put(text_of[item] ~ /\nReturns:/ ? ".Pp" : ".Sh RETURN VALUES")
		if (text_of[item] !~ /TW_OK/) {
			put(".Dv TW_OK")
			put("means that it is done.")
		}
		put("The statuses that every call may return are in")
		put(".Xr " (header_of[item] ~ /redis/ ? "timingwheel-redis 7" : "timingwheel 3") " .")
	}
}

# A comment inside a struct that begins at lines[at]; leaves `at` at its last line.
function read_inner_comment(lines, line, text)
{
	text = bare(line)
	while (line !~ /\*\//) {
		line = lines[++at]
		if (bare(line) != "" || line !~ /\*\//)
			text = text (text == "" ? "" : "\n") bare(line)
	}
	return text
}

# Into members[], says[] and leads[]: the fields of a struct, or the values of an enum, and what is
# said of each. A comment behind a field is about it; one before it is also about the fields that
# follow without a comment, as leads[] says.
function read_members(item, end, count, lines, line, before, behind, code)
{
	count = split(code_of[item], lines, "\n")
	members = 0
	for (at = 2; at < count; at++) {
		line = lines[at]
		if (line ~ /^[ \t]*\/\*/ && code == "") {
			before = read_inner_comment(lines, line)
			continue
		}
		behind = ""
		if (match(line, /\/\*.*/)) {
			code = code " " substr(line, 1, RSTART - 1)
			behind = read_inner_comment(lines, substr(line, RSTART))
			line = ""
		}
		code = one_line(code " " line)
		if (code !~ end && lines[at + 1] !~ /^}/)
			continue
		sub(end, "", code)
		member[++members] = code
		says[members] = before == "" || behind == "" ? before behind : lead(before, behind)
		leads[members] = before != "" && behind == ""
		before = code = ""
	}
}

function put_members(item, i, j, head)
{
	read_members(item, kind_of[item] == "enum" ? ",$" : ";$")
	put(".Bl -tag -width Ds")
	for (i = 1; i <= members; i = j) {
		head = member_head(member[i])
		for (j = i + 1; j <= members && leads[i] && says[j] == ""; j++)
			head = head " , " member_head(member[j])
		put(".It " head)
		put_all(says[i])
	}
	put(".El")
}

# What is said before a field, of several maybe, and what is said behind it.
function lead(before, behind)
{
	sub(/\.$/, "", before)
	if (before !~ /[.;][ \n]/)
		return before ": " behind
	return before ". " capital(behind)
}

function member_head(code)
{
	see_types(code)
	return (code ~ /^TW_/ ? "Dv " code : "Fa " quote_type(code))
}

function put_type(item)
{
	put_all(text_of[item])
	if (code_of[item] ~ /_STATUS_LIST\(/)
		put_all(statuses[header_of[item]])
	else
		put_members(item)
}

# A type may have nothing said of it but of its members.
function brief_of(item)
{
	if (text_of[item] == "")
		return kind_of[item] == "enum" ? "values to choose from" : "a struct"
	return first_sentence(text_of[item])
}

function put_page(item, names, count, i)
{
	count = split(names_of[item], names, " ")
	if (kind_of[item] ~ /^(text|constants|opaque)$/ || item_of[names[1]] != item)
		return
	begin_page(names_of[item], brief_of(item), header_of[item])
	seen[page_of_header(header_of[item])]
	see_users(names[1])
	if (kind_of[item] == "functions")
		put_functions(item)
	else if (kind_of[item] == "callback") {
		put_prototype(code_of[item])
		put_description(text_of[item])
		put_returns(text_of[item])
	} else {
		put(".Vt " kind_of[item] " " names[1] " ;")
		put(".Sh DESCRIPTION")
		put_type(item)
	}
	end_page()
	for (i = 2; i <= count; i++)
		if (system("ln -sf " names[1] ".3 " folder "/" names[i] ".3") != 0)
			exit 1
}

# --- The page of a header ----------------------------------------------------------------------

# An item as an entry of the list.
function put_entry(item, macro, behind, count, names, i, head)
{
	macro = kind_of[item] == "constants" ? "Dv" : kind_of[item] == "opaque" ? "Vt" : "Xr"
	behind = macro == "Xr" ? " 3" : ""
	count = split(names_of[item], names, " ")
	for (i = 1; i <= count; i++)
		head = head (i > 1 ? " , " : "") macro " " names[i] behind
	put(".It " head)
	if (macro == "Xr")
		put(brief_of(item) ".")
	else
		put_all(text_of[item])
}

# The items in their order: texts, and lists of what stands between them.
function put_entries(header, i, in_list, has_more)
{
	for (i = 1; i <= items; i++) {
		if (header_of[i] != header)
			continue
		if ((kind_of[i] == "text") == in_list) {
			put(in_list ? ".El" : ".Bl -tag -width Ds")
			in_list = !in_list
		}
		if (in_list)
			put_entry(i)
		else {
			if (has_more)
				put(".Pp")
			put_all(text_of[i])
		}
		has_more = 1
	}
	if (in_list)
		put(".El")
}

# The pages that begin where this one ends: those of other headers, and those by hand.
function see_overviews(count, pages, i)
{
	split("", seen)
	for (i = 1; i <= header_count; i++)
		seen[page_of_header(headers[i])]
	count = split(beside, pages, " ")
	for (i = 1; i <= count; i++) {
		sub(/.*\//, "", pages[i])
		seen[pages[i]]
	}
}

function put_header(header, text)
{
	text = opening[header]
	if (sub(/^timingwheel: /, "", text))
		text = capital(text)
	begin_page(page_of_header(header), first_sentence(text), header)
	put(".Sh DESCRIPTION")
	put_all(text)
	if (statuses[header] != "") {
		put(".Ss Statuses")
		put_all(statuses[header])
	}
	put(".Ss Calls and types")
	put_entries(header)
	see_overviews()
	end_page()
}

END {
	if (failed)
		exit 1
	for (i = 1; i <= header_count; i++) {
		name = page_of_header(headers[i])
		if (name in item_of)
			fail(name " would have two pages")
		item_of[name] = 0
	}
	for (i = 1; i <= items; i++)
		if (kind_of[i] ~ /^(functions|callback)$/)
			note_types(i)
	for (i = 1; i <= items; i++)
		put_page(i)
	for (i = 1; i <= header_count; i++)
		put_header(headers[i])
}
