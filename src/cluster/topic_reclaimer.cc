#include "cluster/topic_reclaimer.h"

#include "base/ids.h"
#include "base/result.h"
#include "catalog/topic_name.h"
#include "storage/error.h"
#include "storage/session_check.h"
#include "storage/volume.h"

#include <string>
#include <utility>

namespace kaas::cluster {
namespace {

using storage::ErrorCode;
using storage::Result;

std::string aside(const std::string& directory) {
    return std::string(kDeletedDirectory) + "/" + directory;
}

}  // namespace

Result<void> set_aside(storage::Volume& volume, storage::SessionCheck& session,
                       const std::string& name, const base::TopicId& id) {
    const auto directory = catalog::topic_directory(name, id);
    KAAS_TRY(session.confirm());
    auto moved = storage::unless(ErrorCode::kNotFound, volume.rename(directory, aside(directory)));
    // Half of an earlier move survived a crash: both names are there.
    if (!moved && moved.error().code == ErrorCode::kExists)
        moved = storage::remove_tree(volume, directory);
    KAAS_TRY(std::move(moved));
    // The new name before the old one goes: a crash in between leaves both or one, never none.
    KAAS_TRY(volume.sync_directory(std::string(kDeletedDirectory)));
    return volume.sync_directory("");
}

Result<void> reclaim(storage::Volume& volume, storage::SessionCheck& session,
                     const std::string& name, const base::TopicId& id) {
    const auto path = aside(catalog::topic_directory(name, id));
    KAAS_TRY(session.confirm());
    KAAS_TRY(storage::remove_tree(volume, path));
    return volume.sync_directory(std::string(kDeletedDirectory));
}

}  // namespace kaas::cluster
