// Reads the encoder's own input.
#include "encoder_input.hpp"

#include "message_reader.hpp"
#include "names.hpp"

#include <string>

namespace dsv4::deepseek_v4 {
namespace {

const JsonValue* text_member(const JsonValue& json, std::string_view key) {
    const JsonValue* value = json.find_set(key);
    if (value && !value->is_string()) throw Failure(Code::invalid, std::string(key) + ": must be a string");
    return value;
}

bool flag_member(const JsonValue& json, std::string_view key, bool otherwise) {
    const JsonValue* value = json.find_set(key);
    if (value && !value->is_boolean()) throw Failure(Code::invalid, std::string(key) + ": must be true or false");
    return value ? value->truth() : otherwise;
}

std::vector<Message> messages_member(const JsonValue& json, const std::string& key) {
    const JsonValue* list = json.find_set(key);
    if (!list) return {};
    if (!list->is_array()) throw Failure(Code::invalid, key + ": must be an array");
    std::vector<Message> out;
    for (std::size_t i = 0; i < list->items().size(); ++i)
        out.push_back(read_message(list->items()[i], key + "[" + std::to_string(i) + "]", Dialect::encoder));
    return out;
}

} // namespace

Result<EncoderInput> read_encoder_input(const JsonValue& json) {
    return guard([&] {
        if (!json.is_object()) throw Failure(Code::invalid, "the encoder input is not a JSON object");
        EncoderInput out;
        if (const JsonValue* name = text_member(json, "encoding_variant"))
            out.options.variant = variant_from_name(name->text()).value();
        const JsonValue* mode = text_member(json, "thinking_mode");
        if (!mode) throw Failure(Code::invalid, "thinking_mode: is missing", "say chat or thinking");
        out.options.mode = thinking_mode_from_name(mode->text()).value();
        if (const JsonValue* effort = text_member(json, "reasoning_effort"))
            out.options.effort = effort_from_name(effort->text()).value();
        out.options.drop_thinking = flag_member(json, "drop_thinking", true);
        out.options.add_bos = flag_member(json, "add_bos", true);
        out.messages = messages_member(json, "messages");
        out.context = messages_member(json, "context");
        return out;
    });
}

} // namespace dsv4::deepseek_v4
