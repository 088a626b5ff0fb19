#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This checks that test/PROOF.md is up to date and names existing tests, mutants and harnesses.

exec "$(dirname "$0")/page.sh" check
