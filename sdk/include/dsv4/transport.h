/* The transport contract: framed control messages and state blobs between ranks and pools. */
#ifndef DSV4_TRANSPORT_H
#define DSV4_TRANSPORT_H

#include "dsv4/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dsv4_channel dsv4_channel; /* owned by the plugin; ends with close */

/* Every control message starts so, little-endian. A receiver refuses another major with DSV4_INVALID naming both. */
#define DSV4_MESSAGE_MAGIC 0x34565344u /* "DSV4" */
typedef struct dsv4_message_header {
    uint32_t magic;
    uint16_t major;
    uint16_t minor;
    uint32_t type;
    uint32_t bytes; /* of the payload */
} dsv4_message_header;

typedef struct dsv4_channel_config {
    uint32_t struct_size;
    dsv4_str endpoint;   /* "ipc:///run/dsv4/0", "tcp://10.0.0.1:5555" */
    int32_t bind;        /* 1 listens, 0 connects */
    dsv4_str public_key; /* CURVE keys, Z85; required when the endpoint leaves the host */
    dsv4_str secret_key;
    dsv4_str peer_key; /* connect: the server's; bind: the only client that is let in */
    uint32_t max_message_bytes;
    uint32_t reserved;
} dsv4_channel_config;

/* A channel: one thread. `open` and `close`: control thread. */
typedef struct dsv4_transport_table {
    uint32_t struct_size;
    dsv4_error* (*open)(void* self, const dsv4_channel_config* config, dsv4_channel** out);
    void (*close)(dsv4_channel* channel);
    /* DSV4_DEADLINE when the peer did not take it in time. */
    dsv4_error* (*send)(dsv4_channel* channel, uint32_t type, dsv4_str payload, uint64_t timeout_us);
    /* Payload lives until the next call on the channel. DSV4_CORRUPT for a bad frame, DSV4_EXHAUSTED for one above
     * max_message_bytes (nothing is allocated for it). */
    dsv4_error* (*receive)(dsv4_channel* channel, uint64_t timeout_us, uint32_t* type, dsv4_str* payload);
    /* Bulk bytes, after a message that announced them. `memory_kind` is dsv4_memory_kind of dsv4/backend.h. */
    dsv4_error* (*put)(dsv4_channel* channel, int32_t memory_kind, const void* memory, uint64_t bytes,
                       uint64_t timeout_us);
    dsv4_error* (*get)(dsv4_channel* channel, int32_t memory_kind, void* memory, uint64_t bytes, uint64_t timeout_us);
    /* Why the channel is down, or NULL when it is up: a wrong key, a lost peer. Caller releases. */
    dsv4_error* (*health)(dsv4_channel* channel);
} dsv4_transport_table;

#ifdef __cplusplus
}
#endif
#endif
