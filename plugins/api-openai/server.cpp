// Listens, runs the threads, and brings everything to an end in order.
#include "server.hpp"

#include "connection.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

namespace dsv4::openai {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::uint64_t cancel_grace_us = 10'000'000;
constexpr auto quiet = asio::as_tuple(asio::use_awaitable);

asio::ip::address read_address(const Settings& settings) {
    error_code error;
    const std::string& text = settings.host;
    const asio::ip::address address = asio::ip::make_address(text == "localhost" ? "127.0.0.1" : text, error);
    if (error)
        throw Failure(Code::invalid, "option host is '" + text + "', which is not a numeric address",
                      "write an address such as 127.0.0.1 or ::1");
    if (!address.is_loopback() && !settings.allow_remote)
        throw Failure(Code::invalid, "option host is " + text + ", which other machines can reach",
                      "set allow_remote = true if that is meant, and api_key with it");
    return address;
}

} // namespace

HttpMetrics::HttpMetrics(const dsv4_host* host)
    : host_(host),
      open_(make(DSV4_METRIC_GAUGE, "dsv4_http_connections", "Open connections.")),
      disconnected_(make(DSV4_METRIC_COUNTER, "dsv4_http_disconnects_total",
                         "Requests whose client went away before the answer was complete.")),
      slow_(make(DSV4_METRIC_COUNTER, "dsv4_http_slow_readers_total",
                 "Requests that were dropped because the client took nothing for too long.")) {}

dsv4_metric* HttpMetrics::make(std::int32_t kind, std::string_view name, std::string_view help, std::string_view route,
                               std::string_view status) {
    if (!DSV4_HAS(host_, metric) || !DSV4_HAS(host_, metric_update)) return nullptr;
    const dsv4_label labels[] = {{sdk::str("route"), sdk::str(route)}, {sdk::str("status"), sdk::str(status)}};
    return host_->metric(host_->ctx, kind, sdk::str(name), sdk::str(help), labels, route.empty() ? 0 : 2);
}

void HttpMetrics::add(dsv4_metric* metric) {
    if (metric) host_->metric_update(host_->ctx, metric, 1);
}

void HttpMetrics::connections(std::int64_t open) {
    if (open_) host_->metric_update(host_->ctx, open_, double(open));
}
void HttpMetrics::disconnected() { add(disconnected_); }
void HttpMetrics::slow_reader() { add(slow_); }

void HttpMetrics::answered(std::string_view route, int status) {
    dsv4_metric* metric = nullptr;
    {
        const std::lock_guard lock(mutex_);
        const auto [place, fresh] = answered_.try_emplace({std::string(route), status}, nullptr);
        if (fresh)
            place->second = make(DSV4_METRIC_COUNTER, "dsv4_http_requests_total", "Answers by route and status.", route,
                                 std::to_string(status));
        metric = place->second;
    }
    add(metric);
}

struct Server::State {
    explicit State(const Front& f) : front(f), shared(f) {}

    asio::awaitable<void> accept_all() {
        asio::steady_timer pause(io);
        while (acceptor.is_open()) {
            auto [error, socket] = co_await acceptor.async_accept(asio::make_strand(io), quiet);
            if (error == asio::error::operation_aborted || !acceptor.is_open()) co_return;
            if (error) { // out of descriptors, or the client gave up while queued
                pause.expires_after(std::chrono::milliseconds(20));
                co_await pause.async_wait(quiet);
                continue;
            }
            std::size_t open = 0;
            {
                const std::lock_guard lock(shared.mutex);
                open = shared.open.size();
            }
            const auto limit = std::size_t(front.settings().max_connections);
            if (open < limit)
                serve(std::move(socket), shared);
            else if (open < limit + 64)
                turn_away(std::move(socket), shared);
            // Beyond that the socket is closed without a word.
        }
    }

    const Front& front;
    Shared shared; // outlives the threads and their work
    asio::io_context io;
    asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
    asio::strand<asio::io_context::executor_type> accept_strand{asio::make_strand(io)};
    tcp::acceptor acceptor{accept_strand};
    std::optional<asio::thread_pool> workers;
    std::vector<std::thread> threads;
};

Server::Server(const Front& front) : state_(std::make_unique<State>(front)) {}
Server::~Server() { stop(); }

std::string_view Server::endpoint() const noexcept { return listening_ ? endpoint_ : std::string_view(); }

void Server::start() {
    State& s = *state_;
    const Settings& settings = s.front.settings();
    const tcp::endpoint where(read_address(settings), settings.port);
    try {
        s.acceptor.open(where.protocol());
        s.acceptor.set_option(tcp::acceptor::reuse_address(true));
        s.acceptor.bind(where);
        s.acceptor.listen(1024);
    } catch (const boost::system::system_error& e) {
        throw Failure(Code::environment,
                      "cannot listen on " + settings.host + ":" + std::to_string(settings.port) + ": " +
                          e.code().message(),
                      "choose another port, or stop what listens there");
    }
    const tcp::endpoint bound = s.acceptor.local_endpoint();
    const std::string address = bound.address().to_string();
    endpoint_ =
        "http://" + (bound.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(bound.port());
    s.workers.emplace(std::size_t(settings.worker_threads));
    s.shared.workers = &*s.workers;
    asio::co_spawn(s.accept_strand, s.accept_all(), asio::detached);
    for (int i = 0; i < settings.io_threads; ++i) s.threads.emplace_back([&io = s.io] { io.run(); });
    listening_ = true;
    if (!bound.address().is_loopback() && settings.api_keys.empty())
        s.front.log().warn("the API is open to other machines without a key; set api_key");
    s.front.log().info("the API listens on " + endpoint_);
}

void Server::drain(std::uint64_t deadline_us) {
    State& s = *state_;
    const dsv4_host* host = s.front.host();
    s.shared.draining = true;
    s.shared.exchanges.close();
    const std::uint64_t now = host->monotonic_us(host->ctx);
    if (deadline_us > now && s.shared.exchanges.wait_empty(deadline_us - now)) return;
    s.shared.exchanges.cancel_all();
    if (s.shared.exchanges.wait_empty(cancel_grace_us)) return;
    // A client that does not read its last event holds its request; it has had its time.
    close_all(s.shared);
    s.shared.exchanges.wait_empty(cancel_grace_us);
}

void Server::stop() noexcept {
    if (!state_) return;
    try {
        State& s = *state_;
        s.shared.draining = true;
        s.shared.exchanges.close();
        s.shared.exchanges.cancel_all();
        if (!s.threads.empty()) {
            asio::post(s.accept_strand, [&s] {
                error_code ignored;
                s.acceptor.close(ignored);
            });
            close_all(s.shared);
            std::unique_lock lock(s.shared.mutex);
            s.shared.none_open.wait_for(lock, std::chrono::seconds(5), [&] { return s.shared.open.empty(); });
        }
        if (s.workers) {
            s.workers->stop();
            s.workers->join();
        }
        s.work.reset();
        s.io.stop();
        for (std::thread& thread : s.threads) thread.join();
    } catch (const std::exception& e) {
        state_->front.log().warn(std::string("the API did not stop in order: ") + e.what());
    }
    state_.reset(); // frames of connections that did not end are destroyed here, on this thread alone
}

} // namespace dsv4::openai
