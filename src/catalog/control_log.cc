#include "catalog/control_log.h"

#include "base/ids.h"
#include "base/log.h"
#include "base/result.h"
#include "catalog/change.h"
#include "catalog/error.h"
#include "catalog/image.h"
#include "storage/epoch_log.h"
#include "storage/epoch_reader.h"
#include "storage/error.h"
#include "storage/session_check.h"
#include "storage/volume.h"

#include <boost/json/object.hpp>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace kaas::catalog {
namespace {

/// Catalog's codes say what a controller can do about a failure of storage.
Error from_storage(storage::Error error) {
    switch (error.code) {
        case storage::ErrorCode::kExists: return {ErrorCode::kSuperseded, std::move(error.context)};
        case storage::ErrorCode::kCorrupt:
        case storage::ErrorCode::kUnwritable:
            return {ErrorCode::kMalformed, std::move(error.context)};
        default: return {ErrorCode::kStorage, std::move(error.context)};
    }
}

template <class T>
Result<T> converted(storage::Result<T> result) {
    if (!result) return std::unexpected(from_storage(std::move(result).error()));
    if constexpr (std::is_void_v<T>) {
        return {};
    } else {
        return std::move(*result);
    }
}

/// Names the line's place in what is said about it.
Error located(Error error, base::ControllerEpoch epoch, std::uint32_t file, std::size_t line) {
    error.context = control_path().file(epoch.value(), file) + ", line " + std::to_string(line) +
                    ": " + error.context;
    return error;
}

Result<ImagePtr> replay(const storage::EpochState& state) {
    const base::ControllerEpoch epoch(state.epoch);
    auto picture = parse_picture(state.picture);
    if (!picture) return std::unexpected(located(std::move(picture).error(), epoch, state.file, 1));
    ImageEditor editor(**picture);
    for (std::size_t i = 0; i < state.lines.size(); ++i) {
        if (state.lines[i].kind != storage::EpochLine::Kind::kChange) continue;
        auto change = parse_change(state.lines[i].object);
        auto applied = change ? editor.apply(*change) : std::unexpected(std::move(change).error());
        if (!applied)
            return std::unexpected(located(std::move(applied).error(), epoch, state.file, i + 2));
    }
    return std::move(editor).finish();
}

/// True when the owner of the epoch has written something; a void is empty.
storage::Result<bool> is_begun(storage::Volume& volume, const std::string& path) {
    auto file = volume.open(path, storage::OpenMode::kRead);
    if (!file && file.error().code == storage::ErrorCode::kNotFound) return false;
    if (!file) return std::unexpected(std::move(file).error());
    KAAS_TRY_ASSIGN(bytes, (*file)->size());
    return bytes > 0;
}

}  // namespace

storage::EpochLogPath control_path() { return {std::string(kControlDirectory), "control"}; }

Result<base::ControllerEpoch> newest_begun(storage::Volume& volume, base::ControllerEpoch from) {
    for (auto epoch = from; epoch > base::ControllerEpoch(0); epoch = epoch - 1) {
        auto begun = is_begun(volume, control_path().file(epoch.value(), 1));
        if (!begun) return std::unexpected(from_storage(std::move(begun).error()));
        if (*begun) return epoch;
    }
    return base::ControllerEpoch(0);
}

Result<ControlLog> ControlLog::create(storage::Volume& volume, base::ControllerEpoch epoch,
                                      const Image& image) {
    auto log = storage::EpochLog::create(volume, control_path(), epoch.value(), to_picture(image));
    if (!log) return std::unexpected(from_storage(std::move(log).error()));
    return ControlLog(volume, std::move(*log));
}

Result<void> ControlLog::commit(std::span<const Change> changes) {
    std::vector<boost::json::object> lines;
    lines.reserve(changes.size());
    for (const auto& change : changes) lines.push_back(to_json(change));
    KAAS_TRY(converted(log_.append(lines)));
    return converted(log_.sync());
}

Result<bool> ControlLog::compact(const Image& image) {
    if (!log_.wants_roll()) return false;
    KAAS_TRY(converted(log_.roll(to_picture(image))));
    return true;
}

Result<void> ControlLog::settle() {
    if (!log_.wants_synced_line()) return {};
    return converted(log_.append_synced());
}

Result<void> ControlLog::release() { return converted(log_.release()); }

void ControlLog::remove_superseded(storage::SessionCheck& session) {
    auto good = log_.remove_superseded(session);
    auto names = volume_->list(std::string(kControlDirectory));
    for (std::size_t i = 0; good && names && i < names->size(); ++i) {
        auto epoch = storage::parse_epoch_name((*names)[i]);
        if (!epoch || *epoch >= log_.epoch()) continue;
        good = storage::remove_epoch(*volume_, control_path(), *epoch, session);
    }
    if (!good) base::log::warn("catalog", "old control logs stay: {}", good.error().context);
    if (!names) base::log::warn("catalog", "old control logs stay: {}", names.error().context);
}

Result<ImagePtr> glimpse_control(storage::Volume& volume, base::ControllerEpoch epoch) {
    auto state = storage::read_epoch(volume, control_path(), epoch.value());
    if (!state && state.error().code == storage::ErrorCode::kNotFound) return nullptr;
    if (!state) return std::unexpected(from_storage(std::move(state).error()));
    if (!*state) return nullptr;
    return replay(**state);
}

Result<std::optional<TakenControl>> take_over_control(storage::Volume& volume,
                                                      base::ControllerEpoch own) {
    auto taken = storage::take_over(control_path(),
                                    storage::candidates_below(volume, own.value(), 1, false));
    if (!taken) return std::unexpected(from_storage(std::move(taken).error()));
    if (!*taken) return std::nullopt;
    const auto& state = (*taken)->state;
    KAAS_TRY_ASSIGN(image, replay(state));
    return TakenControl{base::ControllerEpoch(state.epoch), std::move(image)};
}

}  // namespace kaas::catalog
