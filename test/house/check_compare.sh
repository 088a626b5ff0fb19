#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This tests `make compare`, which measures two revisions in turn and divides in the right
# direction, with a repository of its own, whose bench reports known figures.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh
command -v git >/dev/null || skip "no git (package git)"
set -e

root=$(mktemp -d)
at_end "rm -rf '$root'"
mkdir "$root/bench"
cp bench/compare.sh bench/compare.awk bench/revision.sh "$root/bench"
cd "$root"

# The bench writes a line to the file `ran` for each run. Its figures grow from turn to turn.
cat >Makefile <<'END'
build/bench/pace: bench/pace.c
	@mkdir -p $(@D)
	cp $< $@ && chmod +x $@
END
# bench SIDE RATE TIME ROW...
bench()
{
	cat >bench/pace.c <<END
#!/bin/sh
echo $1 >>"$root/ran"
n=\$(grep -c $1 "$root/ran")
for option; do
	csv=\${option#--csv=}
done
{
	echo contender,run,measure,value
	echo levels,1,set_per_second,\$(($2 * n))
	echo levels,1,call_ns,$3
	echo $4
} >"\$csv"
END
}

# This calls git without the user's settings.
alias_git()
{
	git -c user.name=test -c user.email=test@localhost -c init.defaultBranch=main "$@"
}

printf 'build/\nran\n' >.gitignore
bench base 1000 50 levels,1,old_ns,3
alias_git init -q .
alias_git add .
alias_git commit -qm 'a beginning'
base=$(git rev-parse --short HEAD)
bench now 2000 100 levels,1,new_ns,7
alias_git commit -qam 'a change'
now=$(git rev-parse --short HEAD)
echo '# not committed' >>bench/pace.c

# compare VARIABLE...
compare()
{
	rm -f ran
	# The Makefile has built the tree's own programs.
	MAKEFLAGS='' MFLAGS='' make -s build/bench/pace
	env BUILD=build MAKE=make BENCHES='pace gone' "$@" sh bench/compare.sh >said 2>&1
}

# says TEXT: checks that the output has this line, apart from blanks.
says()
{
	tr -s ' ' <said | sed 's/ $//' | grep -qxF -e "$1" || {
		cat said
		echo "does not say: $1"
		exit 1
	}
}

compare BASE=HEAD~1 RUNS=3
says "base: $base of $(git log -1 --format=%cs HEAD~1), a beginning"
says "now: $now+, with $now of $(git log -1 --format=%cs), a change"
says "$base has no bench gone: left out"
# The rate is twice as high, and the time twice as long, in turns 2 to 4; turn 1 does not count.
says 'pace levels set_per_second 3000 6000 2.000 2.000 to 2.000 *'
says 'pace levels call_ns 50 100 0.500 0.500 to 0.500 *'
if grep -E 'old_ns|new_ns' said; then
	echo "compares what is not to be compared"
	exit 1
fi
test "$(tr '\n' ' ' <ran)" = 'now base base now now base base now '
test "$(git status --porcelain)" = ' M bench/pace.c
?? said'

compare BASE="$base" QUICK=yes
test "$(wc -l <ran)" = 4
for wrong in BASE=nothing BASE= RUNS=none; do
	if compare BASE=HEAD "$wrong"; then
		echo "takes $wrong"
		exit 1
	fi
done
