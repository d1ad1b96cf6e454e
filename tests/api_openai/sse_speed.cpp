// Measures streamed tokens a second, one event a token: sse_speed [streams] [tokens]. Service, server and clients share
// this process and its cores.
#include "tests/api_openai/fake_host.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

using namespace dsv4::test;

namespace {

// Counts events as they pass: "\ndata: " with the head's end before the first.
struct Client {
    int fd = -1;
    std::uint64_t events = 0, bytes = 0;
    std::string tail;
    bool done = false;

    void take(const char* data, std::size_t size) {
        bytes += size;
        tail.append(data, size);
        const std::string_view mark = "data: {";
        std::size_t at = 0;
        for (std::size_t next; (next = tail.find(mark, at)) != std::string::npos; at = next + mark.size()) ++events;
        done = done || tail.find("data: [DONE]", at) != std::string::npos;
        tail.erase(0, std::max(at, tail.size() > 16 ? tail.size() - 16 : 0));
    }
};

int connect_to(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&where), sizeof where) != 0)
        throw std::runtime_error("cannot connect");
    return fd;
}

} // namespace

int main(int argc, char** argv) try {
    const int streams = argc > 1 ? std::atoi(argv[1]) : 1;
    const std::uint64_t tokens = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 500'000;
    // 0: as fast as they are taken; else microseconds between two tokens of a stream.
    const std::uint64_t gap_us = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0;
    FakeService service([&](const dsv4_generate_request&) {
        Script s;
        s.events = {accepted(), times(text(" token"), tokens), finished()};
        s.gap_us = gap_us;
        return s;
    });
    FakeHost host(&service);
    LoadedApi api(host);
    const std::uint16_t port = api.start();
    const std::string body = R"({"messages":[{"role":"user","content":"hi"}],"stream":true})";
    const std::string request =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
        body;
    std::vector<Client> clients(static_cast<std::size_t>(streams));
    std::vector<pollfd> polls;
    const auto begin = std::chrono::steady_clock::now();
    for (Client& client : clients) {
        client.fd = connect_to(port);
        if (::send(client.fd, request.data(), request.size(), 0) < 0) throw std::runtime_error("cannot send");
        polls.push_back({client.fd, POLLIN, 0});
    }
    std::size_t open = clients.size();
    std::vector<char> buffer(1 << 18);
    while (open > 0) {
        if (::poll(polls.data(), polls.size(), 10'000) <= 0) throw std::runtime_error("nothing came for ten seconds");
        for (std::size_t i = 0; i < polls.size(); ++i) {
            if (!(polls[i].revents & (POLLIN | POLLHUP | POLLERR))) continue;
            const ssize_t n = ::recv(clients[i].fd, buffer.data(), buffer.size(), 0);
            if (n <= 0) throw std::runtime_error("a stream ended early");
            clients[i].take(buffer.data(), std::size_t(n));
            if (clients[i].done) {
                polls[i].fd = -1;
                --open;
            }
        }
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    std::uint64_t events = 0, bytes = 0;
    for (const Client& client : clients) {
        if (client.events != tokens + 2) throw std::runtime_error("a stream has another number of events");
        events += client.events;
        bytes += client.bytes;
        ::close(client.fd);
    }
    const double cpu = double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    std::printf(
        "%d streams x %llu tokens: %.0f tokens/s, %.1f MB/s, %.2f s, CPU %.2f s of this process (client, server, "
        "service)\n",
        streams, static_cast<unsigned long long>(tokens), double(events) / seconds, double(bytes) / seconds / 1e6,
        seconds, cpu);
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
