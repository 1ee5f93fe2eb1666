#include "coordinator/slot_machine.h"

#include "storage/slot_log.h"

#include <cstddef>
#include <expected>
#include <utility>

namespace kaas::coordinator {

std::expected<void, RefusedLine> load_inherited(SlotMachine& machine,
                                                const storage::InheritedSlot& inherited) {
    if (auto loaded = machine.load_picture(inherited.picture); !loaded) {
        return std::unexpected(RefusedLine{0, std::move(loaded).error()});
    }
    for (std::size_t i = 0; i < inherited.changes.size(); ++i) {
        if (auto loaded = machine.load_change(inherited.changes[i]); !loaded) {
            return std::unexpected(RefusedLine{inherited.offsets[i], std::move(loaded).error()});
        }
    }
    return {};
}

}  // namespace kaas::coordinator
