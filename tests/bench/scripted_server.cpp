// Sockets by hand, so that the answers can be wrong in every way.
#include "tests/bench/scripted_server.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdio>
#include <netinet/in.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

namespace dsv4::test {

ScriptedServer::ScriptedServer(Script script) : script_(std::move(script)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof where;
    if (listener_ < 0 || ::bind(listener_, reinterpret_cast<sockaddr*>(&where), sizeof where) != 0 ||
        ::listen(listener_, 128) != 0 || ::getsockname(listener_, reinterpret_cast<sockaddr*>(&where), &size) != 0)
        throw std::runtime_error("cannot listen");
    port_ = ntohs(where.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
}

ScriptedServer::~ScriptedServer() {
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    {
        const std::lock_guard lock(mutex_);
        for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
    }
    for (std::thread& thread : threads_) thread.join();
    ::close(listener_);
}

void ScriptedServer::accept_all() {
    for (;;) {
        const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) return;
        const std::lock_guard lock(mutex_);
        open_.push_back(fd);
        threads_.emplace_back([this, fd] { serve(fd); });
    }
}

void ScriptedServer::serve(int fd) {
    std::string input;
    const auto fill = [&] {
        char some[65536];
        const ssize_t n = ::recv(fd, some, sizeof some, 0);
        if (n > 0) input.append(some, std::size_t(n));
        return n > 0;
    };
    for (bool open = true; open;) {
        std::size_t end;
        while ((end = input.find("\r\n\r\n")) == input.npos && (open = fill())) {}
        if (!open) break;
        const std::string head = input.substr(0, end + 4);
        const std::size_t at = head.find("Content-Length: ");
        const std::size_t size = at == head.npos ? 0 : std::stoul(head.substr(at + 16));
        while (input.size() < end + 4 + size && (open = fill())) {}
        if (!open) break;
        const std::string body = input.substr(end + 4, size);
        input.erase(0, end + 4 + size);
        Reply reply;
        {
            const std::lock_guard lock(mutex_);
            reply = script_(requests_++, head, body);
        }
        if (reply.silent) {
            while (fill()) {}
            break;
        }
        for (std::size_t sent = 0; sent < reply.bytes.size();) {
            const ssize_t n = ::send(fd, reply.bytes.data() + sent, reply.bytes.size() - sent, MSG_NOSIGNAL);
            if (n <= 0) break;
            sent += std::size_t(n);
        }
        open = !reply.close;
    }
    const std::lock_guard lock(mutex_);
    open_.erase(std::find(open_.begin(), open_.end(), fd));
    ::close(fd);
}

std::string whole(const std::string& status, const std::string& type, const std::string& body) {
    return "HTTP/1.1 " + status + "\r\nContent-Type: " + type + "\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
}

std::string streamed(const std::string& events, std::size_t chunk_bytes) {
    std::string out = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (std::size_t at = 0; at < events.size(); at += chunk_bytes) {
        const std::string chunk = events.substr(at, chunk_bytes);
        char size[20];
        out.append(size, std::size_t(std::snprintf(size, sizeof size, "%zx\r\n", chunk.size())));
        out += chunk + "\r\n";
    }
    return out + "0\r\n\r\n";
}

} // namespace dsv4::test
