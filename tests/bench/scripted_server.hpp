// An HTTP server that answers each request with the bytes a test wrote.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace dsv4::test {

struct Reply {
    std::string bytes;   // the whole answer, head and body
    bool close = false;  // close the connection after it
    bool silent = false; // send nothing and wait for the client to close
};

// Listens on a free port of 127.0.0.1. The script gets the number of the request (from 0, over all connections), its
// head and its body; it runs on one thread per connection, one call at a time.
class ScriptedServer {
  public:
    using Script = std::function<Reply(std::uint64_t number, const std::string& head, const std::string& body)>;
    explicit ScriptedServer(Script script);
    ~ScriptedServer();
    ScriptedServer(const ScriptedServer&) = delete;
    ScriptedServer& operator=(const ScriptedServer&) = delete;
    std::uint16_t port() const { return port_; }
    std::uint64_t requests() const { return requests_; }

  private:
    void accept_all();
    void serve(int fd);
    Script script_;
    int listener_ = -1;
    std::uint16_t port_ = 0;
    std::atomic<std::uint64_t> requests_ = 0;
    std::mutex mutex_; // of the script and the list of connections
    std::vector<int> open_;
    std::vector<std::thread> threads_;
    std::thread acceptor_;
};

// An answer with a length; status as "200 OK".
std::string whole(const std::string& status, const std::string& type, const std::string& body);
// An event stream in chunks of at most `chunk_bytes`.
std::string streamed(const std::string& events, std::size_t chunk_bytes);

} // namespace dsv4::test
