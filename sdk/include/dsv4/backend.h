/* The backend contract: own the weights and the state, compile Programs, run batches in order.
 *
 * Objects: the instance (a library's view of the machine; needs no device) -> a device session (one device, one rank)
 * -> executables. What ops compute is docs/ops.md; how the host drives a backend, step by step, is docs/contracts.md.
 *
 * Threads: functions of the instance: any thread. Functions that take a session: one engine thread, except stage,
 * weight (one loader thread) and wait, poll, supply, ticket_release (any thread). Nothing here blocks but open, weight,
 * weights_done, state_alloc, compile, wait, close, the measurements, and submit where more than two tickets are in
 * flight (submitted and not complete). close, executable_release, poll and ticket_release cannot report an error.
 */
#ifndef DSV4_BACKEND_H
#define DSV4_BACKEND_H

#include "dsv4/abi.h"
#include "dsv4/program.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dsv4_session dsv4_session;       /* owned by the backend; ends with close */
typedef struct dsv4_executable dsv4_executable; /* owned by the session; ends with executable_release or close */
typedef uint64_t dsv4_ticket;                   /* 1, 2, 3 ... in submit order; 0 is never a ticket */

/* ---------------------------------------------------------------- machine */

typedef struct dsv4_device_info {
    uint32_t struct_size;
    int32_t index; /* what open takes */
    dsv4_str name; /* "AMD EPYC", "NVIDIA H200" */
    dsv4_str arch; /* a [[target]] of the manifest: "x86_64", "sm_90a" */
    uint64_t memory_bytes;
    uint64_t free_bytes;
    dsv4_str unusable; /* empty, or why this device cannot be used */
    uint64_t reserved[4];
} dsv4_device_info;

typedef struct dsv4_group {
    int32_t rank;
    int32_t world;      /* 1: no communicator is made */
    dsv4_str unique_id; /* from unique_id() of rank 0; empty when world is 1 */
} dsv4_group;

typedef struct dsv4_session_config {
    uint32_t struct_size;
    int32_t device; /* dsv4_device_info.index */
    dsv4_group group;
    int32_t deterministic; /* 1: a row's result never depends on the other rows of its batch */
    uint32_t reserved;
} dsv4_session_config;

/* ---------------------------------------------------------------- weights */

/* One weight of the announced list. A stacked weight (experts) has dims [E, out, in] and arrives in E parts. */
typedef struct dsv4_weight {
    uint32_t struct_size;
    dsv4_str name; /* canonical name, as Programs use it */
    dsv4_format format;
    int64_t dims[3]; /* logical elements, outermost first */
    uint32_t dim_count;
    uint32_t parts;    /* 1, or dims[0] of a stack */
    int32_t residency; /* 0 device, 1 pinned host (read from there by the kernels) */
    int32_t slice_dim; /* -1: the whole weight; else what arrives is dims[slice_dim] from begin to end, cut at blocks */
    int64_t slice_begin;
    int64_t slice_end;
    uint64_t reserved[4];
} dsv4_weight;

/* ---------------------------------------------------------------- state */

/* How a backend stores one kind for one Program. A page holds all layers of the kind. */
typedef struct dsv4_state_layout {
    uint32_t struct_size;
    int32_t kind; /* dsv4_state_kind */
    uint32_t positions_per_page;
    uint32_t rows_per_page;
    uint64_t page_bytes; /* all layers; for kinds kept per slot: bytes a slot */
    uint64_t layout_tag; /* equal tags mean byte-compatible pages, of any backend: hash a text that names the layout */
    uint64_t reserved[4];
} dsv4_state_layout;

typedef struct dsv4_state_pool {
    int32_t kind;
    uint32_t pages; /* ids 0 .. pages-1 */
} dsv4_state_pool;

/* ---------------------------------------------------------------- batches */

typedef struct dsv4_bias {
    int32_t token;
    float value;
} dsv4_bias;

/* How a slot's tokens are chosen; order of operations in docs/ops.md, Sampling. dsv4::sdk::default_sampling() gives a
 * greedy one without limits. */
typedef struct dsv4_sampling {
    uint32_t struct_size;
    float temperature;        /* 0: argmax */
    int32_t top_k;            /* 0: off */
    float top_p;              /* 1: off */
    float min_p;              /* 0: off */
    float presence_penalty;   /* 0: off; over generated tokens */
    float frequency_penalty;  /* 0: off; over generated tokens */
    float repetition_penalty; /* 1: off; over prompt and generated tokens */
    uint64_t seed;
    int32_t logprobs; /* -1: none; k >= 0: the token's own and the k best */
    int32_t masked;   /* 1: its rows take a late mask (supply) */
    const dsv4_bias* bias;
    uint32_t bias_count;
    const int32_t* stop_ids; /* emitting one sets the record's finished flag */
    uint32_t stop_count;
    /* Lengths count prompt and generated tokens; a token emitted at position q makes the length q + 1. */
    int64_t min_length; /* stop ids are impossible where they would end a sequence shorter than this */
    int64_t max_length; /* reaching it finishes the record; INT64_MAX: no limit; 0 is invalid */
    uint64_t reserved[8];
} dsv4_sampling;

/* Pages of one kind for one slot: ids[i] is page number first_page + i; -1 where there is none. */
typedef struct dsv4_page_table {
    int32_t kind;
    uint32_t count;
    int64_t first_page;
    const int32_t* ids;
} dsv4_page_table;

#define DSV4_SLOT_RESET 1u /* begin a new record from the members below */

/* A slot that has rows in this batch, in order of its rows. */
typedef struct dsv4_batch_slot {
    int32_t slot;                  /* device record, 0 .. slots-1 */
    uint32_t flags;                /* DSV4_SLOT_* */
    int64_t committed;             /* RESET: committed length P to start from (0, or a prefix hit) */
    const dsv4_sampling* sampling; /* NULL: as before; with RESET: greedy without limits */
    const int32_t* prompt_ids;     /* RESET with penalties: tokens counted as prompt; else NULL */
    uint64_t prompt_count;
    const int32_t* generated_ids; /* RESET of a resumed sequence: tokens counted as generated */
    uint64_t generated_count;
    const dsv4_page_table* tables; /* every paged kind the executable uses */
    uint32_t table_count;
    uint32_t reserved;
} dsv4_batch_slot;

typedef enum dsv4_row_input {
    DSV4_INPUT_GIVEN = 0, /* `token` is the id */
    DSV4_INPUT_LAST = 1,  /* the record's last token */
    DSV4_INPUT_DRAFT = 2, /* the record's draft number `token` (0 = d_1) */
    DSV4_INPUT_NOISE = 3  /* `token` is the noise id */
} dsv4_row_input;

#define DSV4_ROW_LOGITS                                                                                                \
    1u                     /* logits are wanted; sample or verify acts on it. M counts this flag, idle rows included   \
                            */
#define DSV4_ROW_VERIFY 2u /* commits only as far as verify accepts */
#define DSV4_ROW_DRAFT 4u  /* a draft row: commits nothing, writes no target state */
#define DSV4_ROW_PAD 8u    /* writes nothing, reads no experts */
#define DSV4_ROW_RELATIVE 16u /* `position` counts from the record's committed length when the step runs */

/* One row. Rows of one slot are consecutive and ascending in position. A row that is neither VERIFY, DRAFT nor PAD
 * commits its position: P becomes position + 1. A row of a finished record acts as PAD. What rows take from the record
 * (P, last token, drafts, finished flag) is read once, when their work begins; what a work emits takes effect for the
 * next one. An id outside the vocabulary, LAST without a last token and a draft that does not exist are errors of the
 * row. VERIFY implies LOGITS. Outputs of idle (PAD) rows are unspecified. */
typedef struct dsv4_row {
    int32_t slot;  /* index into dsv4_batch.slots */
    int32_t input; /* dsv4_row_input */
    int32_t token;
    uint32_t flags; /* DSV4_ROW_* */
    int64_t position;
} dsv4_row;

typedef struct dsv4_page_copy {
    int32_t kind;
    int32_t from;
    int32_t to;
} dsv4_page_copy;

/* A named Program input or output in host memory, row-major, densely packed, in the value's element type. N and M rows
 * in batch order. Inputs are copied at submit; outputs are written before the ticket completes and must live till then.
 */
typedef struct dsv4_tensor {
    dsv4_str name;
    void* data;
    uint64_t bytes; /* exactly rows x constant dims x element size */
} dsv4_tensor;

typedef struct dsv4_batch {
    uint32_t struct_size;
    uint32_t row_bytes;  /* sizeof(dsv4_row): the stride of `rows` */
    uint32_t slot_bytes; /* sizeof(dsv4_batch_slot) */
    uint32_t row_count;
    uint32_t slot_count;
    const dsv4_row* rows;
    const dsv4_batch_slot* slots;
    const dsv4_page_copy* copies; /* done before the rows: copy on write */
    uint32_t copy_count;
    const dsv4_tensor* inputs; /* every Program input */
    uint32_t input_count;
    const dsv4_tensor* outputs; /* any of the Program outputs */
    uint32_t output_count;
    uint32_t reserved;
} dsv4_batch;

typedef struct dsv4_work {
    dsv4_executable* executable;
    const dsv4_batch* batch;
} dsv4_work;

/* ---------------------------------------------------------------- results */

typedef struct dsv4_top_logprob {
    int32_t token;
    float logprob;
} dsv4_top_logprob;

#define DSV4_RESULT_FINISHED 1u /* this token set the record's finished flag */

/* One emitted token. A verified row group emits 1 + accepted of them, in order; a token that finishes the record is the
 * last, and then `accepted` counts the drafts emitted, this one included where it is one. */
typedef struct dsv4_result {
    int32_t slot; /* device record */
    int32_t token;
    int64_t position; /* of the emitted token: the committed length after the row that produced it */
    uint32_t flags;
    int32_t accepted; /* drafts accepted in this row group; the same in each of its results */
    float logprob; /* natural log-softmax of the logits before bias, penalties, mask and temperature; NaN: not asked */
    uint32_t top_count;
    const dsv4_top_logprob* top; /* best first */
    uint32_t work;               /* number of the work within its submit, and of the row within its batch */
    uint32_t row;
} dsv4_result;

/* A row that failed. Its slot is poisoned: its record is finished and its later rows act as PAD; others go on. */
typedef struct dsv4_row_error {
    int32_t slot;
    int32_t row;
    dsv4_str op; /* "attend/1" */
    dsv4_str message;
    uint32_t work; /* number of the work within its submit */
    uint32_t reserved;
} dsv4_row_error;

/* Owned by the session; lives until ticket_release. */
typedef struct dsv4_ticket_result {
    uint32_t struct_size;
    uint32_t result_bytes; /* stride of results */
    uint32_t result_count;
    uint32_t error_count;
    const dsv4_result* results; /* in row order of the works in order */
    const dsv4_row_error* errors;
    uint64_t device_us; /* time the ticket ran, without waiting in the queue */
} dsv4_ticket_result;

/* ---------------------------------------------------------------- transfers and reports */

typedef enum dsv4_memory_kind {
    DSV4_MEMORY_HOST = 1,
    DSV4_MEMORY_PINNED = 2,
    DSV4_MEMORY_DEVICE = 3,
    DSV4_MEMORY_EXPORTED_FD = 4
} dsv4_memory_kind;

typedef struct dsv4_page_list {
    int32_t kind;
    uint32_t count;
    const int32_t* ids;
} dsv4_page_list;

/* Pages <-> memory, which must live until the ticket completes. The blob starts with a header (docs/contracts.md,
 * section State blobs) that holds magic, version, checkpoint hash, layout tags, tensor-parallel slice and positions;
 * import refuses any mismatch by name. */
typedef struct dsv4_transfer {
    uint32_t struct_size;
    const dsv4_page_list* pages;
    uint32_t page_list_count;
    int64_t begin_position;
    int64_t end_position;
    uint8_t checkpoint_hash[32];
    int32_t memory_kind; /* dsv4_memory_kind */
    void* memory;
    uint64_t memory_bytes; /* capacity for export (0 measures through *needed_bytes), size for import */
} dsv4_transfer;

typedef struct dsv4_memory_report {
    uint32_t struct_size;
    uint64_t weights_bytes;
    uint64_t pinned_weights_bytes;
    uint64_t state_bytes;
    uint64_t workspace_bytes;
    uint64_t executables_bytes;
} dsv4_memory_report;

/* One line of what ran: for `plugins check` tables and traces. */
typedef struct dsv4_kernel_use {
    dsv4_str op;
    dsv4_str kernel;
    uint64_t calls;
    double seconds;
} dsv4_kernel_use;

typedef struct dsv4_compile_options {
    uint32_t struct_size;
    uint32_t max_rows;
    uint32_t max_slots;
} dsv4_compile_options;

/* ---------------------------------------------------------------- the table */

typedef struct dsv4_backend_table {
    uint32_t struct_size;

    /* Where a Program describes state (state_layouts, state_alloc), the host passes one whose state list is the union
     * of all Programs that will run; it may have no ops. */

    /* Machine. Needs no device: with none, *count is 0. The array and its texts live as long as the instance. */
    dsv4_error* (*devices)(void* self, const dsv4_device_info** devices, uint32_t* count);
    /* Can this Program (often one op) be compiled here? NULL, or DSV4_UNSUPPORTED naming the op, attribute or type. */
    dsv4_error* (*supports)(void* self, dsv4_str program);
    /* Bytes and layout of each state kind the Program uses. Writes up to capacity, stores the full count. */
    dsv4_error* (*state_layouts)(void* self, dsv4_str program, dsv4_state_layout* out, uint32_t capacity,
                                 uint32_t* count);
    /* A fresh communicator id for dsv4_group; (optional) absent: world must be 1. Writes up to 256 bytes. */
    dsv4_error* (*unique_id)(void* self, uint8_t* out, uint32_t* bytes);

    dsv4_error* (*open)(void* self, const dsv4_session_config* config, dsv4_session** out);
    /* Waits for running tickets, abandons those that wait for masks, and frees everything of the session. */
    void (*close)(dsv4_session* session);

    /* Weights, once a session: announce all -> for each part: stage, weight -> weights_done. */
    dsv4_error* (*weights_announce)(dsv4_session* session, const dsv4_weight* weights, uint32_t count);
    /* Memory to read a part into: at least `bytes`, aligned to 64, owned by the backend, valid until passed to weight
     * or the next-but-one stage call. */
    dsv4_error* (*stage)(dsv4_session* session, uint64_t bytes, void** out);
    /* Takes a part. `data` and `scale` may be staged memory or any other; they are free again when the call returns,
     * staged memory when the backend reuses it. Sizes must be exactly those of the announced format, scale empty where
     * the format has none. After an error the part is still missing and may be sent again. */
    dsv4_error* (*weight)(dsv4_session* session, uint32_t index, uint32_t part, dsv4_str data, dsv4_str scale);
    /* All parts arrived; DSV4_INVALID naming the first missing one. */
    dsv4_error* (*weights_done)(dsv4_session* session);

    /* State for the executables of this session: pools of pages and `slots` records. Again: replaces it, contents gone;
     * only with no ticket in flight. */
    dsv4_error* (*state_alloc)(dsv4_session* session, dsv4_str program, const dsv4_state_pool* pools, uint32_t count,
                               uint32_t slots);

    /* After weights_done and state_alloc. Everything slow happens here: no later call allocates or compiles. */
    dsv4_error* (*compile)(dsv4_session* session, dsv4_str program, const dsv4_compile_options* options,
                           dsv4_executable** out);
    /* Only when no ticket in flight uses it. */
    void (*executable_release)(dsv4_session* session, dsv4_executable* executable);

    /* Queues works as one ticket and returns. Tickets run in order; at least two may be in flight; a third may make
     * submit wait for the first. The batches are copied. On error nothing was queued. */
    dsv4_error* (*submit)(dsv4_session* session, const dsv4_work* works, uint32_t count, dsv4_ticket* out);
    /* Late masks of work number `work`: for each LOGITS row whose slot's sampling is `masked`, in row order, idle rows
     * included, (vocab+31)/32 words; bit set = allowed. Once a ticket and work whose Program has a mask op and where
     * there is such a row; the device waits at the mask op until then. */
    dsv4_error* (*supply)(dsv4_session* session, dsv4_ticket ticket, uint32_t work, const uint32_t* words,
                          uint64_t word_count);
    /* 1 complete (failed and unknown tickets too: wait tells), 0 not yet. */
    int32_t (*poll)(dsv4_session* session, dsv4_ticket ticket);
    /* Waits up to timeout_us (UINT64_MAX: for ever; DSV4_DEADLINE when it passes). */
    dsv4_error* (*wait)(dsv4_session* session, dsv4_ticket ticket, uint64_t timeout_us, const dsv4_ticket_result** out);
    /* Once, after completion. */
    void (*ticket_release)(dsv4_session* session, dsv4_ticket ticket);

    /* Queue a transfer behind the tickets submitted so far; *out completes like a ticket. `needed_bytes` (may be NULL)
     * receives the blob's size; DSV4_EXHAUSTED when memory_bytes is too small. (optional) absent: no transfers. */
    dsv4_error* (*state_export)(dsv4_session* session, const dsv4_transfer* transfer, uint64_t* needed_bytes,
                                dsv4_ticket* out);
    dsv4_error* (*state_import)(dsv4_session* session, const dsv4_transfer* transfer, dsv4_ticket* out);

    dsv4_error* (*memory)(dsv4_session* session, dsv4_memory_report* out);
    /* Host-to-device bytes a second from staged memory, measured now. (optional) */
    dsv4_error* (*copy_rate)(dsv4_session* session, uint64_t bytes, double* bytes_per_s);
    /* What ran since the last call, for reports. The array lives until the next call. (optional) */
    dsv4_error* (*kernels)(dsv4_session* session, const dsv4_kernel_use** out, uint32_t* count);
} dsv4_backend_table;

#ifdef __cplusplus
}
#endif
#endif
