#include "broker/call.h"

#include "base/bytes.h"
#include "base/log.h"
#include "base/uuid.h"
#include "broker/envelope_exchange.h"
#include "cluster/admin.h"
#include "wire/writer.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kaas::broker {

Call::Call(Services& services, ReactorState& state, wire::RequestHeader header,
           std::unique_ptr<net::Exchange> exchange)
    : services_(services),
      state_(state),
      header_(std::move(header)),
      exchange_(std::move(exchange)),
      began_(services.clock.now()) {}

Call::Call(Services& services, ReactorState& state, wire::RequestHeader header,
           std::unique_ptr<EnvelopeExchange> exchange, const cluster::Attempt& attempt)
    : services_(services),
      state_(state),
      header_(std::move(header)),
      envelope_(exchange.get()),
      attempt_(attempt),
      began_(services.clock.now()) {
    exchange_ = std::move(exchange);
}

const cluster::Attempt& Call::attempt() {
    if (attempt_.request.is_zero()) attempt_.request = base::Uuid::random();
    return attempt_;
}

void Call::send(wire::Result<wire::Output> output, std::vector<storage::FileSlice> slices,
                const std::string* last) {
    if (!output) {
        base::log::error("broker", "an answer could not be encoded: {}", output.error().context);
        exchange_->close("the answer could not be encoded");
        return;
    }
    auto took = services_.clock.now() - began_;
    services_.latency_of(header_.request_api_key)
        .observe_us(std::chrono::duration_cast<std::chrono::microseconds>(took).count());
    net::Response response{std::move(*output), std::move(slices)};
    if (last != nullptr) return exchange_->respond_last(std::move(response), *last);
    exchange_->respond(std::move(response));
}

void Call::answer_with(base::ByteView response) {
    wire::Writer out(sizeof(std::int32_t) + response.size());
    out.int32(static_cast<std::int32_t>(response.size()));
    out.raw(response);
    send(out.take(), {});
}

void Call::refuse(Refusal why, const std::string& text) {
    services_.refusals.count(why);
    close(text);
}

void run_on_pool(CallPtr call, base::Executor::Work work, base::Executor::Work then) {
    auto& pool = call->services().io_pool;
    pool.post([call = std::move(call), work = std::move(work), then = std::move(then)]() mutable {
        auto& home = call->home();
        try {
            // Whatever holds the request dies on its reactor: what the work holds goes before.
            std::exchange(work, {})();
        } catch (const std::exception& thrown) {
            then = [call = std::move(call), why = std::string(thrown.what()),
                    not_run = std::move(then)] {
                call->close("its answer could not be made: " + why);
            };
        }
        call.reset();
        home.post(std::move(then));
    });
}

}  // namespace kaas::broker
