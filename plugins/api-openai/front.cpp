// Routes without network: models, health, tokens, and the way from a body to a call and its answer.
#include "front.hpp"

#include "fields.hpp"
#include "json_text.hpp"

#include <algorithm>

namespace dsv4::openai {
namespace {

constexpr std::size_t max_noted = 256;

void append_ids(std::string& out, const std::vector<std::int32_t>& ids) {
    out += '[';
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (i > 0) out += ',';
        append_number(out, std::int64_t{ids[i]});
    }
    out += ']';
}

// "a%2Fb" to "a/b"; what is no escape stays.
std::string percent_decoded(std::string_view text) {
    const auto digit = [](char c) {
        const int lower = c | 0x20;
        return c >= '0' && c <= '9' ? c - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
    };
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
            out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
            i += 2;
        } else {
            out += text[i];
        }
    }
    return out;
}

bool is_plain_name(std::string_view name) {
    return name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                      c == '-';
           });
}

} // namespace

Reply error_reply(const ApiError& error) {
    return {error.status, "application/json", to_json(error), error.retry_after_s};
}

Front::Front(const sdk::Host& host, Settings settings)
    : host_(host),
      settings_(std::move(settings)),
      created_s_(std::int64_t(host.table()->unix_us(host.table()->ctx) / 1'000'000)) {}

const dsv4_generate_service& Front::service() const {
    if (!host()->generate)
        throw Failure(Code::environment, "no engine runs behind this server", "start it with a pipeline");
    return *host()->generate;
}

const dsv4_tokenizer_service& Front::tokenizer() const {
    if (!host()->tokenizer) throw Failure(Code::unsupported, "this server has no tokenizer");
    return *host()->tokenizer;
}

Front::Engine Front::describe() const {
    Engine engine;
    if (!host()->generate) return engine;
    std::string json;
    const auto sink = [](void* arg, dsv4_str text) { static_cast<std::string*>(arg)->assign(sdk::view(text)); };
    service().describe(host()->ctx, sink, &json);
    const Fields fields(json, {}, "the engine's description");
    engine.model = fields.text("model").value_or("");
    engine.max_model_len = fields.integer("max_model_len", 0).value_or(0);
    engine.running = fields.integer("running", 0).value_or(0);
    engine.waiting = fields.integer("waiting", 0).value_or(0);
    engine.ready = fields.flag("ready", false);
    return engine;
}

std::vector<std::string> Front::served_names() const {
    if (!settings_.served_model_names.empty()) return settings_.served_model_names;
    const std::string name = describe().model;
    return name.empty() ? std::vector<std::string>{} : std::vector<std::string>{name};
}

TranslateContext Front::context(const std::vector<std::string>& models) const {
    // Without an engine (codec, tests) nothing runs, so nothing needs to be enforced.
    return {settings_, host(), models, !host()->generate || host()->grammar};
}

void Front::note_unknown(const Call& call) const {
    for (const std::string& name : call.unknown_fields) {
        if (!is_plain_name(name)) continue;
        {
            const std::lock_guard lock(noted_mutex_);
            if (noted_.size() >= max_noted || !noted_.insert(name).second) continue;
        }
        host_.info("the request field `" + name + "` is unknown and ignored; this is said once");
    }
}

std::unique_ptr<Call> Front::read(Route route, std::string body) const {
    const std::vector<std::string> models = served_names();
    auto call = route == Route::completions ? read_completion(std::move(body), context(models))
                                            : read_chat(std::move(body), context(models));
    note_unknown(*call);
    if (call->model.empty() && !models.empty()) call->model = models.front();
    return call;
}

std::unique_ptr<Answer> Front::answer(const Call& call, std::string_view request_id) const {
    AnswerIdentity identity;
    identity.id = (call.kind == CallKind::chat ? "chatcmpl-" : "cmpl-") + std::string(request_id);
    identity.created_s = std::int64_t(host()->unix_us(host()->ctx) / 1'000'000);
    identity.model = call.model;
    identity.fingerprint = "dsv4-api-openai-" DSV4_API_OPENAI_VERSION;
    return call.kind == CallKind::chat ? make_chat_answer(call, std::move(identity), settings_, host())
                                       : make_completion_answer(call, std::move(identity), host());
}

ApiError Front::as_error() const {
    try {
        throw;
    } catch (const Refusal& refusal) {
        return refusal.error;
    } catch (...) {
        const Error error = current_error();
        ApiError answer = from_service(error, false);
        if (answer.status >= 500) host_.warn("a request failed: " + error.message);
        return answer;
    }
}

Reply Front::reply(Route route, std::string_view argument, std::string body, bool draining) const {
    switch (route) {
    case Route::models:
    case Route::model: return models(percent_decoded(argument));
    case Route::health: return health(draining);
    case Route::version: return version();
    case Route::load: return load();
    case Route::metrics: return metrics();
    case Route::tokenize: return tokenize(std::move(body));
    case Route::detokenize: return detokenize(std::move(body));
    case Route::chat_render: return render(std::move(body));
    default: throw Refusal{unknown_path("this path")};
    }
}

Reply Front::models(std::string_view wanted) const {
    const Engine engine = describe();
    Reply reply;
    std::string list;
    for (const std::string& name : served_names()) {
        std::string entry = R"({"id":)";
        append_quoted(entry, name);
        entry += R"(,"object":"model","created":)";
        append_number(entry, created_s_);
        entry += R"(,"owned_by":"dsv4","root":)";
        append_quoted(entry, engine.model.empty() ? name : engine.model);
        entry += R"(,"parent":null,"max_model_len":)";
        append_number(entry, engine.max_model_len);
        entry += R"(,"context_length":)";
        append_number(entry, engine.max_model_len);
        entry += R"(,"meta":{"n_ctx_train":)";
        append_number(entry, engine.max_model_len);
        entry += R"(},"permission":[]})";
        if (name == wanted) {
            reply.body = std::move(entry);
            return reply;
        }
        if (!list.empty()) list += ',';
        list += entry;
    }
    if (!wanted.empty()) throw Refusal{unknown_model(wanted)};
    reply.body = R"({"object":"list","data":[)" + list + "]}";
    return reply;
}

Reply Front::health(bool draining) const {
    Reply reply;
    const bool ok = !draining && describe().ready;
    reply.status = ok ? 200 : 503;
    reply.body = ok ? R"({"status":"ok"})" : draining ? R"({"status":"draining"})" : R"({"status":"loading"})";
    if (!ok) reply.retry_after_s = 1;
    return reply;
}

Reply Front::version() const {
    Reply reply;
    reply.body = R"({"version":")" DSV4_API_OPENAI_VERSION R"(","server":"dsv4","api":"api-openai"})";
    return reply;
}

Reply Front::load() const {
    const Engine engine = describe();
    Reply reply;
    reply.body = R"({"server_load":)";
    append_number(reply.body, engine.running + engine.waiting);
    reply.body += '}';
    return reply;
}

Reply Front::metrics() const {
    Reply reply;
    reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
    const auto sink = [](void* arg, dsv4_str piece) { static_cast<std::string*>(arg)->append(sdk::view(piece)); };
    host()->metrics_expose(host()->ctx, sink, &reply.body);
    return reply;
}

std::vector<std::int32_t> Front::encode(std::string_view text, bool parse_special, bool bos) const {
    const dsv4_tokenizer_service& t = tokenizer();
    std::vector<std::int32_t> ids;
    const auto plain = [&](std::string_view piece) {
        std::vector<std::int32_t> some(piece.size()); // a token is one byte at least
        std::size_t count = 0;
        sdk::check(t.encode(host()->ctx, sdk::str(piece), some.data(), some.size(), &count));
        ids.insert(ids.end(), some.begin(), some.begin() + std::ptrdiff_t(std::min(count, some.size())));
    };
    const std::int32_t begin = bos ? t.control_id(host()->ctx, sdk::str(settings_.bos)) : -1;
    if (begin >= 0 && !(parse_special && text.starts_with(settings_.bos))) ids.push_back(begin);
    if (!parse_special) {
        plain(text);
        return ids;
    }
    std::call_once(splitter_made_, [&] { splitter_ = std::make_unique<ControlSplitter>(host()); });
    for (const ControlSplitter::Piece& piece : splitter_->split(text))
        if (piece.control_id >= 0)
            ids.push_back(piece.control_id);
        else
            plain(piece.text);
    return ids;
}

std::vector<std::int32_t> Front::encode_chat(const Call& call) const {
    std::vector<std::int32_t> ids(call.body.size() + 4096);
    std::size_t count = 0;
    sdk::check(service().tokenize(host()->ctx, &call.chat, ids.data(), ids.size(), &count));
    if (count > ids.size()) {
        ids.resize(count);
        sdk::check(service().tokenize(host()->ctx, &call.chat, ids.data(), ids.size(), &count));
    }
    ids.resize(std::min(count, ids.size()));
    return ids;
}

std::string Front::text_of(const std::vector<std::int32_t>& ids) const {
    const dsv4_tokenizer_service& t = tokenizer();
    std::string text;
    for (const std::int32_t id : ids) text += sdk::view(t.bytes(host()->ctx, id));
    return text;
}

Reply Front::tokenize(std::string body) const {
    repair_surrogates(body);
    std::vector<std::int32_t> ids;
    bool strings = false, llama = false;
    {
        const Fields fields(body);
        llama = fields.has("content") && !fields.has("prompt");
        strings = fields.flag(llama ? "with_pieces" : "return_token_strs", false);
        if (fields.has("messages")) {
            const std::vector<std::string> models = served_names();
            ids = encode_chat(*read_conversation(body, context(models)));
        } else {
            const auto text = fields.text(llama ? "content" : "prompt");
            if (!text) refuse("prompt", "or messages is required");
            ids = encode(*text, fields.flag("parse_special", true),
                         llama ? fields.flag("add_special", false) : fields.flag("add_special_tokens", true));
        }
    }
    Reply reply;
    std::string pieces;
    if (strings)
        for (const std::int32_t id : ids) {
            if (!pieces.empty()) pieces += ',';
            const auto text = sdk::view(tokenizer().bytes(host()->ctx, id));
            if (llama) {
                pieces += R"({"id":)";
                append_number(pieces, std::int64_t{id});
                pieces += R"(,"piece":)";
            }
            append_quoted(pieces, text);
            if (llama) pieces += '}';
        }
    if (llama && strings) {
        reply.body = R"({"tokens":[)" + pieces + "]}";
        return reply;
    }
    reply.body = R"({"count":)";
    append_number(reply.body, std::int64_t(ids.size()));
    reply.body += R"(,"max_model_len":)";
    append_number(reply.body, describe().max_model_len);
    reply.body += R"(,"tokens":)";
    append_ids(reply.body, ids);
    reply.body += strings ? R"(,"token_strs":[)" + pieces + "]}" : R"(,"token_strs":null})";
    return reply;
}

Reply Front::detokenize(std::string body) const {
    const Fields fields(body);
    const auto ids = fields.token_ids("tokens", tokenizer().vocab_size);
    if (!ids) refuse("tokens", "is required");
    Reply reply;
    std::string text;
    append_quoted(text, text_of(*ids));
    reply.body = R"({"prompt":)" + text + R"(,"content":)" + text + '}';
    return reply;
}

Reply Front::render(std::string body) const {
    const std::vector<std::string> models = served_names();
    const auto ids = encode_chat(*read_conversation(std::move(body), context(models)));
    Reply reply;
    reply.body = R"({"prompt":)";
    append_quoted(reply.body, text_of(ids));
    reply.body += R"(,"count":)";
    append_number(reply.body, std::int64_t(ids.size()));
    reply.body += R"(,"prompt_token_ids":)";
    append_ids(reply.body, ids);
    reply.body += '}';
    return reply;
}

} // namespace dsv4::openai
