#include "broker/handlers/registry.h"

#include "broker/handlers/add_offsets_to_txn.h"
#include "broker/handlers/add_partitions_to_txn.h"
#include "broker/handlers/alter_replica_log_dirs.h"
#include "broker/handlers/api_versions.h"
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
#include "broker/handlers/describe_topic_partitions.h"
#include "broker/handlers/describe_transactions.h"
#include "broker/handlers/end_txn.h"
#include "broker/handlers/fetch.h"
#include "broker/handlers/find_coordinator.h"
#include "broker/handlers/heartbeat.h"
#include "broker/handlers/init_producer_id.h"
#include "broker/handlers/join_group.h"
#include "broker/handlers/leave_group.h"
#include "broker/handlers/list_groups.h"
#include "broker/handlers/list_offsets.h"
#include "broker/handlers/list_transactions.h"
#include "broker/handlers/metadata.h"
#include "broker/handlers/offset_commit.h"
#include "broker/handlers/offset_delete.h"
#include "broker/handlers/offset_fetch.h"
#include "broker/handlers/offset_for_leader_epoch.h"
#include "broker/handlers/produce.h"
#include "broker/handlers/sync_group.h"
#include "broker/handlers/txn_offset_commit.h"
#include "broker/handlers/write_txn_markers.h"
#include "broker/refusals.h"
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

constexpr Handler kHandlers[] = {
    handler<&produce>(),
    handler<&fetch>(),
    handler<&list_offsets>(),
    handler<&metadata>(),
    handler<&offset_commit>(),
    handler<&offset_fetch>(),
    handler<&find_coordinator>(),
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
    handler<&offset_delete>(),
    handler<&describe_cluster>(),
    handler<&describe_producers>(),
    handler<&describe_transactions>(),
    handler<&list_transactions>(),
    handler<&describe_topic_partitions>(),
};
static_assert(std::ranges::is_sorted(kHandlers, {}, &Handler::key));

}  // namespace

std::span<const Handler> handlers() { return kHandlers; }

const Handler* find_handler(std::int16_t key) {
    auto at =
        std::ranges::lower_bound(kHandlers, static_cast<wire::ApiKey>(key), {}, &Handler::key);
    return at != std::end(kHandlers) && at->key == static_cast<wire::ApiKey>(key) ? &*at : nullptr;
}

}  // namespace kaas::broker
