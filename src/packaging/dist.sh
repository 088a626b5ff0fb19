#!/bin/sh
# SPDX-License-Identifier: MIT
#
# dist.sh ARCHIVE NAME: packs the sources as they are in the last commit, below a folder NAME, and
# writes the sum beside the archive, for `sha256sum -c`. What was unpacked from such an archive is
# no checkout, and its files are packed as they are: the bytes are the same again.

set -e
archive=$1 name=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Not by asking git: the folder may lie within a checkout of something else.
if test -e .git; then
	git archive --output="$work/files.tar" HEAD
	time=$(git log -1 --format=%ct)
else
	tar --create --exclude=./build --file="$work/files.tar" .
	time=$(stat -c %Y Makefile)
fi
mkdir "$work/files"
tar --extract --file="$work/files.tar" -C "$work/files"
# Nothing of the user's umask, name or settings of git.
tar --create --format=ustar --sort=name --mtime="@$time" --owner=0 --group=0 --numeric-owner \
	--mode=u=rwX,go=rX --transform="s|^\.|$name|" --file="$work/packed.tar" -C "$work/files" .
xz --threads=1 <"$work/packed.tar" >"$work/packed.tar.xz"
mv "$work/packed.tar.xz" "$archive"
cd "$(dirname "$archive")"
sha256sum "$(basename "$archive")" >"$(basename "$archive").sha256"
