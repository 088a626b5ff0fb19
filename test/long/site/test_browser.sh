#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The site in a browser, by browser.py; skipped where Debian's chromium and chromium-driver are not
# there. SHOTS=folder writes pictures of some pages there.

cd "$(dirname "$0")/../../.." || exit 1

for program in mandoc lowdown python3 chromium chromedriver; do
	command -v $program >/dev/null || { echo "there is no $program"; exit 77; }
done
test -n "$REDIS_FOUND" || { echo "the site needs the part on Redis"; exit 77; }
# shellcheck disable=SC2046,SC2086 # one name a line, several headers
exec python3 test/long/site/browser.py "$BUILD/site" $(sed -n \
	's/^TW_[A-Z]* .*\(tw_[a-z0-9_]*\)(.*/\1/p' $PUBLIC_HEADERS include/timingwheel/redis.h)
