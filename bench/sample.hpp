// What was seen of one request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dsv4::bench {

enum class Outcome : std::uint8_t {
    ok,
    http_status,  // an answer whose status is not 200
    connection,   // connecting, sending or receiving failed
    timeout,      // not answered in full within the time allowed
    malformed,    // an answer that is not what the API says
    stream_error, // an error that came as an event of a stream that had begun
    interrupted,  // the user ended the run; counts neither as answered nor as failed
};

const char* outcome_name(Outcome outcome);

struct Usage {
    std::uint64_t prompt_tokens = 0;
    std::uint64_t completion_tokens = 0;
};

// Times are microseconds since the start of the load.
struct Sample {
    std::uint64_t index = 0;
    Outcome outcome = Outcome::interrupted;
    unsigned http_status = 0; // 0: none arrived
    std::string message;      // of a failure, at most 300 bytes, as the server wrote it
    std::optional<std::int64_t> scheduled_us;
    std::int64_t sent_us = 0;             // just before the first byte was written to a connected socket
    std::int64_t end_us = 0;              // the end of the answer: [DONE] of a stream, else the last byte
    bool streamed = false;                // a stream was asked for
    std::vector<std::int64_t> outputs_us; // arrival of each event that carried output; empty without a stream
    std::optional<Usage> usage;           // where the server reported it
};

} // namespace dsv4::bench
