// A client made of one socket, for what a proper HTTP client would never send, and a reader of event streams.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::test {

class RawClient {
  public:
    explicit RawClient(std::uint16_t port);
    ~RawClient();
    RawClient(RawClient&& other) noexcept : fd_(other.fd_), input_(std::move(other.input_)) { other.fd_ = -1; }
    RawClient(const RawClient&) = delete;
    RawClient& operator=(const RawClient&) = delete;

    void send(std::string_view bytes); // failures are ignored: the server may have closed
    // Bytes up to and with `mark`; what came before the end where it never comes. Two seconds at most.
    std::string read_until(std::string_view mark, int timeout_ms = 2000);
    // That many bytes, or fewer where no more come.
    std::string read_exactly(std::size_t bytes, int timeout_ms = 2000);
    // Everything until the server closes.
    std::string read_all(int timeout_ms = 2000);
    bool closed_by_peer(int timeout_ms = 2000); // reads and drops what comes before
    void half_close();
    void reset(); // RST instead of FIN
    void close();
    void shrink_receive_buffer();

  private:
    bool fill(int timeout_ms); // false at the end
    int fd_ = -1;
    std::string input_;
};

struct HttpAnswer {
    int status = 0;
    std::string head, body; // body: without chunk framing
    std::string header(std::string_view name) const;
    nlohmann::json json() const { return nlohmann::json::parse(body); }
};

// One answer from the connection. Throws std::runtime_error when it is not well-formed HTTP.
HttpAnswer read_answer(RawClient& client, int timeout_ms = 5000);
std::string post(std::string_view path, std::string_view body, std::string_view more_headers = {});
HttpAnswer ask(std::uint16_t port, std::string_view request);
HttpAnswer ask_post(std::uint16_t port, std::string_view path, std::string_view body,
                    std::string_view more_headers = {});

// The data of each event; comments are kept as ": ...". Throws when the framing is not that of an event stream.
std::vector<std::string> events_of(const std::string& body);
// The JSON events; the last must be [DONE].
std::vector<nlohmann::json> chunks_of(const std::string& body);

} // namespace dsv4::test
