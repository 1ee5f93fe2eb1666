#pragma once

#include "wire/error_code.h"

#include <functional>

namespace kaas::coordinator {

using wire::ErrorCode;

/// Takes the answer to a request. Runs once, on the coordinators' loop: after all that the answer
/// tells of is durable, at once when it tells of nothing.
template <class Answer>
using Done = std::move_only_function<void(Answer)>;

}  // namespace kaas::coordinator
