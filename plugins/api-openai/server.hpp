// The HTTP server: sockets, threads and their end. Network code lives in server.cpp and connection.cpp alone.
#pragma once

#include "front.hpp"

#include <cstdint>
#include <memory>
#include <string_view>

namespace dsv4::openai {

// Control thread, except endpoint. See dsv4/api.h for what each does.
class Server {
  public:
    explicit Server(const Front& front);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // Failure(environment) where the address cannot be bound, Failure(invalid) for one that may not.
    void start();
    std::string_view endpoint() const noexcept;
    void drain(std::uint64_t deadline_us);
    void stop() noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace dsv4::openai
