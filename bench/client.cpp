// HTTP with Boost.Beast: coroutines on one thread. The only file that knows Beast, which takes long to compile.
#include "bench/client.hpp"

#include "bench/answer.hpp"
#include "dsv4/sdk/result.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <set>
#include <sys/resource.h>

namespace dsv4::bench {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Parser = http::response_parser<http::buffer_body>;
using Room = std::array<char, 16384>;

constexpr std::size_t error_body_limit_bytes = 4096; // of an error's body, that much is read
constexpr std::size_t whole_body_limit_bytes = 64u << 20;
constexpr std::size_t models_limit_bytes = 1u << 20;
constexpr std::uint64_t stream_limit_bytes = 1u << 30;
constexpr auto tail_time = std::chrono::seconds(1); // for what follows [DONE], so that the connection can be kept
constexpr std::uint64_t failures_in_a_row = 1000;   // of connections: the server is gone
constexpr std::uint64_t warmup_numbers = std::uint64_t(1) << 63; // warm-up asks other prompts than the load

struct Connection {
    explicit Connection(asio::io_context& context) : stream(context) {}
    beast::tcp_stream stream;
    beast::flat_buffer input;
    bool used = false; // it carried a request before
};

std::chrono::nanoseconds seconds(double s) { return std::chrono::nanoseconds(std::int64_t(s * 1e9)); }

// Asks for as many open files as the system allows: each request at once is one socket.
void raise_file_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

class Session {
  public:
    explicit Session(const Server& server) : server_(server), signals_(context_), wake_(context_) {
        raise_file_limit();
    }

    Run load(const LoadSettings& settings, std::uint64_t warmup, const Requests& requests,
             const std::function<void(const Progress&)>& progress) {
        requests_ = &requests;
        on_progress_ = &progress;
        signals_.add(SIGINT);
        signals_.add(SIGTERM);
        signals_.async_wait([this](error_code error, int) {
            if (error) return;
            signals_.clear(); // a second signal ends the process
            run_.stopped_by_user = true;
            stop();
        });
        lost_limit_ = failures_in_a_row + settings.concurrency;
        LoadSettings warm;
        warm.concurrency = settings.concurrency ? settings.concurrency : std::min<std::uint64_t>(warmup, 64);
        warm.requests = warmup;
        drive(phases(warmup ? &warm : nullptr, settings));
        return std::move(run_);
    }

    std::string models() {
        std::string body;
        drive(ask_models(body));
        return body;
    }

  private:
    // Runs the coroutine and all that it started to their ends; what one of them threw is thrown again.
    void drive(asio::awaitable<void> main) {
        asio::co_spawn(context_, std::move(main), [this](std::exception_ptr e) {
            keep(e);
            signals_.cancel();
        });
        for (;;) {
            try {
                context_.run();
                break;
            } catch (...) {
                keep(std::current_exception());
            }
        }
        if (error_) std::rethrow_exception(error_);
    }
    void keep(std::exception_ptr e) {
        if (!e) return;
        if (!error_) error_ = e;
        stop();
    }
    // Ends what waits for the network; everything else looks at stopping_ when it wakes.
    void stop() {
        stopping_ = true;
        for (Connection* c : active_) close(*c);
        wake_.cancel();
    }

    std::int64_t now_us() const {
        return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start_).count();
    }

    asio::awaitable<void> phases(const LoadSettings* warm, const LoadSettings& settings) {
        error_code error;
        auto probe = co_await connect(error);
        if (stopping_) co_return;
        if (error) throw unreachable(error);
        idle_.push_back(std::move(probe));
        if (warm) {
            warming_up_ = true;
            co_await run(*warm);
            run_.warmup_requests = run_.samples.size();
            run_.warmup_failures = failed_;
            run_.samples.clear();
            run_.interrupted = answered_ = failed_ = 0;
            warming_up_ = false;
        }
        if (stopping_) co_return;
        co_await run(settings);
        if (stopping_) run_.elapsed_us = now_us();
        for (const Sample& sample : run_.samples) run_.elapsed_us = std::max(run_.elapsed_us, sample.end_us);
    }

    Failure unreachable(const error_code& error) const {
        return Failure(Code::environment, "cannot connect to " + server_.url.host + ": " + error.message(),
                       "check that the server runs and listens there");
    }

    asio::awaitable<void> run(const LoadSettings& settings) {
        Schedule schedule(settings);
        schedule_ = &schedule;
        start_ = Clock::now();
        while (!(stopping_ ? schedule.running() == 0 : schedule.over())) {
            while (!stopping_) {
                const auto begin = schedule.take(now_us());
                if (!begin) break;
                report_progress();
                asio::co_spawn(context_, one(*begin), [this](std::exception_ptr e) {
                    keep(e);
                    if (lost_in_a_row_ >= lost_limit_ && !stopping_) {
                        run_.gave_up = true;
                        stop();
                    }
                    schedule_->finished();
                    wake_.cancel();
                });
            }
            if (!stopping_ && schedule.over()) break;
            const auto next = stopping_ ? std::nullopt : schedule.next_us();
            wake_.expires_at(next ? start_ + std::chrono::microseconds(*next) : Clock::time_point::max());
            error_code ignored;
            co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        }
        report_progress();
        schedule_ = nullptr;
    }

    void report_progress() const {
        if (on_progress_ && *on_progress_) (*on_progress_)({schedule_->started(), answered_, failed_, warming_up_});
    }

    // One request from its start to its sample.
    asio::awaitable<void> one(Start begin) {
        const std::string body = requests_->body(begin.index + (warming_up_ ? warmup_numbers : 0));
        const auto request = post(body);
        Sample sample;
        bool stale = true;
        while (stale && !stopping_) {
            sample = Sample{};
            sample.index = begin.index;
            sample.streamed = requests_->settings().stream;
            sample.scheduled_us = begin.scheduled_us;
            error_code error;
            auto connection = co_await take_connection(error);
            if (stopping_) break;
            if (error) {
                sample.sent_us = now_us();
                fail(sample, error);
                break;
            }
            active_.insert(connection.get());
            stale = co_await exchange(*connection, request, sample);
            active_.erase(connection.get());
            if (connection->stream.socket().is_open()) {
                connection->used = true;
                idle_.push_back(std::move(connection));
            }
        }
        if (sample.outcome == Outcome::interrupted) {
            ++run_.interrupted;
            co_return;
        }
        ++(sample.outcome == Outcome::ok ? answered_ : failed_);
        lost_in_a_row_ = sample.outcome == Outcome::connection ? lost_in_a_row_ + 1 : 0;
        run_.samples.push_back(std::move(sample));
        report_progress();
    }

    http::request<http::string_body> post(const std::string& body) const {
        auto request = head(http::verb::post, requests_->path());
        request.set(http::field::content_type, "application/json");
        request.set(http::field::accept, requests_->settings().stream ? "text/event-stream" : "application/json");
        request.body() = body;
        request.prepare_payload();
        return request;
    }
    http::request<http::string_body> head(http::verb verb, const std::string& path) const {
        http::request<http::string_body> request(verb, server_.url.prefix + path, 11);
        request.set(http::field::host, server_.url.host);
        request.set(http::field::user_agent, "dsv4-bench-serve");
        if (!server_.api_key.empty()) request.set(http::field::authorization, "Bearer " + server_.api_key);
        return request;
    }

    asio::awaitable<std::unique_ptr<Connection>> take_connection(error_code& error) {
        if (!idle_.empty()) {
            auto connection = std::move(idle_.back());
            idle_.pop_back();
            co_return connection;
        }
        co_return co_await connect(error);
    }

    asio::awaitable<std::unique_ptr<Connection>> connect(error_code& error) {
        auto connection = std::make_unique<Connection>(context_);
        auto& stream = connection->stream;
        for (const std::string& address : server_.url.addresses) {
            const asio::ip::tcp::endpoint where(asio::ip::make_address(address), server_.url.port);
            active_.insert(connection.get());
            stream.expires_after(seconds(server_.connect_timeout_s));
            error = {};
            co_await stream.async_connect(where, asio::redirect_error(asio::use_awaitable, error));
            active_.erase(connection.get());
            if (stopping_ || !error) break;
        }
        if (error || stopping_) co_return connection;
        ++run_.connections;
        stream.expires_never();
        error_code ignored;
        stream.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
        co_return connection;
    }

    void fail(Sample& sample, const error_code& error) const {
        sample.end_us = now_us();
        if (stopping_) return; // interrupted, not failed
        sample.message = error.message();
        if (error == beast::error::timeout) {
            sample.outcome = Outcome::timeout;
        } else if (error.category() == http::make_error_code(http::error::end_of_stream).category() &&
                   error != http::error::end_of_stream && error != http::error::partial_message) {
            sample.outcome = Outcome::malformed;
        } else {
            sample.outcome = Outcome::connection;
        }
    }

    // Sends the request and reads its answer into the sample. The socket stays open where it can be used again. True
    // where nothing came back because the server had closed a kept connection: the request can be sent once more.
    asio::awaitable<bool> exchange(Connection& c, const http::request<http::string_body>& request, Sample& sample) {
        error_code error;
        c.stream.expires_after(seconds(server_.request_timeout_s));
        sample.sent_us = now_us();
        co_await http::async_write(c.stream, request, asio::redirect_error(asio::use_awaitable, error));
        Parser parser;
        parser.header_limit(64u << 10);
        parser.body_limit(stream_limit_bytes);
        if (!error) co_await read_head(c, parser, error);
        if (error) {
            const bool stale = c.used && error != beast::error::timeout && !parser.got_some();
            close(c);
            if (!stale) fail(sample, error);
            co_return stale && !stopping_;
        }
        sample.http_status = parser.get().result_int();
        const std::string type(parser.get()[http::field::content_type]);
        if (sample.http_status != 200) {
            std::string body;
            co_await read_body(c, parser, body, error_body_limit_bytes, error);
            sample.message = error_message(body);
            sample.end_us = now_us();
            if (!stopping_) sample.outcome = Outcome::http_status;
        } else if (!requests_->settings().stream) {
            std::string body;
            co_await read_body(c, parser, body, whole_body_limit_bytes, error);
            if (error)
                fail(sample, error);
            else {
                sample.end_us = now_us();
                read_whole_answer(body, sample);
            }
        } else if (!type.starts_with("text/event-stream")) {
            sample.outcome = Outcome::malformed;
            sample.message = "a stream was asked for and the answer is of type '" + type.substr(0, 100) + "'";
            sample.end_us = now_us();
        } else {
            co_await read_stream(c, parser, sample);
        }
        if (!parser.is_done() || !parser.keep_alive()) close(c);
        co_return false;
    }

    static void close(Connection& c) {
        error_code ignored;
        c.stream.socket().close(ignored);
    }

    asio::awaitable<void> read_head(Connection& c, Parser& parser, error_code& error) {
        co_await http::async_read_header(c.stream, c.input, parser, asio::redirect_error(asio::use_awaitable, error));
    }

    // The next bytes of the body, as soon as there are some; 0 at its end or with an error.
    asio::awaitable<std::size_t> read_some(Connection& c, Parser& parser, Room& room, error_code& error) {
        while (!parser.is_done()) {
            auto& body = parser.get().body();
            body.data = room.data();
            body.size = room.size();
            error = {};
            co_await http::async_read_some(c.stream, c.input, parser, asio::redirect_error(asio::use_awaitable, error));
            if (error == http::error::need_buffer) error = {};
            const std::size_t bytes = room.size() - body.size;
            if (bytes > 0 || error) co_return bytes;
        }
        co_return 0;
    }

    // The whole body. One that is larger than the limit stops there; with `error` set where nothing else had failed.
    asio::awaitable<void> read_body(Connection& c, Parser& parser, std::string& body, std::size_t limit_bytes,
                                    error_code& error) {
        Room room;
        for (;;) {
            const std::size_t bytes = co_await read_some(c, parser, room, error);
            body.append(room.data(), bytes);
            if (body.size() > limit_bytes && !error) error = http::error::body_limit;
            if (bytes == 0 || error) co_return;
        }
    }

    asio::awaitable<void> read_stream(Connection& c, Parser& parser, Sample& sample) {
        StreamReader reader(sample);
        Room room;
        error_code error;
        for (;;) {
            const std::size_t bytes = co_await read_some(c, parser, room, error);
            const std::int64_t now = now_us();
            const bool ended = reader.ended();
            reader.feed({room.data(), bytes}, now);
            if (!ended && reader.ended()) c.stream.expires_after(tail_time);
            if (bytes == 0 || error) break;
        }
        if (error && !reader.ended())
            fail(sample, error);
        else if (!error)
            reader.finish(now_us());
    }

    asio::awaitable<void> ask_models(std::string& body) {
        error_code error;
        auto connection = co_await connect(error);
        if (error) throw unreachable(error);
        Connection& c = *connection;
        const auto request = head(http::verb::get, "/v1/models");
        Parser parser;
        c.stream.expires_after(seconds(server_.connect_timeout_s));
        co_await http::async_write(c.stream, request, asio::redirect_error(asio::use_awaitable, error));
        if (!error) co_await read_head(c, parser, error);
        if (!error) co_await read_body(c, parser, body, models_limit_bytes, error);
        const std::string what = "GET " + server_.url.prefix + "/v1/models of " + server_.url.host;
        if (error)
            throw Failure(Code::environment, what + " failed: " + error.message(), "name the model with --model");
        if (parser.get().result_int() != 200)
            throw Failure(Code::environment,
                          what + " was answered with status " + std::to_string(parser.get().result_int()) + ": " +
                              error_message(body),
                          "name the model with --model");
    }

    const Server& server_;
    asio::io_context context_{1};
    asio::signal_set signals_;
    asio::steady_timer wake_; // of the loop that starts requests
    std::vector<std::unique_ptr<Connection>> idle_;
    std::set<Connection*> active_; // waiting for the network
    const Requests* requests_ = nullptr;
    const std::function<void(const Progress&)>* on_progress_ = nullptr;
    Schedule* schedule_ = nullptr;
    Clock::time_point start_ = Clock::now();
    Run run_;
    std::uint64_t answered_ = 0, failed_ = 0;
    std::uint64_t lost_in_a_row_ = 0; // connections that failed since one did not
    std::uint64_t lost_limit_ = failures_in_a_row;
    bool warming_up_ = false;
    bool stopping_ = false;
    std::exception_ptr error_;
};

} // namespace

Run run_load(const Server& server, const LoadSettings& load, std::uint64_t warmup, const Requests& requests,
             const std::function<void(const Progress&)>& progress) {
    check(load);
    return Session(server).load(load, warmup, requests, progress);
}

std::string get_models(const Server& server) { return Session(server).models(); }

} // namespace dsv4::bench
