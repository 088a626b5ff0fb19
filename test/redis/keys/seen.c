/* SPDX-License-Identifier: MIT */
/* seen.c appends the name of each script that is sent to the file $SEEN, for test_keys.sh. */

#include "redis/wire/eval.h"
#include "support/test.h"

void __real_eval_write(const struct eval *eval, bool flagged, struct buffer *output);
void __wrap_eval_write(const struct eval *eval, bool flagged, struct buffer *output);

void __wrap_eval_write(const struct eval *eval, bool flagged, struct buffer *output)
{
	if (eval->whole) {
		FILE *file = fopen(getenv("SEEN"), "a");

		assert_non_null(file);
		fprintf(file, "%s\n", eval->script->name);
		fclose(file);
	}
	__real_eval_write(eval, flagged, output);
}
