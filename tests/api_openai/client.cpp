// Sockets by hand, chunk framing checked strictly.
#include "tests/api_openai/client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace dsv4::test {

RawClient::RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd_ < 0 || ::connect(fd_, reinterpret_cast<sockaddr*>(&where), sizeof where) != 0)
        throw std::runtime_error("cannot connect");
}
RawClient::~RawClient() { close(); }
void RawClient::close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}
void RawClient::half_close() { ::shutdown(fd_, SHUT_WR); }
void RawClient::reset() {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
}
void RawClient::shrink_receive_buffer() {
    const int bytes = 4096;
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

void RawClient::send(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n <= 0) return;
        bytes.remove_prefix(std::size_t(n));
    }
}

bool RawClient::fill(int timeout_ms) {
    pollfd state{fd_, POLLIN, 0};
    if (::poll(&state, 1, timeout_ms) <= 0) return false;
    char some[65536];
    const ssize_t n = ::recv(fd_, some, sizeof some, 0);
    if (n <= 0) return false;
    input_.append(some, std::size_t(n));
    return true;
}

std::string RawClient::read_until(std::string_view mark, int timeout_ms) {
    std::size_t from = 0;
    for (;;) {
        const std::size_t at = input_.find(mark, from);
        if (at != std::string::npos) {
            std::string out = input_.substr(0, at + mark.size());
            input_.erase(0, at + mark.size());
            return out;
        }
        from = input_.size() > mark.size() ? input_.size() - mark.size() : 0;
        if (!fill(timeout_ms)) return std::exchange(input_, {});
    }
}

std::string RawClient::read_exactly(std::size_t bytes, int timeout_ms) {
    while (input_.size() < bytes && fill(timeout_ms)) {}
    std::string out = input_.substr(0, bytes);
    input_.erase(0, out.size());
    return out;
}

std::string RawClient::read_all(int timeout_ms) {
    while (fill(timeout_ms)) {}
    return std::exchange(input_, {});
}

bool RawClient::closed_by_peer(int timeout_ms) {
    for (;;) {
        pollfd state{fd_, POLLIN, 0};
        if (::poll(&state, 1, timeout_ms) <= 0) return false;
        char some[65536];
        if (::recv(fd_, some, sizeof some, 0) <= 0) return true;
    }
}

std::string HttpAnswer::header(std::string_view name) const {
    std::string lower(name);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    std::string all = head;
    std::transform(all.begin(), all.end(), all.begin(), [](unsigned char c) { return std::tolower(c); });
    const std::size_t at = all.find("\r\n" + lower + ": ");
    if (at == std::string::npos) return {};
    const std::size_t from = at + lower.size() + 4;
    return head.substr(from, head.find("\r\n", from) - from);
}

HttpAnswer read_answer(RawClient& client, int timeout_ms) {
    HttpAnswer answer;
    answer.head = client.read_until("\r\n\r\n", timeout_ms);
    if (!answer.head.starts_with("HTTP/1.") || answer.head.size() < 12)
        throw std::runtime_error("no HTTP answer: '" + answer.head + "'");
    answer.status = std::stoi(answer.head.substr(9, 3));
    if (answer.status == 204 || answer.status < 200) return answer;
    if (answer.header("Transfer-Encoding") == "chunked") {
        for (;;) {
            const std::string line = client.read_until("\r\n", timeout_ms);
            if (!line.ends_with("\r\n")) throw std::runtime_error("a chunk without a size: '" + line + "'");
            const std::size_t size = std::stoul(line, nullptr, 16);
            const std::string chunk = client.read_exactly(size + 2, timeout_ms);
            if (chunk.size() != size + 2 || !chunk.ends_with("\r\n"))
                throw std::runtime_error("a chunk of another size");
            if (size == 0) return answer;
            answer.body += chunk.substr(0, size);
        }
    }
    const std::string length = answer.header("Content-Length");
    if (length.empty()) {
        answer.body = client.read_all(timeout_ms);
        return answer;
    }
    answer.body = client.read_exactly(std::stoul(length), timeout_ms);
    if (answer.body.size() != std::stoul(length)) throw std::runtime_error("a body that ends early");
    return answer;
}

std::string post(std::string_view path, std::string_view body, std::string_view more_headers) {
    std::string out = "POST ";
    out += path;
    out += " HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n";
    out += more_headers;
    out += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    out += body;
    return out;
}

HttpAnswer ask(std::uint16_t port, std::string_view request) {
    RawClient client(port);
    client.send(request);
    return read_answer(client);
}

HttpAnswer ask_post(std::uint16_t port, std::string_view path, std::string_view body, std::string_view more_headers) {
    return ask(port, post(path, body, more_headers));
}

std::vector<std::string> events_of(const std::string& body) {
    std::vector<std::string> events;
    std::size_t at = 0;
    while (at < body.size()) {
        const std::size_t end = body.find("\n\n", at);
        if (end == std::string::npos) throw std::runtime_error("an event that does not end: " + body.substr(at));
        const std::string event = body.substr(at, end - at);
        if (event.find('\n') != std::string::npos) throw std::runtime_error("an event of several lines: " + event);
        if (event.starts_with("data: "))
            events.push_back(event.substr(6));
        else if (event.starts_with(": "))
            events.push_back(event);
        else
            throw std::runtime_error("no event: " + event);
        at = end + 2;
    }
    return events;
}

std::vector<nlohmann::json> chunks_of(const std::string& body) {
    std::vector<nlohmann::json> chunks;
    std::vector<std::string> events = events_of(body);
    if (events.empty() || events.back() != "[DONE]") throw std::runtime_error("the stream does not end with [DONE]");
    events.pop_back();
    for (const std::string& event : events)
        if (!event.starts_with(": ")) chunks.push_back(nlohmann::json::parse(event));
    return chunks;
}

} // namespace dsv4::test
