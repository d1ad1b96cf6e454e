// The HTTP server: sockets, threads and their end. Network code lives in server.cpp and connection.cpp alone.
#pragma once

#include "front.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace dsv4::openai {

// Control thread, but for endpoint. See dsv4/api.h for what each does.
class Server {
  public:
    explicit Server(const Front& front);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // Failure(environment) where the address cannot be bound, Failure(invalid) for one that may not.
    void start();
    // Any thread; lives as long as this object.
    std::string_view endpoint() const noexcept;
    void drain(std::uint64_t deadline_us);
    void stop() noexcept;

  private:
    struct State;
    std::string endpoint_; // written once, before listening_
    std::atomic<bool> listening_{false};
    std::unique_ptr<State> state_;
};

} // namespace dsv4::openai
