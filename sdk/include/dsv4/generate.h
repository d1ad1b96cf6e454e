/* The generation service that the core offers to api plugins: requests in, ordered events out.
 *
 * A request goes through encode (parser), tokenize, schedule, decode, detokenize and parse; the plugin sees events.
 * Each request has a bounded queue: a reader that does not take its events pauses its own sequence only.
 */
#ifndef DSV4_GENERATE_H
#define DSV4_GENERATE_H

#include "dsv4/backend.h"
#include "dsv4/chat.h"
#include "dsv4/parser.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dsv4_request_handle dsv4_request_handle;

typedef struct dsv4_limits {
    int64_t max_tokens; /* generated tokens; -1: as far as the context allows */
    int64_t min_tokens;
    int64_t max_reasoning_tokens; /* -1: no limit of its own */
    uint64_t deadline_us;         /* host monotonic clock; 0: none */
} dsv4_limits;

#define DSV4_SAID_TEMPERATURE (1ull << 0)
#define DSV4_SAID_TOP_K (1ull << 1)
#define DSV4_SAID_TOP_P (1ull << 2)
#define DSV4_SAID_MIN_P (1ull << 3)
#define DSV4_SAID_PRESENCE_PENALTY (1ull << 4)
#define DSV4_SAID_FREQUENCY_PENALTY (1ull << 5)
#define DSV4_SAID_REPETITION_PENALTY (1ull << 6)
#define DSV4_SAID_SEED (1ull << 7)

/* Exactly one of chat, prompt_ids and prompt_text is given. Copied by submit. Start from dsv4::sdk::default_request():
 * zero is not a safe value of every member. */
typedef struct dsv4_generate_request {
    uint32_t struct_size;
    const dsv4_chat_request* chat;
    const int32_t* prompt_ids;
    uint64_t prompt_id_count;
    dsv4_str prompt_text;
    int32_t parse_special;  /* prompt_text: 1 = control token spellings become control tokens */
    uint32_t n;             /* completions of one prompt, 1 .. 128 */
    dsv4_sampling sampling; /* stop_ids: the request's own; the model's are added unless ignore_eos. min_length and
                               max_length are the core's: use limits */
    uint64_t sampling_said; /* DSV4_SAID_*: members that the client gave; the deployment's defaults fill the others */
    dsv4_limits limits;
    const dsv4_str* stop_strings;
    uint32_t stop_string_count;
    int32_t include_stop_string;
    int32_t priority;        /* higher runs first */
    int32_t echo;            /* prompt tokens come first in the events */
    int32_t prompt_logprobs; /* -1: none */
    dsv4_str cache_salt;     /* prefixes are shared only under an equal salt */
    dsv4_str grammar;        /* text for the host's grammar service; overrides the parser's */
    int32_t grammar_syntax;
    dsv4_str request_id;        /* empty: made by the host */
    dsv4_str traceparent;       /* W3C trace context, or empty */
    const int32_t* allowed_ids; /* with a count above 0: only these tokens may be generated, and the stop ids */
    uint32_t allowed_id_count;
    int32_t ignore_eos; /* 1: the model's own stop ids do not end a completion */
    int32_t add_bos;    /* prompt_text: 1 = the model's begin token comes first unless the text starts with it */
    uint32_t reserved;
    int64_t truncate_prompt_tokens; /* keep the last tokens of a longer prompt; 0: off, -1: what the context holds */
} dsv4_generate_request;

/* A request ends with one FINISHED for each completion, or with one ERROR, after which no FINISHED comes. */
typedef enum dsv4_event_kind {
    DSV4_EVENT_ACCEPTED = 1,
    DSV4_EVENT_TOKENS = 2,
    DSV4_EVENT_FINISHED = 3, /* last event of completion `index` */
    DSV4_EVENT_ERROR = 4     /* last event of the request */
} dsv4_event_kind;

typedef enum dsv4_finish_reason {
    DSV4_REASON_STOP = 1,
    DSV4_REASON_LENGTH = 2,
    DSV4_REASON_TOOL_CALLS = 3,
    DSV4_REASON_CANCELLED = 4,
    DSV4_REASON_DEADLINE = 5
} dsv4_finish_reason;

typedef struct dsv4_token {
    int32_t id;
    int32_t is_control;
    dsv4_str bytes;
    float logprob; /* NaN when not asked for */
    uint32_t top_count;
    const dsv4_top_logprob* top;
    int32_t part; /* where the token belongs: DSV4_DELTA_REASONING, _CONTENT, _TOOL_ARGUMENTS; 0: markup or control */
    uint32_t reserved;
} dsv4_token;

typedef struct dsv4_usage {
    int64_t prompt_tokens;
    int64_t cached_tokens;
    int64_t completion_tokens;
    int64_t reasoning_tokens;
    int64_t accepted_draft_tokens;
    int64_t draft_tokens;
} dsv4_usage;

typedef struct dsv4_timings {
    uint64_t queue_us;
    uint64_t prefill_us;
    uint64_t decode_us;
} dsv4_timings;

/* Owned by the request; lives until the next call of next or release for it. */
typedef struct dsv4_event {
    uint32_t struct_size;
    int32_t kind;
    uint32_t index; /* completion, 0 .. n-1 */
    /* accepted */
    int64_t prompt_tokens;
    int64_t cached_tokens;
    dsv4_str miss_reason; /* why the prefix cache stopped where it did; empty: it did not. For operators, not for
                           * clients: "salt" would tell one tenant what another has sent */
    dsv4_str request_id;
    /* tokens: new tokens, and what the parser made of them (chat requests; else deltas are content) */
    const dsv4_token* tokens;
    uint32_t token_count;
    const dsv4_delta* deltas;
    uint32_t delta_count;
    /* finished */
    int32_t reason; /* dsv4_finish_reason */
    dsv4_str stop;  /* the stop string that matched, or empty */
    dsv4_usage usage;
    dsv4_timings timings;
    /* error */
    int32_t code; /* dsv4_code */
    int32_t retryable;
    dsv4_str message;
} dsv4_event;

/* Any thread; `next` for one request from one thread at a time. */
typedef struct dsv4_generate_service {
    uint32_t struct_size;
    /* DSV4_INVALID: the request can never run, the message starting with the parameter at fault ("messages[2].content:
     * ..."); a prompt that is too long: "This model's maximum context length is N tokens. However, your prompt has M
     * tokens.". DSV4_UNSUPPORTED: not offered here. DSV4_EXHAUSTED: the queue is full, try again. DSV4_ENVIRONMENT: not
     * ready, or shutting down. Prompt plus max_tokens beyond the context is cut, never an error. With echo, prompt
     * tokens come in events of their own before the first generated one. */
    dsv4_error* (*submit)(void* ctx, const dsv4_generate_request* request, dsv4_request_handle** out);
    /* `wake(arg)` is called (from a core thread, must not block) whenever events may be waiting. Set once, before the
     * first next; optional: next can wait instead. No wake runs after release returned. */
    void (*on_events)(void* ctx, dsv4_request_handle* request, void (*wake)(void* arg), void* arg);
    /* The next event; *out = NULL when there is none within timeout_us, and at once after the last one. */
    dsv4_error* (*next)(void* ctx, dsv4_request_handle* request, uint64_t timeout_us, const dsv4_event** out);
    /* Idempotent. Takes effect at the next step boundary; exactly one final event a completion still comes. */
    void (*cancel)(void* ctx, dsv4_request_handle* request);
    /* Frees the handle; cancels first when the request still runs. Does not block; nothing may use the handle at the
     * same time or afterwards. */
    void (*release)(void* ctx, dsv4_request_handle* request);
    /* The segments of a chat request, tokenized, without running it (/tokenize). Writes up to capacity ids. */
    dsv4_error* (*tokenize)(void* ctx, const dsv4_chat_request* chat, int32_t* ids, size_t capacity, size_t* count);
    /* JSON: {"model", "max_model_len", "parallel", "running", "waiting", "ready"}; sink called once. */
    void (*describe)(void* ctx, void (*sink)(void* arg, dsv4_str json), void* arg);
} dsv4_generate_service;

#ifdef __cplusplus
}
#endif
#endif
