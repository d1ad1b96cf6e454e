/* What the host offers to every plugin: options, log, clock, secrets, threads, metrics, spans and the model services.
 *
 * One table per instance, passed to create, valid until destroy returned. `ctx` is the first argument of every function
 * of the table and of its services. Unless a comment says otherwise every function may be called from any thread and
 * none calls back into the plugin before it returns (parallel_for is the exception that its purpose demands).
 */
#ifndef DSV4_HOST_H
#define DSV4_HOST_H

#include "dsv4/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dsv4_generate_service; /* dsv4/generate.h */
typedef struct dsv4_options dsv4_options;
typedef struct dsv4_metric dsv4_metric;
typedef struct dsv4_span dsv4_span;
typedef struct dsv4_grammar dsv4_grammar;
typedef struct dsv4_grammar_state dsv4_grammar_state;

typedef enum dsv4_log_level {
    DSV4_LOG_DEBUG = 1,
    DSV4_LOG_INFO = 2,
    DSV4_LOG_WARNING = 3,
    DSV4_LOG_ERROR = 4
} dsv4_log_level;

typedef enum dsv4_metric_kind {
    DSV4_METRIC_COUNTER = 1,  /* metric_update adds value >= 0 */
    DSV4_METRIC_GAUGE = 2,    /* metric_update sets */
    DSV4_METRIC_HISTOGRAM = 3 /* metric_update observes; units are seconds, bytes or tokens, named in the metric */
} dsv4_metric_kind;

typedef struct dsv4_label {
    dsv4_str name;
    dsv4_str value;
} dsv4_label;

/* The tokenizer of the loaded checkpoint. */
typedef struct dsv4_tokenizer_service {
    uint32_t struct_size;
    uint32_t vocab_size;
    /* Plain text to ids; never matches a control token. Writes up to `capacity` ids and always stores the full count,
     * so that a call with capacity 0 measures. DSV4_INVALID for text that is not UTF-8. */
    dsv4_error* (*encode)(void* ctx, dsv4_str text, int32_t* ids, size_t capacity, size_t* count);
    /* The id of a control token by its exact name, or -1. */
    int32_t (*control_id)(void* ctx, dsv4_str name);
    /* The bytes of a token (not necessarily whole UTF-8 characters); empty for an id without an entry. The result lives
     * as long as the host table. */
    dsv4_str (*bytes)(void* ctx, int32_t id);
    /* 1 when the id is a control (added) token. */
    int32_t (*is_control)(void* ctx, int32_t id);
} dsv4_tokenizer_service;

typedef enum dsv4_grammar_syntax {
    DSV4_GRAMMAR_EBNF = 1,       /* docs/contracts.md, section Grammars */
    DSV4_GRAMMAR_JSON_SCHEMA = 2 /* a JSON schema; compiled to the same automaton */
} dsv4_grammar_syntax;

/* Grammars over token ids, for structured output. States are per sequence and not thread-safe; grammars are shared. */
typedef struct dsv4_grammar_service {
    uint32_t struct_size;
    dsv4_error* (*compile)(void* ctx, int32_t syntax, dsv4_str text, dsv4_grammar** out);
    void (*release)(void* ctx, dsv4_grammar* grammar);
    dsv4_error* (*start)(void* ctx, dsv4_grammar* grammar, dsv4_grammar_state** out);
    void (*state_release)(void* ctx, dsv4_grammar_state* state);
    /* 1 when the token was accepted and the state moved; 0 when the grammar forbids it and nothing changed. */
    int32_t (*advance)(void* ctx, dsv4_grammar_state* state, int32_t token);
    void (*rollback)(void* ctx, dsv4_grammar_state* state, uint32_t tokens);
    /* Bit t%32 of words[t/32] is set when token t may follow; (vocab_size+31)/32 words, all written. */
    void (*fill_mask)(void* ctx, dsv4_grammar_state* state, uint32_t* words);
} dsv4_grammar_service;

/* The model's own lowering, for speculation plugins: layer maths is never restated. */
typedef struct dsv4_lowering_service {
    uint32_t struct_size;
    /* Writes a Program fragment for the layer whose weights start with `prefix` ("mtp.0"): inputs "streams", outputs
     * "streams". `options` is a JSON object {"attention": "causal"|"block", "context_only": bool}. The binary form is
     * that of dsv4/program.h. Free with release_program. */
    dsv4_error* (*lower_layer)(void* ctx, dsv4_str prefix, dsv4_str options, dsv4_str* program);
    void (*release_program)(void* ctx, dsv4_str program);
    /* The checkpoint's config.json, whole; lives as long as the host table. */
    dsv4_str (*config_json)(void* ctx);
} dsv4_lowering_service;

typedef struct dsv4_host {
    uint32_t struct_size;
    uint16_t abi_major;
    uint16_t abi_minor;
    void* ctx; /* owned by the host */

    /* Options of the instance being created; only during create. `name` as in the manifest. DSV4_NOT_FOUND for a name
     * the manifest does not declare, DSV4_INVALID for another type. A size is read with option_int, in bytes; an enum
     * with option_string. Text results live until create returns. */
    dsv4_error* (*option_string)(const dsv4_options* options, dsv4_str name, dsv4_str* out);
    dsv4_error* (*option_int)(const dsv4_options* options, dsv4_str name, int64_t* out);
    dsv4_error* (*option_float)(const dsv4_options* options, dsv4_str name, double* out);
    dsv4_error* (*option_bool)(const dsv4_options* options, dsv4_str name, int32_t* out);

    /* One line; the host adds time, plugin name and request id. Never pass prompt or answer text. */
    void (*log)(void* ctx, int32_t level, dsv4_str message);

    uint64_t (*monotonic_us)(void* ctx); /* CLOCK_MONOTONIC */
    uint64_t (*unix_us)(void* ctx);

    /* Resolves "env:NAME" or "file:PATH". The text is the caller's to wipe and free with secret_release. */
    dsv4_error* (*secret)(void* ctx, dsv4_str reference, char** out, size_t* size);
    void (*secret_release)(void* ctx, char* text, size_t size);

    /* The shared pool. A plugin starts no threads but those its manifest declares. parallel_for calls body(arg, i) for
     * every i < count, on the pool and on the calling thread, and returns when all have returned; body must not throw;
     * nested calls run on the calling thread alone. */
    uint32_t (*thread_count)(void* ctx);
    void (*parallel_for)(void* ctx, uint32_t count, void (*body)(void* arg, uint32_t index), void* arg);

    /* A metric family member; the same name and labels give the same metric. NULL when the name is not a valid metric
     * name or the label set would grow without bound. Lives as long as the host. */
    dsv4_metric* (*metric)(void* ctx, int32_t kind, dsv4_str name, dsv4_str help, const dsv4_label* labels,
                           size_t label_count);
    void (*metric_update)(void* ctx, dsv4_metric* metric, double value);
    /* The whole registry in the Prometheus text format, handed to sink in pieces. */
    void (*metrics_expose)(void* ctx, void (*sink)(void* arg, dsv4_str piece), void* arg);

    /* Trace spans. `traceparent` may be empty: a new trace. NULL when tracing is off; span_end(NULL) is allowed. */
    dsv4_span* (*span_begin)(void* ctx, dsv4_str name, dsv4_str request_id, dsv4_str traceparent);
    void (*span_end)(void* ctx, dsv4_span* span);

    /* Services. NULL when there is none in this program run (a linter has no tokenizer). Each takes this `ctx`. */
    const dsv4_tokenizer_service* tokenizer;
    const dsv4_grammar_service* grammar;
    const dsv4_lowering_service* lowering;        /* spec plugins */
    const struct dsv4_generate_service* generate; /* api plugins */
} dsv4_host;

#ifdef __cplusplus
}
#endif
#endif
