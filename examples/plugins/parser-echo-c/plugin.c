// The echo parser of parser-echo in plain C11, written against the tables of dsv4/parser.h without the SDK.
#include <dsv4/host.h>
#include <dsv4/parser.h>
#include <dsv4/plugin.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if !defined(DSV4_PLUGIN_NAME) || !defined(DSV4_MANIFEST_SHA256)
#error "build with dsv4_add_plugin"
#endif

// ---------------------------------------------------------------- errors

// Errors here are constant sentences, so one static object each would do; a heap one keeps `release` honest.
static void error_release(dsv4_error* e) { free(e); }
static void error_keep(dsv4_error* e) { (void)e; }

static dsv4_error* make_error(int32_t code, const char* message) {
    static dsv4_error exhausted = {sizeof(dsv4_error), DSV4_EXHAUSTED, {"out of memory", 13}, {NULL, 0}, error_keep};
    dsv4_error* e = calloc(1, sizeof *e);
    if (!e) return &exhausted;
    e->struct_size = sizeof *e;
    e->code = code;
    e->message.data = message;
    e->message.size = strlen(message);
    e->release = error_release;
    return e;
}

// ---------------------------------------------------------------- growing bytes

typedef struct buffer {
    char* data;
    size_t size, room;
} buffer;

static bool put(buffer* b, const char* data, size_t size) {
    if (size > b->room - b->size) {
        const size_t room = (b->size + size) * 2;
        char* more = realloc(b->data, room);
        if (!more) return false;
        b->data = more;
        b->room = room;
    }
    if (size) memcpy(b->data + b->size, data, size);
    b->size += size;
    return true;
}

// ---------------------------------------------------------------- JSON, as much as messages need

typedef struct json {
    const char* at;
    const char* end;
    int depth;
    bool out_of_memory;
} json;

static void json_space(json* j) {
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\r' || *j->at == '\n')) ++j->at;
}
static char json_peek(json* j) {
    json_space(j);
    return j->at < j->end ? *j->at : '\0';
}
static bool json_take(json* j, char c) {
    if (json_peek(j) != c || j->at >= j->end) return false;
    ++j->at;
    return true;
}
static bool json_add(json* j, buffer* out, const char* data, size_t size) {
    if (!out || put(out, data, size)) return true;
    j->out_of_memory = true;
    return false;
}
static bool json_hex(json* j, uint32_t* v) {
    *v = 0;
    for (int i = 0; i < 4; ++i) {
        if (j->at >= j->end) return false;
        const char c = *j->at++, l = (char)(c | 32);
        if (c >= '0' && c <= '9')
            *v = *v * 16 + (uint32_t)(c - '0');
        else if (l >= 'a' && l <= 'f')
            *v = *v * 16 + (uint32_t)(l - 'a' + 10);
        else
            return false;
    }
    return true;
}
static bool json_unicode(json* j, buffer* out) {
    uint32_t v, low;
    if (!json_hex(j, &v) || (v >= 0xdc00 && v < 0xe000)) return false;
    if (v >= 0xd800 && v < 0xdc00) {
        if (j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u') return false;
        j->at += 2;
        if (!json_hex(j, &low) || low < 0xdc00 || low >= 0xe000) return false;
        v = 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
    }
    char c[4];
    size_t n;
    if (v < 0x80) {
        c[0] = (char)v;
        n = 1;
    } else {
        n = v < 0x800 ? 2 : v < 0x10000 ? 3 : 4;
        static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
        for (size_t i = n; i-- > 1; v >>= 6) c[i] = (char)(0x80 | (v & 63));
        c[0] = (char)(lead[n] | v);
    }
    return json_add(j, out, c, n);
}
// A string into `out`, which may be NULL.
static bool json_string(json* j, buffer* out) {
    if (!json_take(j, '"')) return false;
    while (j->at < j->end) {
        const char c = *j->at++;
        if (c == '"') return true;
        if ((unsigned char)c < 0x20) return false;
        if (c != '\\') {
            if (!json_add(j, out, &c, 1)) return false;
            continue;
        }
        if (j->at >= j->end) return false;
        const char e = *j->at++;
        static const char from[] = "ntrbf\"\\/", to[] = "\n\t\r\b\f\"\\/";
        if (e == 'u') {
            if (!json_unicode(j, out)) return false;
        } else {
            const char* k = e ? strchr(from, e) : NULL;
            if (!k || !json_add(j, out, to + (k - from), 1)) return false;
        }
    }
    return false;
}
static bool json_skip(json* j) {
    if (++j->depth > 64) return false;
    const char c = json_peek(j);
    bool ok = true;
    if (c == '"') {
        ok = json_string(j, NULL);
    } else if (c == '{' || c == '[') {
        const char close = c == '{' ? '}' : ']';
        ++j->at;
        if (!json_take(j, close)) {
            do {
                if (c == '{') ok = json_string(j, NULL) && json_take(j, ':');
                ok = ok && json_skip(j);
            } while (ok && json_take(j, ','));
            ok = ok && json_take(j, close);
        }
    } else {
        const char* begin = j->at;
        while (j->at < j->end && *j->at && strchr("+-.0123456789aefilnrstuEINY", *j->at)) ++j->at;
        ok = j->at != begin;
    }
    --j->depth;
    return ok;
}

// ---------------------------------------------------------------- prompts

typedef struct echo {
    dsv4_str stop; // data owned; empty: none
} echo;

typedef struct echo_prompt {
    dsv4_prompt view; // first, so that a prompt's address is its own
    buffer text;      // all segments, end to end
    dsv4_segment* segments;
    size_t count, room;
} echo_prompt;

static void prompt_free(echo_prompt* p) {
    free(p->text.data);
    free(p->segments);
    free(p);
}

// Closes the segment that began at `begin` of the text; the pointers are set when the text stops moving.
static bool add_segment(echo_prompt* p, size_t begin) {
    if (p->text.size == begin) return true;
    if (p->count == p->room) {
        const size_t room = p->room ? p->room * 2 : 8;
        dsv4_segment* more = realloc(p->segments, room * sizeof *more);
        if (!more) return false;
        p->segments = more;
        p->room = room;
    }
    dsv4_segment* s = &p->segments[p->count++];
    memset(s, 0, sizeof *s);
    s->kind = DSV4_SEGMENT_TEXT;
    s->text.size = p->text.size - begin;
    return true;
}

// A string, null, or an array of parts of which those with a "text" count.
static bool read_content(json* j, echo_prompt* p) {
    const size_t begin = p->text.size;
    if (json_peek(j) == '"') {
        if (!json_string(j, &p->text)) return false;
        return add_segment(p, begin) || !(j->out_of_memory = true);
    }
    if (json_peek(j) != '[') return json_skip(j);
    json_take(j, '[');
    if (json_take(j, ']')) return true;
    do {
        if (!json_take(j, '{')) return false;
        if (json_take(j, '}')) continue;
        do {
            buffer key = {NULL, 0, 0};
            bool ok = json_string(j, &key) && json_take(j, ':');
            const size_t from = p->text.size;
            if (ok && key.size == 4 && !memcmp(key.data, "text", 4)) {
                ok = json_string(j, &p->text);
                if (ok && !add_segment(p, from)) ok = !(j->out_of_memory = true);
            } else if (ok) {
                ok = json_skip(j);
            }
            free(key.data);
            if (!ok) return false;
        } while (json_take(j, ','));
        if (!json_take(j, '}')) return false;
    } while (json_take(j, ','));
    return json_take(j, ']');
}

static bool read_message(json* j, echo_prompt* p) {
    const size_t text = p->text.size, count = p->count;
    buffer role = {NULL, 0, 0};
    bool ok = json_take(j, '{');
    if (ok && !json_take(j, '}')) {
        do {
            buffer key = {NULL, 0, 0};
            ok = json_string(j, &key) && json_take(j, ':');
            if (ok && key.size == 4 && !memcmp(key.data, "role", 4)) {
                role.size = 0;
                ok = json_string(j, &role);
            } else if (ok && key.size == 7 && !memcmp(key.data, "content", 7)) {
                ok = read_content(j, p);
            } else if (ok) {
                ok = json_skip(j);
            }
            free(key.data);
        } while (ok && json_take(j, ','));
        ok = ok && json_take(j, '}');
    }
    ok = ok && role.size;
    if (ok && (role.size != 4 || memcmp(role.data, "user", 4))) { // not a user: forget what was read
        p->text.size = text;
        p->count = count;
    }
    free(role.data);
    return ok;
}

static dsv4_error* echo_encode(void* self, const dsv4_chat_request* request, const dsv4_prompt** out) {
    const echo* e = self;
    echo_prompt* p = calloc(1, sizeof *p);
    if (!p) return make_error(DSV4_EXHAUSTED, "out of memory");
    json j = {request->messages.data, NULL, 0, false};
    if (j.at) j.end = j.at + request->messages.size;
    bool ok = json_take(&j, '[');
    if (ok && !json_take(&j, ']')) {
        do ok = read_message(&j, p);
        while (ok && json_take(&j, ','));
        ok = ok && json_take(&j, ']');
    }
    json_space(&j);
    if (!ok || j.at != j.end || !p->count) {
        prompt_free(p);
        return j.out_of_memory
                   ? make_error(DSV4_EXHAUSTED, "out of memory")
                   : make_error(DSV4_INVALID, "messages are not a JSON array of messages with one of a user");
    }
    size_t at = 0;
    for (size_t i = 0; i < p->count; ++i) {
        p->segments[i].text.data = p->text.data + at;
        at += p->segments[i].text.size;
    }
    p->view.struct_size = sizeof p->view;
    p->view.segments = p->segments;
    p->view.segment_count = (uint32_t)p->count;
    p->view.stop_names = &e->stop;
    p->view.stop_count = e->stop.size ? 1 : 0;
    *out = &p->view;
    return NULL;
}

static void echo_prompt_release(void* self, const dsv4_prompt* prompt) {
    (void)self;
    prompt_free((echo_prompt*)prompt);
}

static dsv4_error* echo_control_names(void* self, const dsv4_str** names, uint32_t* count) {
    const echo* e = self;
    *names = &e->stop;
    *count = e->stop.size ? 1 : 0;
    return NULL;
}

// ---------------------------------------------------------------- completions

typedef struct echo_stream {
    char held[4]; // the beginning of a character
    unsigned have, want;
    unsigned char low, high; // what may come next
    buffer out;
} echo_stream;

static const char replacement[] = "\xef\xbf\xbd";

static bool end_held(echo_stream* s) {
    const bool ok = !s->have || put(&s->out, replacement, 3);
    s->have = 0;
    return ok;
}
static bool take_byte(echo_stream* s, unsigned char c) {
    if (s->have) {
        if (c >= s->low && c <= s->high) {
            s->held[s->have++] = (char)c;
            s->low = 0x80;
            s->high = 0xbf;
            if (s->have < s->want) return true;
            const bool ok = put(&s->out, s->held, s->have);
            s->have = 0;
            return ok;
        }
        if (!end_held(s)) return false;
    }
    if (c < 0x80) return put(&s->out, (const char*)&c, 1);
    if (c < 0xc2 || c > 0xf4) return put(&s->out, replacement, 3);
    s->low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    s->high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    s->want = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    s->held[0] = (char)c;
    s->have = 1;
    return true;
}
static void emit(echo_stream* s, dsv4_delta_sink sink, void* arg) {
    if (!s->out.size) return;
    const dsv4_delta delta = {DSV4_DELTA_CONTENT, 0, {s->out.data, s->out.size}};
    sink(arg, &delta);
    s->out.size = 0;
}

static dsv4_error* echo_stream_open(void* self, const dsv4_completion_options* options, dsv4_completion_stream** out) {
    (void)self;
    (void)options;
    echo_stream* s = calloc(1, sizeof *s);
    if (!s) return make_error(DSV4_EXHAUSTED, "out of memory");
    *out = (dsv4_completion_stream*)s;
    return NULL;
}
static dsv4_error* echo_stream_feed(dsv4_completion_stream* stream, const dsv4_piece* pieces, size_t count,
                                    dsv4_delta_sink sink, void* arg) {
    echo_stream* s = (echo_stream*)stream;
    for (size_t i = 0; i < count; ++i)
        for (size_t k = 0; k < pieces[i].bytes.size; ++k)
            if (!take_byte(s, (unsigned char)pieces[i].bytes.data[k]))
                return make_error(DSV4_EXHAUSTED, "out of memory");
    emit(s, sink, arg);
    return NULL;
}
static dsv4_error* echo_stream_finish(dsv4_completion_stream* stream, int32_t stopped_by, dsv4_delta_sink sink,
                                      void* arg, dsv4_completion_end* out) {
    echo_stream* s = (echo_stream*)stream;
    if (!end_held(s)) return make_error(DSV4_EXHAUSTED, "out of memory");
    emit(s, sink, arg);
    const dsv4_completion_end end = {sizeof end,
                                     stopped_by == DSV4_STOPPED_LENGTH ? DSV4_FINISH_LENGTH : DSV4_FINISH_STOP, 0, 0};
    *out = end;
    return NULL;
}
static void echo_stream_close(dsv4_completion_stream* stream) {
    echo_stream* s = (echo_stream*)stream;
    free(s->out.data);
    free(s);
}

// ---------------------------------------------------------------- the plugin

static const dsv4_parser_table table = {
    .struct_size = sizeof table,
    .control_names = echo_control_names,
    .encode = echo_encode,
    .encode_messages = NULL,
    .prompt_release = echo_prompt_release,
    .stream_open = echo_stream_open,
    .stream_feed = echo_stream_feed,
    .stream_finish = echo_stream_finish,
    .stream_close = echo_stream_close,
};

static void echo_destroy(void* self) {
    echo* e = self;
    free((char*)e->stop.data);
    free(e);
}

static dsv4_error* echo_create(const struct dsv4_host* host, int32_t kind, const struct dsv4_options* options,
                               dsv4_instance* out) {
    if (kind != DSV4_KIND_PARSER) return make_error(DSV4_UNSUPPORTED, "parser-echo-c offers parsers only");
    const dsv4_str name = {"stop_token", 10};
    dsv4_str stop = {NULL, 0};
    dsv4_error* error = host->option_string(options, name, &stop);
    if (error) return error;
    echo* e = calloc(1, sizeof *e);
    char* copy = e && stop.size ? malloc(stop.size) : NULL;
    if (!e || (stop.size && !copy)) {
        free(e);
        return make_error(DSV4_EXHAUSTED, "out of memory");
    }
    if (stop.size) memcpy(copy, stop.data, stop.size);
    e->stop.data = copy;
    e->stop.size = stop.size;
    out->self = e;
    out->table = &table;
    out->destroy = echo_destroy;
    return NULL;
}

static const dsv4_plugin plugin = {
    .struct_size = sizeof plugin,
    .abi_major = DSV4_ABI_MAJOR,
    .abi_minor = DSV4_ABI_MINOR,
    .name = DSV4_PLUGIN_NAME,
    .version = "1.0.0",
    .licence = "Apache-2.0",
    .status = DSV4_STATUS_BETA,
    .security_posture = DSV4_POSTURE_UNTRUSTED_INPUT,
    .manifest_sha256 = DSV4_MANIFEST_SHA256,
    .create = echo_create,
};

__attribute__((visibility("default"))) const dsv4_plugin* dsv4_plugin_entry(uint32_t host_abi_major,
                                                                            uint32_t host_abi_minor);
const dsv4_plugin* dsv4_plugin_entry(uint32_t host_abi_major, uint32_t host_abi_minor) {
    (void)host_abi_minor;
    return host_abi_major == DSV4_ABI_MAJOR ? &plugin : NULL;
}
