#include "broker/controller_calls.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/ids.h"
#include "broker/call.h"
#include "catalog/broker_identity.h"
#include "client/channel.h"
#include "client/peers.h"
#include "cluster/admin.h"
#include "cluster/controller.h"
#include "cluster/error.h"
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
#include <chrono>
#include <cstddef>
#include <cstdint>
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

/// One request on its way. Thread: the link's reactor.
template <class Request>
class ControllerCalls::Asking : public std::enable_shared_from_this<Asking<Request>> {
public:
    using Answered =
        std::move_only_function<void(cluster::Result<const typename Request::Response*>)>;
    Asking(const Options& options, std::shared_ptr<const Request> request,
           base::Clock::Steady deadline, std::move_only_function<void()> here, Answered answered)
        : options_(options),
          request_(std::move(request)),
          deadline_(deadline),
          here_(std::move(here)),
          answered_(std::move(answered)),
          timer_(*options.link) {}

    void attempt() {
        if (options_.controller->reigning()) return here_();
        const auto left = std::chrono::ceil<milliseconds>(deadline_ - options_.clock->now());
        if (left <= milliseconds(0)) {
            return answered_(cluster::fail(cluster::ErrorCode::kRequestTimedOut,
                                           "The controller could not be reached in time."));
        }
        const auto where = options_.address();
        if (!where) return again();
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
    const std::shared_ptr<const Request> request_;
    const base::Clock::Steady deadline_;
    std::move_only_function<void()> here_;
    Answered answered_;
    net::ReactorTimer timer_;
};

template <class Request>
void ControllerCalls::ask(
    std::shared_ptr<const Request> request, base::Clock::Steady deadline,
    std::move_only_function<void()> here,
    std::move_only_function<void(cluster::Result<const typename Request::Response*>)> answered) {
    const auto latest = std::min(deadline, options_.clock->now() + kLongest);
    options_.link->post([this, request = std::move(request), latest, here = std::move(here),
                         answered = std::move(answered)]() mutable {
        std::make_shared<Asking<Request>>(options_, std::move(request), latest, std::move(here),
                                          std::move(answered))
            ->attempt();
    });
}

void ControllerCalls::forward(CallPtr call, std::function<void(CallPtr)> serve_here) {
    auto request = std::make_shared<wire::EnvelopeRequest>();
    request->request_data = wire::Bytes::borrow(call->frame().bytes);  // lives as long as the call
    const auto principal = serialized_principal(call->peer().principal);
    request->request_principal = wire::Bytes(base::ByteView(principal));
    request->client_host_address = wire::Bytes(base::as_bytes(call->peer().address));
    auto& home = call->home();
    ask<wire::EnvelopeRequest>(
        std::move(request), base::Clock::Steady::max(),
        [call, &home, serve_here = std::move(serve_here)]() mutable {
            home.post([call = std::move(call), serve_here = std::move(serve_here)]() mutable {
                serve_here(std::move(call));
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
    auto shared =
        std::make_shared<cluster::Reply<std::vector<cluster::CreatedTopic>>>(std::move(reply));
    ask<wire::EnvelopeRequest>(
        std::move(envelope), deadline,
        [this, request, shared]() mutable {
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
        [this, count, shared] {
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
