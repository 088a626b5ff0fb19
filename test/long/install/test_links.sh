#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This links programs with the archive in every combination of check_links.sh.

exec "$(dirname "$0")/../../house/check_links.sh" all
