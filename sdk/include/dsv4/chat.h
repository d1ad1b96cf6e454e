/* A chat request as an api plugin hands it on, and a prompt as a parser plugin returns it.
 *
 * JSON travels as the client's own UTF-8 text, so that key order and the spelling of numbers survive to the prompt.
 */
#ifndef DSV4_CHAT_H
#define DSV4_CHAT_H

#include "dsv4/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DSV4_UNSAID (-1)

/* Borrowed for the call. An empty text means the client did not say. */
typedef struct dsv4_chat_request {
    uint32_t struct_size;
    int32_t thinking;               /* 0, 1 or DSV4_UNSAID: from `thinking`, `enable_thinking` and the like */
    int32_t continue_final_message; /* 0, 1 or DSV4_UNSAID */
    int32_t default_thinking;       /* the deployment's own answer where the request says nothing; DSV4_UNSAID: none */
    dsv4_str messages; /* JSON array of OpenAI chat messages; the api plugin checked that it is an array, the parser the
                          rest */
    dsv4_str tools;    /* JSON array */
    dsv4_str tool_choice;     /* JSON value */
    dsv4_str response_format; /* JSON object */
    dsv4_str effort;          /* plain text as the client spelt it: "low", "none", ... */
    dsv4_str default_effort;  /* plain text; the deployment's own answer */
    dsv4_str template_kwargs; /* JSON object chat_template_kwargs; wins over `thinking` and `effort` */
} dsv4_chat_request;

typedef enum dsv4_segment_kind {
    DSV4_SEGMENT_TEXT = 0,   /* text to tokenize plainly: never yields a control token */
    DSV4_SEGMENT_CONTROL = 1 /* the exact name of one control token */
} dsv4_segment_kind;

typedef struct dsv4_segment {
    int32_t kind;
    dsv4_str text;
} dsv4_segment;

/* Owned by the parser; everything in it lives until prompt_release. Immutable: any thread. */
typedef struct dsv4_prompt {
    uint32_t struct_size;
    uint32_t segment_count;
    const dsv4_segment* segments;
    const dsv4_str* stop_names; /* control tokens that end the turn */
    uint32_t stop_count;
    const dsv4_str* banned_names; /* control tokens that must not be sampled */
    uint32_t banned_count;
    int32_t thinking;      /* resolved: 1 when the completion starts inside reasoning */
    int32_t tools_enabled; /* resolved: tool markup is structure, not text */
    dsv4_str effort;       /* resolved: "low", "high", "max"; empty in chat mode */
    dsv4_str tools;        /* JSON array the completion parser needs; may be empty */
    dsv4_str grammar;      /* EBNF for the completion, or empty */
    dsv4_str reused_note;  /* why the prompt cannot extend the previous turn's KV, or empty */
} dsv4_prompt;

#ifdef __cplusplus
}
#endif
#endif
