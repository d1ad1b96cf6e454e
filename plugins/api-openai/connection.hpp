// What the server and its connections share. Only server.cpp and connection.cpp include this.
#pragma once

#include "exchange.hpp"
#include "front.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/thread_pool.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace dsv4::openai {

// Counters of the host's registry; does nothing where the host keeps none. Any thread.
class HttpMetrics {
  public:
    explicit HttpMetrics(const dsv4_host* host);
    void connections(std::int64_t open);
    void answered(std::string_view route, int status);
    void disconnected(); // the client went away before its answer was complete
    void slow_reader();

  private:
    dsv4_metric* make(std::int32_t kind, std::string_view name, std::string_view help, std::string_view route = {},
                      std::string_view status = {});
    void add(dsv4_metric* metric);
    const dsv4_host* host_;
    dsv4_metric *open_, *disconnected_, *slow_;
    std::mutex mutex_;
    std::map<std::pair<std::string, int>, dsv4_metric*> answered_;
};

class Connection;

struct Shared {
    explicit Shared(const Front& f) : front(f), metrics(f.host()) {}
    const Front& front;
    HttpMetrics metrics;
    ExchangeList exchanges;
    std::atomic<bool> draining{false};
    std::atomic<std::uint64_t> body_bytes{0}; // of all connections
    boost::asio::thread_pool* workers = nullptr;

    std::mutex mutex;
    std::condition_variable none_open;
    std::set<Connection*> open; // each takes itself out as it ends
};

// Serves `socket` until either side ends it. The socket's executor is the connection's strand.
void serve(boost::asio::ip::tcp::socket socket, Shared& shared);
// Answers 503 and closes.
void turn_away(boost::asio::ip::tcp::socket socket, Shared& shared);
// Closes every open connection from outside; they end soon after.
void close_all(Shared& shared);

} // namespace dsv4::openai
