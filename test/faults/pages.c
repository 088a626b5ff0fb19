/* SPDX-License-Identifier: MIT */
/* Programs with the worker's pages link this beside faults.c to fail their requests. */
#include "faults.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <microhttpd.h>

struct MHD_Daemon *__wrap_MHD_start_daemon(unsigned flags, uint16_t port,
					   MHD_AcceptPolicyCallback accept, void *accept_context,
					   MHD_AccessHandlerCallback answer, void *answer_context,
					   ...);
struct MHD_Response *__real_MHD_create_response_from_buffer(size_t size, void *buffer,
							    enum MHD_ResponseMemoryMode mode);
struct MHD_Response *__wrap_MHD_create_response_from_buffer(size_t size, void *buffer,
							    enum MHD_ResponseMemoryMode mode);
enum MHD_Result __real_MHD_add_response_header(struct MHD_Response *response, const char *name,
					       const char *value);
enum MHD_Result __wrap_MHD_add_response_header(struct MHD_Response *response, const char *name,
					       const char *value);

struct MHD_Daemon *__wrap_MHD_start_daemon(unsigned flags, uint16_t port,
					   MHD_AcceptPolicyCallback accept, void *accept_context,
					   MHD_AccessHandlerCallback answer, void *answer_context,
					   ...)
{
	struct MHD_Daemon *daemon = NULL;
	va_list options;

	va_start(options, answer_context);
	if (!allocation_fails())
		daemon = MHD_start_daemon_va(flags, port, accept, accept_context, answer,
					     answer_context, options);
	va_end(options);
	return daemon;
}

struct MHD_Response *__wrap_MHD_create_response_from_buffer(size_t size, void *buffer,
							    enum MHD_ResponseMemoryMode mode)
{
	return allocation_fails() ? NULL
				  : __real_MHD_create_response_from_buffer(size, buffer, mode);
}

enum MHD_Result __wrap_MHD_add_response_header(struct MHD_Response *response, const char *name,
					       const char *value)
{
	return allocation_fails() ? MHD_NO : __real_MHD_add_response_header(response, name, value);
}
