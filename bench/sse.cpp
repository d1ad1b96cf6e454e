// The event stream line by line.
#include "bench/sse.hpp"

#include "dsv4/sdk/result.hpp"

#include <utility>

namespace dsv4::bench {

std::vector<SseEvent> SseParser::feed(std::string_view bytes) {
    std::vector<SseEvent> out;
    while (!bytes.empty()) {
        if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
            bytes.remove_prefix(1);
            continue;
        }
        const std::size_t end = bytes.find_first_of("\r\n");
        line_ += bytes.substr(0, end);
        if (line_.size() + event_.data.size() > limit_bytes_)
            throw Failure(Code::corrupt,
                          "an event of the stream is larger than " + std::to_string(limit_bytes_) + " bytes");
        if (end == bytes.npos) break;
        after_cr_ = bytes[end] == '\r';
        bytes.remove_prefix(end + 1);
        end_line(out);
    }
    return out;
}

void SseParser::end_line(std::vector<SseEvent>& out) {
    std::string_view line = line_;
    if (std::exchange(first_line_, false) && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    if (line.empty()) {
        if (has_data_) out.push_back(std::move(event_));
        event_ = {};
        has_data_ = false;
    } else if (line.front() != ':') {
        const std::size_t colon = line.find(':');
        const std::string_view name = line.substr(0, colon);
        std::string_view value = colon == line.npos ? std::string_view() : line.substr(colon + 1);
        if (value.starts_with(' ')) value.remove_prefix(1);
        if (name == "data") {
            if (std::exchange(has_data_, true)) event_.data += '\n';
            event_.data += value;
        } else if (name == "event") {
            event_.type = value;
        }
    }
    line_.clear();
}

} // namespace dsv4::bench
