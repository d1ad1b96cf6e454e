// Writes token probabilities, and finds out which text a token became.
#include "logprob_text.hpp"

#include "json_text.hpp"

#include "dsv4/sdk/error.hpp"

#include <algorithm>
#include <cmath>

namespace dsv4::openai {
namespace {

// JSON has no -Infinity; this is what others send for a token that cannot be.
void append_logprob(std::string& out, float logprob) {
    if (std::isnan(logprob))
        out += "null";
    else
        append_number(out, std::max(logprob, -9999.0f));
}

void append_bytes(std::string& out, std::string_view bytes) {
    out += '[';
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (i > 0) out += ',';
        append_number(out, std::int64_t{static_cast<unsigned char>(bytes[i])});
    }
    out += ']';
}

void append_entry(std::string& out, std::int32_t id, std::string_view bytes, float logprob, const TokenNames& names) {
    out += R"({"token":)";
    names.append_name(out, id, bytes);
    out += R"(,"logprob":)";
    append_logprob(out, logprob);
    out += R"(,"bytes":)";
    append_bytes(out, bytes);
}

} // namespace

std::string_view TokenNames::bytes(std::int32_t id) const {
    if (!host || !host->tokenizer) return {};
    return sdk::view(host->tokenizer->bytes(host->ctx, id));
}

void TokenNames::append_name(std::string& out, std::int32_t id, std::string_view bytes) const {
    if (as_ids || (bytes.empty() && (!host || !host->tokenizer))) {
        out += "\"token_id:";
        append_number(out, std::int64_t{id});
        out += '"';
    } else {
        append_quoted(out, bytes);
    }
}

void append_chat_logprob(std::string& out, const dsv4_token& token, const TokenNames& names) {
    append_entry(out, token.id, sdk::view(token.bytes), token.logprob, names);
    out += R"(,"top_logprobs":[)";
    for (std::uint32_t i = 0; i < token.top_count; ++i) {
        if (i > 0) out += ',';
        append_entry(out, token.top[i].token, names.bytes(token.top[i].token), token.top[i].logprob, names);
        out += '}';
    }
    out += "]}";
}

void LegacyLogprobs::add(const dsv4_token& token, const TokenNames& names) {
    const char* comma = tokens_.empty() ? "" : ",";
    for (std::string* list : {&tokens_, &token_logprobs_, &top_logprobs_, &text_offsets_}) *list += comma;
    const std::string_view bytes = sdk::view(token.bytes);
    names.append_name(tokens_, token.id, bytes);
    append_logprob(token_logprobs_, token.logprob);
    if (std::isnan(token.logprob)) {
        top_logprobs_ += "null";
    } else {
        top_logprobs_ += '{';
        for (std::uint32_t i = 0; i < token.top_count; ++i) {
            if (i > 0) top_logprobs_ += ',';
            names.append_name(top_logprobs_, token.top[i].token, names.bytes(token.top[i].token));
            top_logprobs_ += ':';
            append_logprob(top_logprobs_, token.top[i].logprob);
        }
        top_logprobs_ += '}';
    }
    append_number(text_offsets_, offset_);
    offset_ += std::count_if(bytes.begin(), bytes.end(), [](char c) { return (c & 0xc0) != 0x80; });
}

void LegacyLogprobs::append(std::string& out) const {
    out += R"({"tokens":[)";
    out += tokens_;
    out += R"(],"token_logprobs":[)";
    out += token_logprobs_;
    out += R"(],"top_logprobs":[)";
    out += top_logprobs_;
    out += R"(],"text_offset":[)";
    out += text_offsets_;
    out += "]}";
}

void LegacyLogprobs::clear() {
    for (std::string* list : {&tokens_, &token_logprobs_, &top_logprobs_, &text_offsets_}) list->clear();
}

} // namespace dsv4::openai
