#!/bin/sh
# SPDX-License-Identifier: MIT
#
# That test/PROOF.md names tests, mutants and harnesses that are there, and is as it is made.

exec "$(dirname "$0")/page.sh" check
