# SPDX-License-Identifier: MIT
#
# Public headers, read into items: texts, constants, opaque types, functions, types of functions
# (callbacks), structs and enums.
#
# A comment is about the declarations behind it, up to the next comment or empty line; one that no
# declaration follows is a text. Functions of one comment are one item.
#
#     kind_of, header_of, text_of, code_of, names_of   by item, 1 to `items`
#     item_of                                          by name: the item that its page is made of
#     type_beside                                      by item: a type with the name of a function
#     headers, opening, statuses                       each header, its first comment, its X(...)

function fail(text)
{
	print place ": " text >"/dev/stderr"
	failed = 1
	exit 1
}

# The page of a header is named as its calls begin.
function page_of_header(file)
{
	sub(/.*\//, "", file)
	sub(/\.h$/, "", file)
	return file == "timingwheel" ? file : "tw_" file
}

# Kinds: text, constants, opaque, functions, callback, struct, enum.
function add_item(kind, code)
{
	items++
	kind_of[items] = kind
	header_of[items] = header
	text_of[items] = comment
	code_of[items] = code
	is_used = 1
	return items
}

# The name that a declaration declares: of a function the word before its first bracket.
function name_in(code)
{
	sub(/[ \t]*\(.*/, "", code)
	sub(/.*[ *]/, "", code)
	return code
}

# Joins two texts, of which the first may be empty.
function join(first, second)
{
	return first (first == "" ? "" : " ") second
}

# The name gets a page, that of the item; a type with a function's name is described in its page.
function add_page(name, item)
{
	if (text_of[item] == "" && kind_of[item] == "functions")
		fail(name " has no comment")
	if (!(name in item_of))
		item_of[name] = item
	else if (kind_of[item] ~ /^(struct|enum)$/)
		type_beside[item_of[name]] = item
	else
		fail(name " would have two pages")
	names_of[item] = join(names_of[item], name)
}

function read_declaration(code, kind)
{
	if (code ~ /^TW_API/) {
		sub(/^TW_[A-Z]+ /, "", code)
		if (!is_used || kind_of[items] != "functions")
			add_item("functions", "")
		add_page(name_in(code), items)
		code_of[items] = code_of[items] code "\n"
	} else if (code ~ /^typedef .*\(/) {
		add_page(name_in(code), add_item("callback", code))
	} else if (code ~ /^(struct|enum) [a-z_0-9]+ \{/) {
		kind = code
		sub(/ .*/, "", kind)
		add_item(kind, code)
		sub(/^[a-z]+ /, "", code)
		sub(/ .*/, "", code)
		add_page(code, items)
	} else if (comment != "") {
		sub(/;.*/, "", code)
		sub(/.* /, "", code)
		names_of[add_item("opaque", "")] = code
	}
}

# A line of a comment, without what makes it a comment; of a block of /* */ or a line of it.
function bare(line)
{
	sub(/^[ \t]*\/\*/, "", line)
	sub(/[ \t]*\*\/.*$/, "", line)
	sub(/^[ \t]*\*/, "", line)
	sub(/^ /, "", line)
	sub(/[ \t]+$/, "", line)
	return line
}

# What no declaration came behind is text of its own.
function end_comment()
{
	if (comment != "" && !is_used)
		add_item("text", "")
	comment = ""
	is_used = 0
}

function add_constant(line)
{
	sub(/^#define /, "", line)
	sub(/[( ].*/, "", line)
	if (!is_used || kind_of[items] != "constants")
		add_item("constants", "")
	names_of[items] = join(names_of[items], line)
}

FNR == 1 {
	header = FILENAME
	sub(/.*include\//, "", header)
	headers[++header_count] = header
	declaration = comment = ""
	in_comment = in_define = is_used = in_statuses = 0
}

{
	place = FILENAME ":" FNR
}

in_comment {
	in_comment = !/\*\//
	if (bare($0) != "" || in_comment)
		comment = comment (comment == "" ? "" : "\n") bare($0)
	next
}

declaration != "" {
	declaration = declaration "\n" $0
	if (declaration ~ /^(struct|enum) [a-z_0-9]+ \{/ ? /^}/ : /;[ \t]*$/) {
		read_declaration(declaration)
		declaration = ""
	}
	next
}

in_define {
	in_define = /\\$/
	if (in_statuses && match($0, /TW_[A-Z_]+/)) {
		line = substr($0, RSTART, RLENGTH) "  "
		sub(/^[^"]*"/, "")
		sub(/"[^"]*$/, "")
		statuses[header] = statuses[header] (statuses[header] == "" ? "" : "\n") "  " line $0
	}
	next
}

/^\/\* SPDX/ {
	next
}

/^\/\*/ {
	end_comment()
	comment = bare($0)
	in_comment = !/\*\//
	next
}

/^$/ {
	end_comment()
	next
}

# What lets a compiler warn is for the compiler.
/^TW_(CHECKED|NONNULL|READS|FILLS)/ {
	next
}

/^#ifndef TIMINGWHEEL_/ {
	opening[header] = comment
	comment = ""
	next
}

/^#define/ {
	in_define = /\\$/
	in_statuses = /STATUS_LIST\(X\)/
	if (!in_statuses && comment != "" && !/^#define [A-Z_]+\(/)
		add_constant($0)
	else
		is_used = 1
	next
}

/^[a-zA-Z]/ && !/^extern/ {
	declaration = $0
	if (/;[ \t]*$/) {
		read_declaration(declaration)
		declaration = ""
	}
}
