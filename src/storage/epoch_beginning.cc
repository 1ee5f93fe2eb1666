#include "storage/epoch_beginning.h"

#include "base/result.h"
#include "storage/epoch_log.h"
#include "storage/error.h"
#include "storage/manifest.h"
#include "storage/segment.h"
#include "storage/volume.h"

#include <memory>
#include <string>
#include <utility>

namespace kaas::storage {

Result<void> make_topic_directory(Volume& volume, const std::string& directory) {
    return make_directory_if_missing(volume, PartitionPaths{directory}.topic_directory());
}

Result<void> make_partition_directory(Volume& volume, const std::string& directory, Syncs syncs) {
    KAAS_TRY(sync_directory(volume, "", syncs));
    KAAS_TRY(make_directory_if_missing(volume, directory));
    return sync_directory(volume, PartitionPaths{directory}.topic_directory(), syncs);
}

Result<FirstSegment> make_first_segment(Volume& volume, const PartitionPaths& paths,
                                        SegmentName name) {
    KAAS_TRY(volume.make_directory(paths.epoch_directory(name.epoch)));
    auto segment = std::make_shared<Segment>(paths, name, IndexOrigin::kNew);
    KAAS_TRY(segment->create(volume));
    KAAS_TRY_ASSIGN(log, segment->log(volume, Patience::kMayBlock));
    return FirstSegment{std::move(segment), std::move(log)};
}

Result<EpochLog> write_first_picture(Volume& volume, const PartitionPaths& paths,
                                     base::LeaderEpoch epoch, const Manifest& manifest,
                                     Syncs syncs) {
    return EpochLog::create(volume, paths.manifest(), epoch.value(), manifest.picture(),
                            {.directory = EpochLogOptions::Directory::kMade, .syncs = syncs});
}

}  // namespace kaas::storage
