#pragma once

#include "base/result.h"
#include "catalog/error.h"
#include "storage/error.h"

#include <string>
#include <utility>

namespace kaas::cluster {

/// Why a request to the controller, or a start, failed. The context is the sentence that the asker
/// reads; where Apache has one, it is Apache's.
enum class ErrorCode {
    // Answers to administrative requests, named as Kafka's.
    kTopicAlreadyExists,
    kInvalidTopic,
    kInvalidPartitions,
    kInvalidReplicationFactor,
    kInvalidReplicaAssignment,
    kInvalidConfig,
    kInvalidRequest,
    kUnknownTopicOrPartition,
    kUnknownTopicId,
    kPolicyViolation,
    kPreferredLeaderNotAvailable,
    kEligibleLeadersNotAvailable,
    kElectionNotNeeded,
    kNoReassignmentInProgress,
    kBrokerIdNotRegistered,
    kNotController,    ///< This process is not, or no longer, the controller: ask again elsewhere.
    kRequestTimedOut,  ///< Done or not, the client's time is up; the change may stand.

    // Starting.
    kInUse,         ///< Another live process holds the directory; the context names its pid.
    kWrongCluster,  ///< The volume, or the controller, belongs to another cluster.
    kNewerFormat,   ///< A later version of kaas has written here.
    kUnfitVolume,   ///< A volume does not do what fencing needs; the context says what to do.

    // Between brokers and the controller.
    kDuplicateBroker,  ///< Another live process has this broker's id.
    kStaleBroker,      ///< The controller does not know this life of the broker: register it.
    kMalformed,        ///< Not what another kaas of this version says.

    // Losing.
    kFenced,      ///< This incarnation or controller epoch is over, for ever.
    kSuperseded,  ///< Somebody else got there first: try again with a newer epoch.
    kStorage,     ///< The volume failed; the context says how. Nothing is proven.
};

using Error = base::Error<ErrorCode>;

template <class T>
using Result = base::Result<T, ErrorCode>;

/// What a failure of the volume means here: kFenced stays what it is, for whoever meets it must
/// end; everything else is kStorage.
[[nodiscard]] std::unexpected<Error> failed(storage::Error error);
[[nodiscard]] std::unexpected<Error> failed(catalog::Error error);

[[nodiscard]] inline std::unexpected<Error> fail(ErrorCode code, std::string context) {
    return base::fail(code, std::move(context));
}

}  // namespace kaas::cluster
