/* The api contract: a network front that turns a wire protocol into generate requests and events into answers. */
#ifndef DSV4_API_H
#define DSV4_API_H

#include "dsv4/chat.h"
#include "dsv4/generate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a request body means, without running it. Owned by the plugin; lives until translation_release. */
typedef struct dsv4_translation {
    uint32_t struct_size;
    int32_t http_status;                          /* 200, or the status that the endpoint would answer with */
    const dsv4_generate_request* request;         /* NULL unless http_status is 200 */
    dsv4_str error_json;                          /* the body of the error answer */
    const dsv4_generate_request* const* requests; /* all of them: a completions body may hold several prompts */
    uint32_t request_count;                       /* requests[0] == request */
    uint32_t reserved;
} dsv4_translation;

/* create checks options; nothing listens before start. */
typedef struct dsv4_api_table {
    uint32_t struct_size;

    /* `route` is the request target ("/v1/chat/completions"). Any thread, before or without start. */
    dsv4_error* (*translate)(void* self, dsv4_str route, dsv4_str body, const dsv4_translation** out);
    void (*translation_release)(void* self, const dsv4_translation* translation);

    /* Binds and serves from the plugin's own threads (as many as the manifest declares), through host->generate.
     * Returns once the socket listens. Control thread. */
    dsv4_error* (*start)(void* self);
    /* "scheme://host:port" of the bound socket; lives as long as the instance, any thread. Empty before start. */
    dsv4_str (*endpoint)(void* self);
    /* Stops accepting requests, answers 503 to new ones, lets running ones end until deadline_us (host monotonic
     * clock), then cancels. Returns when none is left. Control thread. */
    dsv4_error* (*drain)(void* self, uint64_t deadline_us);
    /* Closes everything. No call into the generate service after it returned. Once, after start succeeded (drain is
     * optional) and before destroy; no start follows. */
    void (*stop)(void* self);
} dsv4_api_table;

#ifdef __cplusplus
}
#endif
#endif
