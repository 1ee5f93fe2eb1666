#include "telemetry/health_server.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "telemetry/error.h"
#include "telemetry/prometheus.h"

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <expected>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace kaas::telemetry {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Request = http::request<http::empty_body>;
using Answer = http::response<http::string_body>;

constexpr std::size_t kHeaderMax = 8 << 10;
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr auto kJson = "application/json";

constexpr auto as_values() { return asio::as_tuple(asio::use_awaitable); }

Error error_of(const beast::error_code& error, const std::string& what) {
    ErrorCode code = error == asio::error::address_in_use ? ErrorCode::kAddressInUse
                     : error == boost::system::errc::address_not_available ? ErrorCode::kBadAddress
                                                                           : ErrorCode::kSystem;
    return {code, fmt::format("{}: {}", what, error.message())};
}

Result<tcp::endpoint> endpoint_of(const HealthServerOptions& options) {
    if (options.host.empty()) return tcp::endpoint(tcp::v6(), options.port);
    beast::error_code error;
    auto address = asio::ip::make_address(options.host, error);
    if (error)
        return fail(ErrorCode::kBadAddress, fmt::format("{}: {}", options.host, error.message()));
    return tcp::endpoint(address, options.port);
}

Result<void> open(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
    std::string what = fmt::format("health port {}", endpoint.port());
    beast::error_code error;
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error && endpoint.protocol() == tcp::v6()) {
        acceptor.set_option(asio::ip::v6_only(false), error);
    }
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
    if (error) return std::unexpected(error_of(error, what));
    return {};
}

/// Also on machines without IPv6.
Result<void> open_somewhere(tcp::acceptor& acceptor, const HealthServerOptions& options) {
    KAAS_TRY_ASSIGN(endpoint, endpoint_of(options));
    auto opened = open(acceptor, endpoint);
    if (opened || !options.host.empty() || opened.error().code == ErrorCode::kAddressInUse)
        return opened;
    acceptor.close();
    return open(acceptor, tcp::endpoint(tcp::v4(), options.port));
}

}  // namespace

/// Everything here runs on `thread_`, but for start and end.
class HealthServer::Impl {
public:
    Impl(HealthServerOptions options, const base::metrics::Registry& registry, HealthReport report)
        : options_(std::move(options)), registry_(registry), report_(std::move(report)) {}
    ~Impl() {
        context_.stop();
        if (thread_.joinable()) thread_.join();
    }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    [[nodiscard]] Result<void> start() {
        KAAS_TRY(open_somewhere(acceptor_, options_));
        port_ = acceptor_.local_endpoint().port();
        spawn(accept());
        thread_ = std::thread([this] {
            base::set_thread_name("health");
            context_.run();
        });
        return {};
    }
    [[nodiscard]] std::uint16_t port() const { return port_; }

private:
    void spawn(asio::awaitable<void> task) {
        asio::co_spawn(context_, std::move(task), [](const std::exception_ptr& error) {
            if (!error) return;
            try {
                std::rethrow_exception(error);
            } catch (const std::exception& e) {
                base::log::error("telemetry", "a task of the health port threw: {}", e.what());
            } catch (...) {
                base::log::error("telemetry",
                                 "a task of the health port threw an unknown exception");
            }
        });
    }

    asio::awaitable<void> accept() {
        asio::steady_timer pause(context_);
        for (;;) {
            auto [error, socket] = co_await acceptor_.async_accept(as_values());
            if (error == asio::error::no_descriptors || error == asio::error::no_memory ||
                error == asio::error::no_buffer_space) {
                pause.expires_after(kAcceptPause);
                co_await pause.async_wait(as_values());
            } else if (!error && open_ < options_.connections_max) {
                spawn(serve(beast::tcp_stream(std::move(socket))));
            }
        }
    }

    asio::awaitable<void> serve(beast::tcp_stream stream) {
        Place place(open_);
        beast::flat_buffer buffer(kHeaderMax);
        for (bool goes_on = true; goes_on;) {
            http::request_parser<http::empty_body> parser;
            parser.header_limit(kHeaderMax);
            stream.expires_after(options_.patience);
            // The header says all that counts here. No request has a body to wait for; one that
            // has is answered by its method, and its connection ends.
            auto [failed, read] =
                co_await http::async_read_header(stream, buffer, parser, as_values());
            if (failed == http::error::end_of_stream) break;
            bool malformed =
                failed.category() == http::make_error_code(http::error::bad_method).category();
            if (failed && !malformed) co_return;  // too slow, or gone
            Answer answer = failed ? refusal() : this->answer(parser.get());
            if (!parser.is_done()) answer.keep_alive(false);
            goes_on = answer.keep_alive();
            stream.expires_after(options_.patience);
            auto [unsent, written] = co_await http::async_write(stream, answer, as_values());
            if (unsent) co_return;
        }
        beast::error_code ignored;  // the client has everything, or has gone
        stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
    }

    static Answer refusal() {
        Answer answer(http::status::bad_request, 11);
        answer.keep_alive(false);
        answer.prepare_payload();
        return answer;
    }

    [[nodiscard]] Answer answer(const Request& request) const {
        Answer answer(http::status::ok, request.version());
        answer.keep_alive(request.keep_alive());
        bool head = request.method() == http::verb::head;
        if (head || request.method() == http::verb::get) {
            std::string_view target(request.target().data(), request.target().size());
            fill(answer, target.substr(0, target.find('?')));
        } else {
            answer.result(http::status::method_not_allowed);
            answer.set(http::field::allow, "GET, HEAD");
        }
        answer.prepare_payload();
        if (head) answer.body().clear();  // its length stays
        return answer;
    }

    void fill(Answer& answer, std::string_view path) const {
        if (path == "/metrics") {
            answer.set(http::field::content_type, kPrometheusContentType);
            answer.body() = prometheus_text(registry_);
        } else if (path == "/livez") {
            fill_verdict(answer, "live", report_.live());
        } else if (path == "/readyz") {
            fill_verdict(answer, "ready", report_.ready());
        } else if (path == "/healthz") {
            answer.set(http::field::content_type, kJson);
            answer.body() = report_.health();
        } else {
            answer.result(http::status::not_found);
            answer.set(http::field::content_type, "text/plain");
            answer.body() = "/metrics /livez /readyz /healthz\n";
        }
    }

    static void fill_verdict(Answer& answer, const char* what, bool good) {
        if (!good) answer.result(http::status::service_unavailable);
        answer.set(http::field::content_type, kJson);
        answer.body() = fmt::format("{{\"{}\":{}}}", what, good);
    }

    /// Counts a connection while it lives.
    class Place {
    public:
        explicit Place(std::size_t& open) : open_(open) { ++open_; }
        ~Place() { --open_; }
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;

    private:
        std::size_t& open_;
    };

    const HealthServerOptions options_;
    const base::metrics::Registry& registry_;
    const HealthReport report_;
    std::size_t open_ = 0;
    std::uint16_t port_ = 0;
    asio::io_context context_{1};
    tcp::acceptor acceptor_{context_};
    std::thread thread_;
};

Result<std::unique_ptr<HealthServer>> HealthServer::start(HealthServerOptions options,
                                                          const base::metrics::Registry& registry,
                                                          HealthReport report) {
    try {
        auto impl = std::make_unique<Impl>(std::move(options), registry, std::move(report));
        KAAS_TRY(impl->start());
        return std::unique_ptr<HealthServer>(new HealthServer(std::move(impl)));
    } catch (const std::runtime_error& error) {  // of Asio or std::thread, both system errors
        return fail(ErrorCode::kSystem, fmt::format("health port: {}", error.what()));
    }
}

HealthServer::HealthServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HealthServer::~HealthServer() = default;

std::uint16_t HealthServer::port() const { return impl_->port(); }

}  // namespace kaas::telemetry
