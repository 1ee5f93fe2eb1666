#include "broker/peers/transaction_peers.h"

#include <utility>
#include <vector>

namespace kaas::broker {

TransactionPeers::TransactionPeers(base::Executor& link, const client::Channel::Options& channel)
    : link_(link),
      markers_([this](auto to, const auto& request, auto done) {
          marker_calls_.call<wire::WriteTxnMarkersRequest>(to, request, std::move(done));
      }),
      verification_([this](auto to, const auto& request, auto done) {
          verification_calls_.call<wire::AddPartitionsToTxnRequest>(to, request, std::move(done));
      }),
      marker_calls_(channel),
      verification_calls_(channel) {}

void TransactionPeers::apply(catalog::ImagePtr next) {
    link_.post([this, next = std::move(next)] {
        marker_calls_.apply(*next);
        verification_calls_.apply(*next);
    });
}

void TransactionPeers::end() {
    marker_calls_.end();
    verification_calls_.end();
}

void TransactionPeers::send_marker(base::BrokerId to, const storage::Marker& marker,
                                   coordinator::TransactionPartition partition,
                                   coordinator::Done<wire::ErrorCode> written) {
    link_.post([this, to, marker, partition = std::move(partition),
                written = std::move(written)]() mutable {
        markers_.send(to, marker, std::move(partition), std::move(written));
    });
}

void TransactionPeers::verify(base::BrokerId to, VerificationRequest request,
                              coordinator::Done<std::vector<wire::ErrorCode>> done) {
    link_.post([this, to, request = std::move(request), done = std::move(done)]() mutable {
        verification_.ask(to, std::move(request), std::move(done));
    });
}

}  // namespace kaas::broker
