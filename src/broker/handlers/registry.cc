#include "broker/handlers/registry.h"

#include "broker/handlers/add_offsets_to_txn.h"
#include "broker/handlers/add_partitions_to_txn.h"
#include "broker/handlers/allocate_producer_ids.h"
#include "broker/handlers/alter_partition_reassignments.h"
#include "broker/handlers/alter_replica_log_dirs.h"
#include "broker/handlers/api_versions.h"
#include "broker/handlers/broker_heartbeat.h"
#include "broker/handlers/broker_registration.h"
#include "broker/handlers/create_partitions.h"
#include "broker/handlers/create_topics.h"
#include "broker/handlers/delete_groups.h"
#include "broker/handlers/delete_records.h"
#include "broker/handlers/delete_topics.h"
#include "broker/handlers/describe_cluster.h"
#include "broker/handlers/describe_configs.h"
#include "broker/handlers/describe_groups.h"
#include "broker/handlers/describe_log_dirs.h"
#include "broker/handlers/describe_producers.h"
#include "broker/handlers/describe_quorum.h"
#include "broker/handlers/describe_topic_partitions.h"
#include "broker/handlers/describe_transactions.h"
#include "broker/handlers/elect_leaders.h"
#include "broker/handlers/end_txn.h"
#include "broker/handlers/envelope.h"
#include "broker/handlers/fetch.h"
#include "broker/handlers/find_coordinator.h"
#include "broker/handlers/heartbeat.h"
#include "broker/handlers/init_producer_id.h"
#include "broker/handlers/join_group.h"
#include "broker/handlers/leave_group.h"
#include "broker/handlers/list_groups.h"
#include "broker/handlers/list_offsets.h"
#include "broker/handlers/list_partition_reassignments.h"
#include "broker/handlers/list_transactions.h"
#include "broker/handlers/metadata.h"
#include "broker/handlers/offset_commit.h"
#include "broker/handlers/offset_delete.h"
#include "broker/handlers/offset_fetch.h"
#include "broker/handlers/offset_for_leader_epoch.h"
#include "broker/handlers/produce.h"
#include "broker/handlers/sasl_authenticate.h"
#include "broker/handlers/sasl_handshake.h"
#include "broker/handlers/sync_group.h"
#include "broker/handlers/txn_offset_commit.h"
#include "broker/handlers/unregister_broker.h"
#include "broker/handlers/write_txn_markers.h"
#include "broker/refusals.h"
#include "catalog/broker_identity.h"
#include "net/exchange.h"
#include "wire/message.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace kaas::broker {
namespace {

template <class Request, class Answer>
struct Signature {
    using RequestType = Request;
    static constexpr bool kAnswersAtOnce = !std::is_void_v<Answer>;
};
template <class Answer, class Request>
Signature<Request, Answer> signature_of(Answer (*)(const Call&, const Request&));
template <class Request>
Signature<Request, void> signature_of(void (*)(CallPtr, Request));

/// A handler is either `Response f(const Call&, const Request&)`, which answers at once, or
/// `void f(CallPtr, Request)`, which answers through the call, now or later.
template <auto Function>
void serve(CallPtr call, wire::Reader& in) {
    using Form = decltype(signature_of(Function));
    auto request = wire::decode<typename Form::RequestType>(in, call->version());
    if (!request) {
        call->refuse(Refusal::kBody, request.error().context);
        return;
    }
    if constexpr (Form::kAnswersAtOnce) {
        call->answer(Function(*call, *request));
    } else {
        Function(std::move(call), std::move(*request));
    }
}

template <auto Function>
constexpr Handler handler() {
    using Request = typename decltype(signature_of(Function))::RequestType;
    return {Request::kKey, &serve<Function>};
}

/// Of a request that asks where to go. A broker that is cut off does not know, and to any answer
/// some clients ask it again, for ever; a closed connection makes them ask another.
template <auto Function>
void guide(CallPtr call, wire::Reader& in) {
    const auto& node = call->services().node;
    if (node.anything_away() && node.away()->cut_off) {
        return call->close("this broker is cut off from its cluster");
    }
    serve<Function>(std::move(call), in);
}

template <auto Function>
constexpr Handler guiding() {
    return {handler<Function>().key, &guide<Function>};
}

constexpr std::int16_t kAddPartitionsOfBrokersFrom = 4;  // KIP-890

constexpr Handler kClientHandlers[] = {
    handler<&produce>(),
    handler<&fetch>(),
    handler<&list_offsets>(),
    guiding<&metadata>(),
    handler<&offset_commit>(),
    handler<&offset_fetch>(),
    guiding<&find_coordinator>(),
    handler<&join_group>(),
    handler<&heartbeat>(),
    handler<&leave_group>(),
    handler<&sync_group>(),
    handler<&describe_groups>(),
    handler<&list_groups>(),
    handler<&api_versions>(),
    handler<&create_topics>(),
    handler<&delete_topics>(),
    handler<&delete_records>(),
    handler<&init_producer_id>(),
    handler<&offset_for_leader_epoch>(),
    handler<&add_partitions_to_txn>(),
    handler<&add_offsets_to_txn>(),
    handler<&end_txn>(),
    handler<&write_txn_markers>(),
    handler<&txn_offset_commit>(),
    handler<&describe_configs>(),
    handler<&alter_replica_log_dirs>(),
    handler<&describe_log_dirs>(),
    handler<&create_partitions>(),
    handler<&delete_groups>(),
    handler<&elect_leaders>(),
    handler<&alter_partition_reassignments>(),
    handler<&list_partition_reassignments>(),
    handler<&offset_delete>(),
    handler<&describe_quorum>(),
    guiding<&describe_cluster>(),
    handler<&describe_producers>(),
    handler<&unregister_broker>(),
    handler<&describe_transactions>(),
    handler<&list_transactions>(),
    guiding<&describe_topic_partitions>(),
};
static_assert(std::ranges::is_sorted(kClientHandlers, {}, &Handler::key));

constexpr Handler kBrokerHandlers[] = {
    handler<&list_offsets>(),      handler<&sasl_handshake>(),
    handler<&api_versions>(),      handler<&add_partitions_to_txn>(),
    handler<&write_txn_markers>(), handler<&sasl_authenticate>(),
    handler<&envelope>(),          handler<&broker_registration>(),
    handler<&broker_heartbeat>(),  handler<&allocate_producer_ids>(),
};
static_assert(std::ranges::is_sorted(kBrokerHandlers, {}, &Handler::key));

}  // namespace

Audience audience_of(const net::Peer& peer) {
    return peer.listener == catalog::kInternalListener ? Audience::kBrokers : Audience::kClients;
}

std::span<const Handler> handlers(Audience audience) {
    if (audience == Audience::kBrokers) return kBrokerHandlers;
    return kClientHandlers;
}

const Handler* find_handler(std::int16_t key, Audience audience) {
    const auto wanted = static_cast<wire::ApiKey>(key);
    const auto served = handlers(audience);
    const auto at = std::ranges::lower_bound(served, wanted, {}, &Handler::key);
    return at != served.end() && at->key == wanted ? &*at : nullptr;
}

wire::VersionRange versions(const Handler& handler, Audience audience) {
    auto range = wire::api(handler.key).versions;
    // Older ones are a client's, who may not name the coordinators' topics.
    if (audience == Audience::kBrokers && handler.key == wire::ApiKey::kAddPartitionsToTxn)
        range.min = kAddPartitionsOfBrokersFrom;
    return range;
}

bool is_broker(const net::Peer& peer) { return peer.principal == catalog::kBrokerPrincipal; }

bool is_open_to(const net::Peer& peer, wire::ApiKey key) {
    if (audience_of(peer) == Audience::kClients || is_broker(peer)) return true;
    return key == wire::ApiKey::kApiVersions || key == wire::ApiKey::kSaslHandshake ||
           key == wire::ApiKey::kSaslAuthenticate;
}

}  // namespace kaas::broker
