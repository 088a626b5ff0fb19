# SPDX-License-Identifier: MIT
#
# The text of comments becomes mdoc(7), in the file `file`: names become macros, so that the reader
# of a page can follow them, and each sentence has a line of its own.
#
# Paragraphs stand between empty lines; " - " begins an item of a list; what is 4 columns in is
# code; what is 2 columns in is a table: a name, two blanks or more (behind a status one), and text.
#
#     own    names that the page is about
#     seen   what it mentions, for SEE ALSO

function put(line)
{
	print line >file
}

# One line of running text, which begins with nothing that would make it a macro.
function put_text()
{
	if (flow == "")
		return
	put((flow ~ /^[.']/ ? "\\&" : "") flow)
	flow = ""
}

function add_word(word)
{
	if (length(flow) + length(word) > 78)
		put_text()
	flow = flow (flow == "" ? "" : " ") word
}

function capital(text)
{
	return toupper(substr(text, 1, 1)) substr(text, 2)
}

function escape(text)
{
	gsub(/\\/, "\\e", text)
	gsub(/≤/, "\\(<=", text)
	gsub(/≥/, "\\(>=", text)
	gsub(/…/, "...", text)
	gsub(/µ/, "u", text)
	return text
}

# Literal text: signs that a typesetter would make nicer stay as they are.
function escape_code(text)
{
	text = escape(text)
	gsub(/-/, "\\-", text)
	gsub(/'/, "\\(aq", text)
	gsub(/`/, "\\(ga", text)
	gsub(/\^/, "\\(ha", text)
	gsub(/~/, "\\(ti", text)
	return (text ~ /^\./ ? "\\&" : "") text
}

# A macro, with the signs before and behind its word.
function put_macro(macro, before, word, behind, i, signs)
{
	put_text()
	signs = (before != "" ? "Pf " before " " : "") macro " " word
	if (behind ~ /^[].,;:)!?]+/)
		for (i = 1; i <= length(behind); i++)
			signs = signs " " substr(behind, i, 1)
	else if (behind != "")
		signs = signs " Ns " escape_code(behind)
	put("." signs)
}

# One word of text: names become macros, so that the reader of a page can follow them.
function put_word(word, whole, before, core, behind)
{
	whole = word
	match(word, /^[[(]*/)
	before = substr(word, 1, RLENGTH)
	word = substr(word, RLENGTH + 1)
	if (word ~ /^`[^`]+`/) {
		match(word, /^`[^`]+`/)
		core = substr(word, 2, RLENGTH - 2)
		behind = substr(word, RLENGTH + 1)
		if (core ~ /^[a-z_0-9]+$/)
			put_macro("Fa", before, core, behind)
		else
			put_macro("Ql", before, quote(core), behind)
		return
	}
	match(word, /^[A-Za-z_0-9]+(\.[a-z][a-z_0-9]*)?/)
	core = RLENGTH > 0 ? substr(word, 1, RLENGTH) : ""
	behind = RLENGTH > 0 ? substr(word, RLENGTH + 1) : word
	sub(/^\(\)/, "", behind)
	if (behind !~ /^[].,;:)!?]*$/ && behind !~ /^'s?[].,;:)!?]*$/)
		core = ""
	if (core in item_of && item_of[core] == 0)
		add_word(escape(whole))
	else if (core in own)
		put_macro("Fn", before, core, behind)
	else if (core in item_of) {
		seen[core]
		put_macro("Xr", before, core " 3", behind)
	} else if (core ~ /^TW_[A-Z_0-9]*[A-Z0-9]$/)
		put_macro("Dv", before, core, behind)
	else if (core ~ /^tw_[a-z_0-9]+\.[a-z_0-9]+$/) {
		sub(/\..*/, "", word)
		if (word in item_of && !(word in own))
			seen[word]
		put_macro("Va", before, core, behind)
	} else
		add_word(whole ~ /^-/ ? "\\" escape(whole) : escape(whole))
}

function quote(text)
{
	text = escape_code(text)
	gsub(/"/, "\\(dq", text)
	return "\"" text "\""
}

# Running text, a sentence a line.
function put_words(text, count, words, i, word, last)
{
	count = split(text, words, " ")
	last = ""
	for (i = 1; i <= count; i++) {
		word = words[i]
		# What stands between backquotes is one word.
		while (word ~ /^[[(]*`[^`]*$/ && i < count)
			word = word " " words[++i]
		if (last ~ /[.!?][])]*$/)
			put_text()
		last = word
		put_word(word)
	}
	put_text()
}

function indentation(line)
{
	match(line, /^ */)
	return RLENGTH
}

# What stands at the beginning of a table's line: its own column, or a status.
function table_name(line)
{
	sub(/^ */, "", line)
	if (match(line, /^TW_[A-Z_]+( |$)/) || match(line, /  +/)) {
		line = substr(line, 1, RSTART == 1 ? RLENGTH : RSTART - 1)
		sub(/ $/, "", line)
		return line
	}
	return ""
}

# The pieces of a text each begin at lines[at], and leave `at` behind what they took.
function end_piece(text)
{
	put(text)
	is_begun = 1
	needs_pp = 0
}

function put_code(lines, to, first)
{
	first = indentation(lines[at]) + 1
	put(".Bd -literal -offset indent")
	for (; at <= to && (indentation(lines[at]) >= 4 || lines[at] == ""); at++) {
		if (lines[at] == "" && (at == to || indentation(lines[at + 1]) < 4))
			break
		put(escape_code(substr(lines[at], first)))
	}
	end_piece(".Ed")
}

function is_bullet(line)
{
	return line ~ /^ ? ?- /
}

function put_bullets(lines, to, text)
{
	put(".Bl -bullet")
	while (at <= to && is_bullet(lines[at])) {
		text = lines[at++]
		sub(/^ *- /, "", text)
		while (at <= to && lines[at] ~ /^  / && !is_bullet(lines[at]))
			text = text " " lines[at++]
		put(".It")
		put_words(text)
	}
	end_piece(".El")
}

# Without names in its first line it is a list of texts.
function put_table(lines, to, start, has_names, name, text)
{
	start = indentation(lines[at])
	has_names = table_name(lines[at]) != ""
	put(has_names ? ".Bl -tag -width TW_NOT_FOUND" : ".Bl -item -offset indent")
	while (at <= to && indentation(lines[at]) == start && lines[at] != "") {
		name = has_names ? table_name(lines[at]) : ""
		text = substr(lines[at++], start + length(name) + 1)
		while (at <= to && indentation(lines[at]) > start)
			text = text " " lines[at++]
		if (name ~ /^TW_[A-Z_]+$/)
			put(".It Dv " name)
		else
			put(".It" (has_names ? " " quote(name == "" ? "-" : name) : ""))
		put_words(text)
	}
	end_piece(".El")
}

function put_paragraph(lines, to, text)
{
	if (needs_pp)
		put(".Pp")
	for (; at <= to && lines[at] != "" && indentation(lines[at]) < 2 && !is_bullet(lines[at]); at++)
		text = text " " lines[at]
	put_words(text)
	is_begun = 1
	needs_pp = 0
}

# Lines from `from` up to `to`.
function put_lines(lines, from, to)
{
	for (at = from; at <= to; )
		if (lines[at] == "") {
			needs_pp = is_begun
			at++
		} else if (indentation(lines[at]) >= 4)
			put_code(lines, to)
		else if (is_bullet(lines[at]))
			put_bullets(lines, to)
		else if (indentation(lines[at]) >= 2)
			put_table(lines, to)
		else
			put_paragraph(lines, to)
}

# A text that begins a section or an item.
function put_all(text, count, lines)
{
	needs_pp = is_begun = 0
	count = split(text, lines, "\n")
	put_lines(lines, 1, count)
}
