#include "broker/errors.h"

namespace kaas::broker {

using W = wire::ErrorCode;

wire::ErrorCode to_wire(storage::ErrorCode code) {
    using S = storage::ErrorCode;
    switch (code) {
        case S::kNotFound:
        case S::kExists:
        case S::kLocked:
        case S::kNoSpace:
        case S::kTooManyOpen:
        case S::kIo:
        case S::kCorrupt:
        case S::kUnwritable: return W::kKafkaStorageError;
        case S::kFenced:
        case S::kClosed: return W::kNotLeaderOrFollower;
        case S::kStalled: return W::kRequestTimedOut;
        case S::kWouldBlock: return W::kUnknownServerError;  // never leaves the handler that asked
        case S::kWrongEpoch: return W::kFencedLeaderEpoch;
        case S::kUnknownEpoch: return W::kUnknownLeaderEpoch;
        case S::kOffsetOutOfRange: return W::kOffsetOutOfRange;
        case S::kOutOfOrderSequence: return W::kOutOfOrderSequenceNumber;
        case S::kInvalidProducerEpoch: return W::kInvalidProducerEpoch;
        case S::kInvalidTxnState: return W::kInvalidTxnState;
        case S::kTransactionCoordinatorFenced: return W::kTransactionCoordinatorFenced;
        case S::kInvalidRecord: return W::kInvalidRecord;
        case S::kUnknownCodec: return W::kUnknownServerError;  // as Apache: nobody foresaw it there
        case S::kCorruptBatch: return W::kCorruptMessage;
        case S::kTooLarge: return W::kMessageTooLarge;
        case S::kInvalidTimestamp: return W::kInvalidTimestamp;
    }
    return W::kUnknownServerError;
}

wire::ErrorCode to_wire(cluster::ErrorCode code) {
    using C = cluster::ErrorCode;
    switch (code) {
        case C::kTopicAlreadyExists: return W::kTopicAlreadyExists;
        case C::kInvalidTopic: return W::kInvalidTopicException;
        case C::kInvalidPartitions: return W::kInvalidPartitions;
        case C::kInvalidReplicationFactor: return W::kInvalidReplicationFactor;
        case C::kInvalidReplicaAssignment: return W::kInvalidReplicaAssignment;
        case C::kInvalidConfig: return W::kInvalidConfig;
        case C::kInvalidRequest: return W::kInvalidRequest;
        case C::kUnknownTopicOrPartition: return W::kUnknownTopicOrPartition;
        case C::kUnknownTopicId: return W::kUnknownTopicId;
        case C::kPolicyViolation: return W::kPolicyViolation;
        case C::kPreferredLeaderNotAvailable: return W::kPreferredLeaderNotAvailable;
        case C::kEligibleLeadersNotAvailable: return W::kEligibleLeadersNotAvailable;
        case C::kElectionNotNeeded: return W::kElectionNotNeeded;
        case C::kNoReassignmentInProgress: return W::kNoReassignmentInProgress;
        case C::kBrokerIdNotRegistered: return W::kBrokerIdNotRegistered;
        case C::kNotController:
        case C::kFenced:
        case C::kSuperseded: return W::kNotController;
        case C::kRequestTimedOut: return W::kRequestTimedOut;
        case C::kStorage: return W::kKafkaStorageError;
        case C::kWrongCluster: return W::kInconsistentClusterId;
        case C::kDuplicateBroker: return W::kDuplicateBrokerRegistration;
        case C::kStaleBroker: return W::kStaleBrokerEpoch;
        case C::kMalformed: return W::kInvalidRequest;
        case C::kUnfitVolume: return W::kInvalidRegistration;
        case C::kInUse:
        case C::kNewerFormat: return W::kUnknownServerError;  // only a start can fail so
    }
    return W::kUnknownServerError;
}

wire::ErrorCode to_wire(cluster::Hosting state) {
    using H = cluster::Hosting;
    switch (state) {
        case H::kServing: return W::kNone;
        case H::kOpening:
        case H::kNotHere: return W::kNotLeaderOrFollower;
        case H::kOffline: return W::kKafkaStorageError;
        case H::kUnknown: return W::kUnknownTopicOrPartition;
    }
    return W::kUnknownServerError;
}

}  // namespace kaas::broker
