// One HTTP connection: reads requests, answers them, streams events, and notices a client that is gone.
//
// Everything of a connection runs on its strand. While an answer is being made, a second coroutine watches the socket:
// whichever ends first cancels the other, so both see the connection alive for as long as they run.
#include "connection.hpp"

#include "access.hpp"
#include "random_id.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <netinet/tcp.h>
#include <poll.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>

namespace dsv4::openai {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;

namespace {

constexpr auto quiet = asio::as_tuple(asio::use_awaitable); // errors as values
constexpr std::size_t read_step_bytes = 64 * 1024;
constexpr std::size_t linger_bytes = 1024 * 1024;

std::chrono::steady_clock::duration seconds(double s) {
    return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(s));
}

// Counts a body's bytes against the limit of all connections together.
class BodyBudget {
  public:
    BodyBudget(std::atomic<std::uint64_t>& used, std::uint64_t limit) : used_(used), limit_(limit) {}
    ~BodyBudget() { used_ -= mine_; }
    BodyBudget(const BodyBudget&) = delete;
    BodyBudget& operator=(const BodyBudget&) = delete;
    bool grow(std::uint64_t bytes) {
        mine_ += bytes;
        return (used_ += bytes) <= limit_;
    }

  private:
    std::atomic<std::uint64_t>& used_;
    std::uint64_t limit_;
    std::uint64_t mine_ = 0;
};

struct RequestHead {
    RouteMatch route;
    http::verb method = http::verb::unknown;
    std::string target; // route.argument is a slice of it
    std::string request_id, traceparent, origin, key_salt;
    std::string method_name;
    unsigned version = 11;
    bool keep_alive = false;
    bool is_head = false;
};

} // namespace

class Connection : public std::enable_shared_from_this<Connection> {
  public:
    Connection(tcp::socket socket, Shared& shared)
        : socket_(std::move(socket)),
          strand_(socket_.get_executor()),
          deadline_(strand_),
          news_(strand_),
          shared_(shared),
          settings_(shared.front.settings()) {
        const std::lock_guard lock(shared_.mutex);
        shared_.open.insert(this);
        shared_.metrics.connections(std::int64_t(shared_.open.size()));
    }
    ~Connection() {
        const std::lock_guard lock(shared_.mutex);
        shared_.open.erase(this);
        shared_.metrics.connections(std::int64_t(shared_.open.size()));
        shared_.none_open.notify_all();
    }

    asio::awaitable<void> run();
    asio::awaitable<void> refuse();
    void close_from_outside() {
        asio::post(strand_, [self = weak_from_this()] {
            if (const auto alive = self.lock()) alive->close();
        });
    }

  private:
    using Parser = http::request_parser<http::buffer_body>;
    using Text = http::response<http::string_body>;

    void close() {
        error_code ignored;
        socket_.close(ignored);
        deadline_.cancel();
        news_.cancel();
    }

    // The socket is closed when `limit_s` pass before disarm or the next arm.
    void arm(double limit_s) {
        const std::uint64_t mine = ++armed_;
        deadline_.expires_after(seconds(limit_s));
        deadline_.async_wait([self = weak_from_this(), mine](error_code error) {
            const auto alive = self.lock();
            if (error || !alive || alive->armed_ != mine) return;
            alive->timed_out_ = true;
            alive->close();
        });
    }
    void disarm() {
        ++armed_;
        deadline_.cancel();
    }

    asio::awaitable<bool> serve_one();
    bool read_head(const Parser& parser, RequestHead& head) const;
    std::optional<ApiError> check_head(const Parser& parser, RequestHead& head) const;
    asio::awaitable<std::optional<ApiError>> read_body(Parser& parser, BodyBudget& budget, std::string& body);
    asio::awaitable<bool> generate(RequestHead& head, std::string body);
    asio::awaitable<Reply> reply_elsewhere(const RequestHead& head, std::string body);
    asio::awaitable<std::variant<std::shared_ptr<Exchange>, ApiError>> submit_elsewhere(const RequestHead& head,
                                                                                        std::string body);

    enum class Ending { complete, client_gone };
    asio::awaitable<Ending> stream(RequestHead& head, Exchange& exchange, Answer& answer);
    asio::awaitable<Ending> collect(Exchange& exchange, Answer& answer);
    asio::awaitable<Ending> guarded(asio::awaitable<Ending> work);
    asio::awaitable<void> peer_gone();
    bool drain_events(Exchange& exchange, Answer& answer, std::size_t limit, std::string& out);
    asio::awaitable<bool> news(Exchange& exchange);

    asio::awaitable<bool> send(RequestHead& head, Reply reply);
    asio::awaitable<bool> send_error(RequestHead& head, const ApiError& error) {
        return send(head, error_reply(error));
    }
    template <class Message> void set_headers(const RequestHead& head, Message& message) const;
    asio::awaitable<bool> send_stream_head(RequestHead& head);
    asio::awaitable<bool> send_bytes(std::string_view bytes);
    asio::awaitable<void> linger();

    tcp::socket socket_;
    asio::any_io_executor strand_;
    asio::steady_timer deadline_;
    asio::steady_timer news_; // cancelled when events are waiting
    Shared& shared_;
    const Settings& settings_;
    boost::beast::flat_buffer buffer_;
    std::uint64_t armed_ = 0;
    bool timed_out_ = false;
    bool replied_ = false;     // a stream failed before it began and was answered with an error
    bool body_unread_ = false; // the answer came before the body; the connection cannot be used again
    std::string timings_;      // of the answer being sent
};

asio::awaitable<void> Connection::run() {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    socket_.set_option(asio::socket_base::keep_alive(true), ignored);
    // A machine that vanished answers nothing, not even probes. Later than our own limit, which counts slow readers.
    const int give_up_ms = int(std::min((settings_.send_timeout_s + 5) * 1000, 1e9));
    ::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up_ms, sizeof give_up_ms);
    socket_.non_blocking(true, ignored);
    try {
        while (co_await serve_one()) {}
        if (socket_.is_open()) co_await linger();
    } catch (const std::exception& e) {
        if (socket_.is_open()) shared_.front.log().warn(std::string("a connection ended early: ") + e.what());
    }
    close();
}

asio::awaitable<void> Connection::refuse() {
    RequestHead head;
    body_unread_ = true;
    try {
        co_await send_error(head, unavailable("too many connections are open"));
        co_await linger();
    } catch (const std::exception&) {
        // The client is turned away either way.
    }
    close();
}

// Gives the client time to read the answer before a reset throws it away.
asio::awaitable<void> Connection::linger() {
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    arm(2);
    std::string sink(16 * 1024, '\0');
    for (std::size_t total = 0; total < linger_bytes;) {
        const auto [error, count] = co_await socket_.async_read_some(asio::buffer(sink), quiet);
        if (error) break;
        total += count;
    }
    disarm();
}

// One request and its answer; false when the connection is not to be used again.
asio::awaitable<bool> Connection::serve_one() {
    RequestHead head;
    Parser parser;
    parser.header_limit(std::uint32_t(settings_.max_header_bytes));
    parser.body_limit(settings_.max_body_bytes);
    body_unread_ = replied_ = false;
    timings_.clear();

    if (buffer_.size() == 0) {
        arm(settings_.idle_timeout_s);
        const auto [error] = co_await socket_.async_wait(tcp::socket::wait_read, quiet);
        if (error) co_return false;
    }
    arm(settings_.header_timeout_s);
    error_code error;
    std::tie(error, std::ignore) = co_await http::async_read_header(socket_, buffer_, parser, quiet);
    disarm();
    if (error == http::error::end_of_stream || timed_out_ || error == asio::error::connection_reset) co_return false;
    if (error) {
        body_unread_ = true;
        if (error == http::error::body_limit)
            co_await send_error(head, too_large(settings_.max_body_bytes));
        else if (error == http::error::header_limit) {
            ApiError large = bad_request("the request header is too large");
            large.status = 431;
            co_await send_error(head, large);
        } else if (error.category() == http::make_error_code(http::error::bad_method).category()) {
            co_await send_error(head, bad_request("the request is not valid HTTP: " + error.message()));
        }
        co_return false;
    }
    body_unread_ = !parser.is_done();
    if (const auto refusal = check_head(parser, head)) co_return co_await send_error(head, *refusal);
    if (head.method == http::verb::options) {
        if (body_unread_) head.keep_alive = false;
        Reply nothing;
        nothing.status = 204;
        nothing.content_type.clear();
        co_return co_await send(head, std::move(nothing));
    }

    std::string body;
    BodyBudget budget(shared_.body_bytes, settings_.max_body_memory_bytes);
    if (!parser.is_done()) {
        if (const auto refusal = co_await read_body(parser, budget, body)) {
            if (refusal->status == 0) co_return false;
            co_return co_await send_error(head, *refusal);
        }
        body_unread_ = false;
    }
    if (head.route.route == Route::chat || head.route.route == Route::completions)
        co_return co_await generate(head, std::move(body));
    Reply reply;
    if (head.route.is_post()) {
        reply = co_await reply_elsewhere(head, std::move(body));
        co_return co_await send(head, std::move(reply));
    }
    try {
        reply = shared_.front.reply(head.route.route, head.route.argument, std::move(body), shared_.draining);
    } catch (...) {
        reply = error_reply(shared_.front.as_error());
    }
    co_return co_await send(head, std::move(reply));
}

// What the header alone decides, before any of the body is held.
std::optional<ApiError> Connection::check_head(const Parser& parser, RequestHead& head) const {
    const auto& message = parser.get();
    const auto text = [&](auto name) {
        const auto value = message[name];
        return std::string_view(value.data(), value.size());
    };
    head.target.assign(message.target().data(), message.target().size());
    head.route = match_route(head.target);
    head.method = message.method();
    head.method_name.assign(message.method_string().data(), std::min<std::size_t>(message.method_string().size(), 32));
    head.version = message.version();
    head.keep_alive = message.keep_alive();
    head.is_head = head.method == http::verb::head;
    head.origin = text(http::field::origin);
    const std::string_view id = text("X-Request-Id");
    head.request_id = is_request_id(id) ? std::string(id) : random_hex(24);
    if (const std::string_view trace = text("traceparent"); is_traceparent(trace)) head.traceparent = trace;

    if (head.method == http::verb::options && !allowed_origin(settings_, head.origin).empty()) return std::nullopt;
    if (is_foreign_page(settings_, head.origin, text(http::field::host))) {
        ApiError error = bad_request("pages of another origin may not call this server; set cors or allowed_origins");
        error.status = 403;
        return error;
    }
    if (!settings_.api_keys.empty() && head.route.needs_key &&
        !(head.route.route == Route::metrics && settings_.metrics_without_key)) {
        const auto key = find_key(settings_, text(http::field::authorization), text("x-api-key"));
        if (!key) return unauthorized();
        if (settings_.salt_by_key) head.key_salt = "key" + std::to_string(*key);
    }
    if (head.route.route == Route::unknown) return unknown_path(head.target);
    const bool reads = head.method == http::verb::get || head.is_head;
    if (head.route.is_post() ? head.method != http::verb::post : !reads)
        return wrong_method(head.method_name, head.target);
    if (head.route.is_post()) {
        const std::string_view type = text(http::field::content_type);
        const std::string_view media = type.substr(0, type.find_first_of("; "));
        const auto same_letter = [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b | 0x20 : b); };
        constexpr std::string_view json = "application/json";
        if (!media.empty() &&
            !(media.size() == json.size() && std::equal(json.begin(), json.end(), media.begin(), same_letter))) {
            ApiError error = bad_request("the content type must be application/json");
            error.status = 415;
            return error;
        }
        if (const std::string_view coding = text(http::field::content_encoding);
            !coding.empty() && coding != "identity") {
            ApiError error = bad_request("compressed request bodies are not offered; send the body as it is");
            error.status = 415;
            return error;
        }
        if (shared_.draining) return unavailable("the server is shutting down");
    }
    return std::nullopt;
}

// An error of status 0 means that there is nobody to answer.
asio::awaitable<std::optional<ApiError>> Connection::read_body(Parser& parser, BodyBudget& budget, std::string& body) {
    ApiError silent;
    silent.status = 0;
    const auto expect = parser.get()[http::field::expect];
    if (boost::beast::iequals(expect, "100-continue") && !co_await send_bytes("HTTP/1.1 100 Continue\r\n\r\n"))
        co_return silent;
    const auto end = std::chrono::steady_clock::now() + seconds(settings_.body_timeout_s * 10);
    while (!parser.is_done()) {
        const std::size_t before = body.size();
        if (!budget.grow(read_step_bytes)) co_return unavailable("too many large requests are being read; try again");
        body.resize(before + read_step_bytes);
        parser.get().body().data = body.data() + before;
        parser.get().body().size = read_step_bytes;
        parser.get().body().more = true;
        error_code error;
        while (!parser.is_done() && parser.get().body().size > 0 && !error) {
            if (std::chrono::steady_clock::now() > end) co_return silent;
            arm(settings_.body_timeout_s);
            std::tie(error, std::ignore) = co_await http::async_read_some(socket_, buffer_, parser, quiet);
            disarm();
            if (error == http::error::need_buffer) {
                error = {};
                break;
            }
        }
        body.resize(body.size() - parser.get().body().size);
        if (error == http::error::body_limit) co_return too_large(settings_.max_body_bytes);
        if (!error) continue;
        const bool malformed = error.category() == http::make_error_code(http::error::bad_method).category() &&
                               error != http::error::partial_message && error != http::error::end_of_stream;
        if (malformed) co_return bad_request("the request is not valid HTTP: " + error.message());
        co_return silent;
    }
    co_return std::nullopt;
}

asio::awaitable<Reply> Connection::reply_elsewhere(const RequestHead& head, std::string body) {
    auto job = [&head, &shared = shared_, text = std::move(body)]() mutable -> asio::awaitable<Reply> {
        try {
            co_return shared.front.reply(head.route.route, head.route.argument, std::move(text), shared.draining);
        } catch (...) {
            co_return error_reply(shared.front.as_error());
        }
    };
    co_return co_await asio::co_spawn(*shared_.workers, std::move(job), asio::use_awaitable);
}

// Reads the body and submits on a worker, so that no stream waits for a long prompt.
asio::awaitable<std::variant<std::shared_ptr<Exchange>, ApiError>> Connection::submit_elsewhere(const RequestHead& head,
                                                                                                std::string body) {
    using Outcome = std::variant<std::shared_ptr<Exchange>, ApiError>;
    const auto notify = [self = weak_from_this(), executor = strand_] {
        asio::post(executor, [self] {
            if (const auto alive = self.lock()) alive->news_.cancel();
        });
    };
    auto job = [&head, &shared = shared_, notify, text = std::move(body)]() mutable -> asio::awaitable<Outcome> {
        try {
            const Front& front = shared.front;
            auto call = front.read(head.route.route, std::move(text));
            if (!front.host()->generate) throw Refusal{unavailable("no engine runs behind this server")};
            call->set_context(head.request_id, head.traceparent, head.key_salt);
            auto exchange = std::make_shared<Exchange>(shared.exchanges, front.host(), std::move(call), notify);
            exchange->submit();
            co_return exchange;
        } catch (...) {
            co_return shared.front.as_error();
        }
    };
    co_return co_await asio::co_spawn(*shared_.workers, std::move(job), asio::use_awaitable);
}

asio::awaitable<bool> Connection::generate(RequestHead& head, std::string body) {
    using namespace asio::experimental::awaitable_operators;
    auto outcome = co_await submit_elsewhere(head, std::move(body));
    if (const auto* error = std::get_if<ApiError>(&outcome)) co_return co_await send_error(head, *error);
    const std::shared_ptr<Exchange> exchange = std::move(std::get<0>(outcome));
    const std::unique_ptr<Answer> answer = shared_.front.answer(exchange->call(), head.request_id);
    const bool streaming = exchange->call().stream;
    // Each awaitable has a name: GCC 12 destroys unnamed ones inside a co_await expression too early.
    auto work = [&] { return streaming ? stream(head, *exchange, *answer) : collect(*exchange, *answer); }();
    auto safe = guarded(std::move(work));
    auto either = std::move(safe) || peer_gone();
    const auto result = co_await std::move(either);
    if (result.index() == 1 || std::get<0>(result) == Ending::client_gone) {
        shared_.metrics.disconnected();
        if (timed_out_) shared_.metrics.slow_reader();
        co_return false;
    }
    if (streaming) {
        // A broken stream ends without its last chunk, so that no client takes it for whole.
        co_return head.keep_alive && (replied_ || !answer->failure());
    }
    if (answer->failure()) co_return co_await send_error(head, *answer->failure());
    const Timings t = answer->timings();
    char text[160];
    std::snprintf(text, sizeof text, "queue;dur=%.3f, prefill;dur=%.3f, decode;dur=%.3f", double(t.queue_us) / 1e3,
                  double(t.prefill_us) / 1e3, double(t.decode_us) / 1e3);
    timings_ = text;
    Reply reply;
    reply.body = answer->body();
    co_return co_await send(head, std::move(reply));
}

// The two sides of `||` must not throw: an exception of one would leave it waiting for the other.
asio::awaitable<Connection::Ending> Connection::guarded(asio::awaitable<Ending> work) {
    try {
        co_return co_await std::move(work);
    } catch (const std::exception&) {
        // The socket failed or was closed under the write, or memory ran out: the connection ends either way.
    }
    co_return Ending::client_gone;
}

// Ends when the client has closed the connection. Bytes that are waiting are its next request.
asio::awaitable<void> Connection::peer_gone() {
    asio::steady_timer pause(strand_);
    for (;;) {
        const auto [error] = co_await socket_.async_wait(tcp::socket::wait_read, quiet);
        if (error) co_return;
        pollfd state{socket_.native_handle(), POLLRDHUP, 0};
        const bool closed = ::poll(&state, 1, 0) > 0;
        const short fatal = POLLERR | POLLHUP | POLLNVAL;
        if (closed && (!settings_.ignore_half_close || (state.revents & fatal) != 0)) co_return;
        // Readable, but not closed, or only half: nothing will signal a change, so look now and then.
        pause.expires_after(std::chrono::milliseconds(100));
        co_await pause.async_wait(quiet);
    }
}

// Takes events until none is waiting (true) or `out` holds `limit` bytes.
bool Connection::drain_events(Exchange& exchange, Answer& answer, std::size_t limit, std::string& out) {
    while (!answer.done()) {
        if (out.size() >= limit) return false;
        std::uint32_t prompt = 0;
        const dsv4_event* event = exchange.next(prompt);
        if (!event) break;
        const bool before = answer.enough();
        answer.take(*event, prompt, out);
        if (answer.enough() && !before) exchange.cancel();
    }
    return true;
}

// Waits for events; false when a keep-alive is due first.
asio::awaitable<bool> Connection::news(Exchange& exchange) {
    if (exchange.take_wake()) co_return true;
    news_.expires_after(seconds(settings_.sse_keepalive_s));
    const auto [error] = co_await news_.async_wait(quiet);
    exchange.take_wake();
    co_return bool(error);
}

asio::awaitable<Connection::Ending> Connection::collect(Exchange& exchange, Answer& answer) {
    std::string unused;
    while (!answer.done()) {
        exchange.take_wake();
        try {
            drain_events(exchange, answer, 1, unused);
        } catch (...) {
            answer.fail(shared_.front.as_error(), unused);
        }
        if (!answer.done()) co_await news(exchange);
    }
    co_return Ending::complete;
}

asio::awaitable<Connection::Ending> Connection::stream(RequestHead& head, Exchange& exchange, Answer& answer) {
    const std::size_t limit = std::max<std::size_t>(4096, settings_.max_send_buffer_bytes / 2);
    std::string out;
    bool head_sent = false, more = true; // events may have come before the first wake-up
    while (!answer.done()) {
        if (!more && !co_await news(exchange)) out += ": keep-alive\n\n";
        try {
            more = !drain_events(exchange, answer, limit, out);
        } catch (...) {
            answer.fail(shared_.front.as_error(), out);
        }
        if (answer.failure() && !head_sent) {
            // Nothing was said yet, so the error can have its own status.
            const bool sent = co_await send_error(head, *answer.failure());
            head.keep_alive = head.keep_alive && sent;
            replied_ = true;
            co_return Ending::complete;
        }
        if (answer.done() && !answer.failure()) answer.end_stream(out);
        if (!head_sent && (!out.empty() || answer.accepted())) {
            if (!co_await send_stream_head(head)) co_return Ending::client_gone;
            head_sent = true;
        }
        if (!out.empty()) {
            const bool last = answer.done() && !answer.failure();
            if (head.version >= 11) {
                char size[20];
                const int digits = std::snprintf(size, sizeof size, "%zx\r\n", out.size());
                out.insert(0, size, std::size_t(digits));
                out += last ? "\r\n0\r\n\r\n" : "\r\n";
            }
            if (!co_await send_bytes(out)) co_return Ending::client_gone;
            out.clear();
        }
        // Other connections of this thread come between two full buffers.
        if (more) co_await asio::post(strand_, asio::use_awaitable);
    }
    co_return Ending::complete;
}

template <class Message> void Connection::set_headers(const RequestHead& head, Message& message) const {
    message.set(http::field::server, "dsv4");
    if (!head.request_id.empty()) message.set("X-Request-Id", head.request_id);
    if (const std::string origin = allowed_origin(settings_, head.origin); !origin.empty()) {
        message.set(http::field::access_control_allow_origin, origin);
        message.set(http::field::vary, "Origin");
        if (head.method == http::verb::options) {
            message.set(http::field::access_control_allow_methods, "GET, POST, OPTIONS");
            message.set(http::field::access_control_allow_headers,
                        "authorization, content-type, x-api-key, x-request-id");
            message.set(http::field::access_control_max_age, "600");
        }
    }
}

// True when the connection can be used again.
asio::awaitable<bool> Connection::send(RequestHead& head, Reply reply) {
    Text message{http::status(reply.status), head.version == 10 ? 10u : 11u};
    set_headers(head, message);
    if (!reply.content_type.empty()) message.set(http::field::content_type, reply.content_type);
    if (reply.status == 401) message.set(http::field::www_authenticate, "Bearer");
    if (reply.status == 405) message.set(http::field::allow, head.route.is_post() ? "POST" : "GET, HEAD");
    if (reply.retry_after_s) message.set(http::field::retry_after, std::to_string(*reply.retry_after_s));
    if (!timings_.empty()) message.set("Server-Timing", timings_);
    const bool again = head.keep_alive && !body_unread_ && !shared_.draining;
    message.keep_alive(again);
    if (reply.status != 204) message.content_length(reply.body.size());
    if (!head.is_head) message.body() = std::move(reply.body);
    shared_.metrics.answered(head.route.name(), reply.status);
    http::response_serializer<http::string_body> serializer(message);
    while (!serializer.is_done()) {
        arm(settings_.send_timeout_s);
        const auto [error, count] = co_await http::async_write_some(socket_, serializer, quiet);
        if (error) co_return false;
    }
    disarm();
    co_return again;
}

asio::awaitable<bool> Connection::send_stream_head(RequestHead& head) {
    http::response<http::empty_body> message{http::status::ok, head.version == 10 ? 10u : 11u};
    set_headers(head, message);
    message.set(http::field::content_type, "text/event-stream; charset=utf-8");
    message.set(http::field::cache_control, "no-cache");
    message.set("X-Accel-Buffering", "no");
    if (head.version < 11) head.keep_alive = false; // the end of the connection is the end of the text
    message.keep_alive(head.keep_alive);
    if (head.version >= 11) message.chunked(true);
    shared_.metrics.answered(head.route.name(), 200);
    http::response_serializer<http::empty_body> serializer(message);
    arm(settings_.send_timeout_s);
    const auto [error, count] = co_await http::async_write_header(socket_, serializer, quiet);
    disarm();
    co_return !error;
}

// Writes straight to the socket and waits only when its buffer is full.
asio::awaitable<bool> Connection::send_bytes(std::string_view bytes) {
    while (!bytes.empty()) {
        error_code error;
        const std::size_t count = socket_.write_some(asio::buffer(bytes.data(), bytes.size()), error);
        bytes.remove_prefix(count);
        if (!error) continue;
        if (error != asio::error::would_block && error != asio::error::try_again) co_return false;
        arm(settings_.send_timeout_s);
        const auto [waited] = co_await socket_.async_wait(tcp::socket::wait_write, quiet);
        disarm();
        if (waited) co_return false;
    }
    co_return true;
}

void serve(tcp::socket socket, Shared& shared) {
    auto executor = socket.get_executor();
    auto connection = std::make_shared<Connection>(std::move(socket), shared);
    asio::co_spawn(
        executor, [connection] { return connection->run(); }, asio::detached);
}

void turn_away(tcp::socket socket, Shared& shared) {
    auto executor = socket.get_executor();
    auto connection = std::make_shared<Connection>(std::move(socket), shared);
    asio::co_spawn(
        executor, [connection] { return connection->refuse(); }, asio::detached);
}

void close_all(Shared& shared) {
    const std::lock_guard lock(shared.mutex);
    for (Connection* connection : shared.open) connection->close_from_outside();
}

} // namespace dsv4::openai
