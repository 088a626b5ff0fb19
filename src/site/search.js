/* SPDX-License-Identifier: MIT */
/*
 * This is the search of the site. It looks the words of the query up in `entries` (index.js), and
 * lists those that have all of them, at most 12: names first, then titles and headings, then text.
 */
"use strict";

/* Returns how well the entry has the word, or 0. */
function score(entry, word)
{
	const [title, , names, brief, words] = entry;
	const has = (text, start) => (" " + text.toLowerCase()).includes(start + word);

	return names.split(" ").includes(word) ? 100
		: has(names, "_") || has(names, " ") ? 60 - names.length / 10
		: has(title, " ") ? 30
		: has(brief, " ") ? 20
		: has(words, " ") || has(words, "_") ? 10
		: 0;
}

function search(query)
{
	const wanted = query.toLowerCase().split(/[^a-z0-9_]+/).filter(Boolean);
	const found = [];

	for (const entry of wanted.length ? entries : []) {
		const scores = wanted.map(word => score(entry, word));

		if (Math.min(...scores) > 0)
			found.push([scores.reduce((a, b) => a + b), entry]);
	}
	return found.sort((a, b) => b[0] - a[0]).slice(0, 12).map(pair => pair[1]);
}

function show(list, found)
{
	list.replaceChildren(...found.map(([title, address, , brief]) => {
		const link = document.createElement("a");
		const item = document.createElement("li");

		link.href = address;
		link.append(title);
		if (brief) {
			const line = document.createElement("small");

			line.append(brief);
			link.append(line);
		}
		item.append(link);
		return item;
	}));
}

const form = document.querySelector("form");
const input = form.querySelector("input");
const list = form.querySelector("ol");

form.hidden = false;
input.addEventListener("input", () => show(list, search(input.value)));
form.addEventListener("submit", event => {
	event.preventDefault();
	list.querySelector("a")?.click();
});
form.addEventListener("keydown", event => {
	if (event.key === "Escape")
		show(list, []);
});
document.addEventListener("click", event => {
	if (!form.contains(event.target) || event.target.closest("a"))
		show(list, []);
});
document.addEventListener("keydown", event => {
	if (event.key === "/" && !event.target.matches("input")) {
		event.preventDefault();
		input.focus();
	}
});
