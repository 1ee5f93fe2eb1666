#include "broker/controller_calls.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "broker/call.h"
#include "broker/envelope_exchange.h"
#include "broker/errors.h"
#include "broker/handlers/registry.h"
#include "catalog/broker_identity.h"
#include "client/channel.h"
#include "client/peers.h"
#include "cluster/admin.h"
#include "cluster/controller.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"
#include "cluster/link_wire.h"
#include "net/reactor.h"
#include "wire/api.h"
#include "wire/error_code.h"
#include "wire/message.h"
#include "wire/messages/allocate_producer_ids.h"
#include "wire/messages/create_topics.h"
#include "wire/messages/default_principal_data.h"
#include "wire/messages/envelope.h"
#include "wire/messages/response_header.h"
#include "wire/reader.h"
#include "wire/types.h"
#include "wire/writer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using std::chrono::milliseconds;
using wire::ErrorCode;

/// Between attempts: a controller is replaced within a second.
constexpr milliseconds kPause{20};
/// As Apache's `request.timeout.ms` of a broker, for what says no time of its own.
constexpr std::chrono::seconds kLongest{30};
constexpr std::int16_t kCreateTopicsVersion = 7;

/// `User:name` as Apache's `DefaultKafkaPrincipalBuilder.serialize` has it: a version, then the
/// record.
std::vector<std::byte> serialized_principal(std::string_view principal) {
    const auto colon = principal.find(':');
    wire::DefaultPrincipalData data;
    data.type = wire::String(principal.substr(0, colon));
    data.name = wire::String(colon == std::string_view::npos ? std::string_view()
                                                             : principal.substr(colon + 1));
    wire::Writer out;
    out.int16(wire::DefaultPrincipalData::kMaxVersion);
    [[maybe_unused]] const auto fits =
        wire::encode(out, data, wire::DefaultPrincipalData::kMaxVersion);
    const auto bytes = out.view();
    return {bytes.begin(), bytes.end()};
}

/// What identifies an attempt in an envelope's tagged field.
constexpr std::size_t kAttemptBytes = sizeof(base::Uuid::bytes) + 1;

void set_attempt(wire::EnvelopeRequest& envelope, const cluster::Attempt& attempt) {
    std::array<std::byte, kAttemptBytes> bytes{};
    std::memcpy(bytes.data(), attempt.request.bytes.data(), attempt.request.bytes.size());
    bytes.back() = static_cast<std::byte>(attempt.again);
    envelope.unknown_tags = {};
    envelope.unknown_tags.add(cluster::kLinkTag, wire::Bytes(base::ByteView(bytes)));
}
void set_asked_again(wire::EnvelopeRequest& envelope) {
    auto attempt = attempt_of(envelope);
    attempt.again = true;
    set_attempt(envelope, attempt);
}
/// A block more does no harm.
void set_asked_again(wire::AllocateProducerIdsRequest& /*request*/) {}

cluster::Result<std::vector<cluster::CreatedTopic>> created_topics(
    const wire::EnvelopeResponse& envelope) {
    const auto malformed = [](const std::string& why) {
        return cluster::fail(cluster::ErrorCode::kMalformed, why);
    };
    if (envelope.error_code != ErrorCode::kNone || !envelope.response_data) {
        return malformed(std::string(wire::to_string(envelope.error_code)));
    }
    wire::Reader in(envelope.response_data->view());
    const auto header = wire::decode<wire::ResponseHeader>(
        in, wire::api(wire::ApiKey::kCreateTopics).response_header(kCreateTopicsVersion));
    if (!header) return malformed(header.error().context);
    const auto answer = wire::decode<wire::CreateTopicsResponse>(in, kCreateTopicsVersion);
    if (!answer) return malformed(answer.error().context);
    std::vector<cluster::CreatedTopic> topics;
    for (const auto& topic : answer->topics) {
        auto& created = topics.emplace_back();
        created.name = topic.name.str();
        created.id = base::TopicId{topic.topic_id};
        if (topic.error_code == ErrorCode::kNone) continue;
        created.outcome =
            cluster::fail(topic.error_code == ErrorCode::kTopicAlreadyExists
                              ? cluster::ErrorCode::kTopicAlreadyExists
                              : cluster::ErrorCode::kInvalidRequest,
                          topic.error_message ? topic.error_message->str() : std::string());
    }
    return topics;
}

}  // namespace

cluster::Attempt attempt_of(const wire::EnvelopeRequest& envelope) {
    cluster::Attempt attempt;
    const auto bytes = base::as_bytes(cluster::link_text(envelope));
    if (bytes.size() != kAttemptBytes) return attempt;
    std::memcpy(attempt.request.bytes.data(), bytes.data(), attempt.request.bytes.size());
    attempt.again = bytes.back() != std::byte{0};
    return attempt;
}

/// One request on its way. Thread: the link's reactor.
template <class Request>
class ControllerCalls::Asking : public std::enable_shared_from_this<Asking<Request>> {
public:
    using Answered =
        std::move_only_function<void(cluster::Result<const typename Request::Response*>)>;
    Asking(const Options& options, std::shared_ptr<Request> request, base::Clock::Steady deadline,
           std::move_only_function<void(bool again)> here, Answered answered)
        : options_(options),
          request_(std::move(request)),
          deadline_(deadline),
          here_(std::move(here)),
          answered_(std::move(answered)),
          timer_(*options.link) {}

    void attempt() {
        if (options_.controller->reigning()) return here_(asked_);
        const auto left = std::chrono::ceil<milliseconds>(deadline_ - options_.clock->now());
        if (left <= milliseconds(0)) {
            return answered_(cluster::fail(cluster::ErrorCode::kRequestTimedOut,
                                           "The controller could not be reached in time."));
        }
        const auto where = options_.address();
        if (!where) return again();
        if (std::exchange(asked_, true)) set_asked_again(*request_);
        options_.peers->at(where->host, where->port)
            .template call<Request>(
                *request_, Request::kMaxVersion, left,
                [self = this->shared_from_this()](auto answer) {
                    if (!answer || (*answer)->error_code == ErrorCode::kNotController) {
                        return self->again();
                    }
                    self->answered_(*answer);
                });
    }

private:
    void again() {
        timer_.arm(kPause, [self = this->shared_from_this()] { self->attempt(); });
    }

    const Options& options_;
    const std::shared_ptr<Request> request_;
    const base::Clock::Steady deadline_;
    std::move_only_function<void(bool again)> here_;
    Answered answered_;
    bool asked_ = false;  ///< somebody, who may have done it
    net::ReactorTimer timer_;
};

template <class Request>
void ControllerCalls::ask(
    std::shared_ptr<Request> request, base::Clock::Steady deadline,
    std::move_only_function<void(bool again)> here,
    std::move_only_function<void(cluster::Result<const typename Request::Response*>)> answered) {
    const auto latest = std::min(deadline, options_.clock->now() + kLongest);
    options_.link->post([this, request = std::move(request), latest, here = std::move(here),
                         answered = std::move(answered)]() mutable {
        std::make_shared<Asking<Request>>(options_, std::move(request), latest, std::move(here),
                                          std::move(answered))
            ->attempt();
    });
}

void ControllerCalls::forward(CallPtr call) {
    auto request = std::make_shared<wire::EnvelopeRequest>();
    request->request_data = wire::Bytes::borrow(call->frame().bytes);  // lives as long as the call
    const auto principal = serialized_principal(call->peer().principal);
    request->request_principal = wire::Bytes(base::ByteView(principal));
    request->client_host_address = wire::Bytes(base::as_bytes(call->peer().address));
    set_attempt(*request, call->attempt());
    auto& home = call->home();
    ask<wire::EnvelopeRequest>(
        std::move(request), base::Clock::Steady::max(),
        [call, &home](bool again) mutable {
            home.post([call = std::move(call), again]() mutable {
                if (again) call->is_asked_again();
                wire::Reader in(call->frame().bytes);
                const auto header = wire::decode_request_header(in);  // was good before
                find_handler(header->request_api_key, Audience::kClients)
                    ->serve(std::move(call), in);
            });
        },
        [call, &home](auto answer) mutable {
            std::vector<std::byte> bytes;
            std::string fault;
            if (!answer) {
                fault = answer.error().context;
            } else if ((*answer)->error_code != ErrorCode::kNone || !(*answer)->response_data) {
                fault = "the controller does not take it: " +
                        std::string(wire::to_string((*answer)->error_code));
            } else {
                const auto view = (*answer)->response_data->view();
                bytes.assign(view.begin(), view.end());
            }
            home.post([call = std::move(call), bytes = std::move(bytes),
                       fault = std::move(fault)]() mutable {
                if (!fault.empty()) return call->close(fault);
                call->answer_with(bytes);
            });
        });
}

bool ControllerCalls::ask_next(const CallPtr& call, const cluster::Error& why) {
    if (to_wire(why.code) != ErrorCode::kNotController || options_.link == nullptr) return false;
    if (auto* envelope = call->envelope()) {
        envelope->refuse(ErrorCode::kNotController);  // the broker that sent it asks again
        return true;
    }
    call->is_asked_again();
    forward(call);
    return true;
}

void ControllerCalls::create_topics(cluster::CreateTopics request,
                                    cluster::Reply<std::vector<cluster::CreatedTopic>> reply) {
    if (!elsewhere()) {
        return options_.controller->create_topics(std::move(request), std::move(reply));
    }
    const auto now = options_.clock->now();
    const auto deadline = std::min(request.deadline, now + kLongest);
    wire::CreateTopicsRequest create;
    create.timeout_ms =
        static_cast<std::int32_t>(std::chrono::duration_cast<milliseconds>(deadline - now).count());
    for (const auto& topic : request.topics) {
        auto& asked = create.topics.emplace_back();
        asked.name = wire::String(topic.name);
        asked.num_partitions = topic.partitions;
        asked.replication_factor = topic.replication_factor;
    }
    wire::Writer frame;
    auto encoded = wire::begin_request(frame, wire::api(wire::ApiKey::kCreateTopics),
                                       kCreateTopicsVersion, 0, wire::String("kaas"));
    if (encoded) encoded = wire::encode(frame, create, kCreateTopicsVersion);
    if (!encoded) {
        return std::move(reply)(
            cluster::fail(cluster::ErrorCode::kInvalidTopic, encoded.error().context));
    }
    constexpr std::size_t kLengthPrefix = 4;
    auto envelope = std::make_shared<wire::EnvelopeRequest>();
    envelope->request_data = wire::Bytes(frame.view().subspan(kLengthPrefix));
    const auto principal = serialized_principal(catalog::kBrokerPrincipal);
    envelope->request_principal = wire::Bytes(base::ByteView(principal));
    request.attempt.request = base::Uuid::random();
    set_attempt(*envelope, request.attempt);
    auto shared =
        std::make_shared<cluster::Reply<std::vector<cluster::CreatedTopic>>>(std::move(reply));
    ask<wire::EnvelopeRequest>(
        std::move(envelope), deadline,
        [this, request, shared](bool again) mutable {
            request.attempt.again = again;
            options_.controller->create_topics(std::move(request), std::move(*shared));
        },
        [shared](auto answer) mutable {
            if (!answer) return std::move(*shared)(std::unexpected(answer.error()));
            std::move (*shared)(created_topics(**answer));
        });
}

void ControllerCalls::allocate_producer_ids(std::int32_t count,
                                            cluster::Reply<cluster::ProducerIdBlock> reply) {
    if (!elsewhere()) {
        return options_.controller->allocate_producer_ids(count, std::move(reply));
    }
    auto request = std::make_shared<wire::AllocateProducerIdsRequest>();
    request->broker_id = options_.self.value();
    auto shared = std::make_shared<cluster::Reply<cluster::ProducerIdBlock>>(std::move(reply));
    ask<wire::AllocateProducerIdsRequest>(
        std::move(request), base::Clock::Steady::max(),
        [this, count, shared](bool /*again*/) {
            options_.controller->allocate_producer_ids(count, std::move(*shared));
        },
        [shared](auto answer) {
            if (!answer) return std::move(*shared)(std::unexpected(answer.error()));
            const auto& block = **answer;
            if (block.error_code != ErrorCode::kNone) {
                return std::move(*shared)(
                    cluster::fail(cluster::ErrorCode::kNotController,
                                  std::string(wire::to_string(block.error_code))));
            }
            std::move (*shared)(cluster::ProducerIdBlock{base::ProducerId(block.producer_id_start),
                                                         block.producer_id_len});
        });
}

}  // namespace kaas::broker
