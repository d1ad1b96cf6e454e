// Server-sent events from bytes that arrive in pieces of any size.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::bench {

struct SseEvent {
    std::string type; // the `event:` field, empty where there is none
    std::string data; // the `data:` fields, joined by line feeds
};

// Parses as the WHATWG event stream says: lines end with LF, CR or CRLF, a line that starts with a colon is a comment,
// one space after the field's colon is dropped, a blank line ends an event, an event without data is none, and what
// does not end with a blank line never was an event. One stream, one thread.
class SseParser {
  public:
    explicit SseParser(std::size_t limit_bytes = 16u << 20) : limit_bytes_(limit_bytes) {}
    // The events that end in `bytes`. Throws Failure(corrupt) where one event or line is larger than the limit.
    std::vector<SseEvent> feed(std::string_view bytes);

  private:
    void end_line(std::vector<SseEvent>& out);
    std::size_t limit_bytes_;
    std::string line_;
    SseEvent event_;
    bool has_data_ = false;
    bool after_cr_ = false; // a line feed now belongs to the line that ended
    bool first_line_ = true;
};

} // namespace dsv4::bench
