#include "cluster/error.h"

#include "catalog/error.h"
#include "storage/error.h"

#include <expected>
#include <utility>

namespace kaas::cluster {

std::unexpected<Error> failed(storage::Error error) {
    const bool fenced = error.code == storage::ErrorCode::kFenced;
    return fail(fenced ? ErrorCode::kFenced : ErrorCode::kStorage, std::move(error.context));
}

std::unexpected<Error> failed(catalog::Error error) {
    switch (error.code) {
        case catalog::ErrorCode::kNewerFormat:
            return fail(ErrorCode::kNewerFormat, std::move(error.context));
        case catalog::ErrorCode::kSuperseded:
            return fail(ErrorCode::kSuperseded, std::move(error.context));
        case catalog::ErrorCode::kMalformed:
        case catalog::ErrorCode::kStorage: break;
    }
    return fail(ErrorCode::kStorage, std::move(error.context));
}

}  // namespace kaas::cluster
