"""Rules taken away from the code, one at a time: each must be seen by the simulation.

A mutant replaces text in one source, in a copy: the code knows nothing of it. When the text is not there any more, the
rule has moved, and its mutant moves with it.
"""

import dataclasses
import json
import pathlib
import re
import shlex
import subprocess

ROOT = pathlib.Path(__file__).parents[2]


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    source: str  # below src/
    changes: tuple  # pairs: what stands there, what stands there instead
    seeds: int = 400  # among so many one must show it
    beside: tuple = ()  # of other sources, as `changes`: what else would have held the harm back


MUTANTS = [
    Mutant("publish-without-mark", "cluster/node_control.cc",
           ((": mark_session(*volume, id, incarnation));", ": Result<void>());"),)),
    Mutant("effects-before-the-check", "storage/commit_cycle.cc",
           (("member->settle(check_, wakeups_);", "member->settle(Result<void>(), wakeups_);"),)),
    Mutant("no-check-without-a-flush", "storage/commit_cycle.cc",
           (("void CommitCycle::sync() {\n    auto dirty = gather();",
             "static bool flushed = false;\nvoid CommitCycle::sync() {\n    auto dirty = gather();\n"
             "    flushed = !dirty.empty();"),
            ("void CommitCycle::confirm() { check_ =", "void CommitCycle::confirm() { if (flushed) check_ ="))),
    Mutant("publish-without-release", "cluster/mover.cc",
           (("if (!asked.epochs.empty()) draft.add(std::move(asked));",
             "if (!asked.epochs.empty()) {\n"
             "        draft.add(asked);\n"
             "        draft.add(catalog::Released{asked.epochs});\n"
             "        draft.add(catalog::Assigned{place_homeless(draft.image())});\n"
             "    }"),)),
    Mutant("a-controller-does-not-check", "cluster/controller.cc",
           (("if (auto checked = reign_->session->confirm(); !checked) {",
             "if (storage::Result<void> checked; !checked) {"),)),
    Mutant("a-successor-does-not-mark", "cluster/election.cc",
           (("lower >= first; lower = lower - 1", "false; lower = lower - 1"),)),
    Mutant("the-control-log-is-not-synced", "catalog/control_log.cc", (("return converted(log_.sync());", "return {};"),)),
    Mutant("the-copy-is-not-synced", "storage/recovery.cc", (("KAAS_TRY(sync_file(*log, syncs));", ""),)),
    Mutant("acknowledged-before-the-sync", "storage/commit_cycle.cc",
           (("files[i].member->synced(files[i].file->sync());", "files[i].member->synced({});"),)),
    Mutant("high-watermark-over-a-journal-gap", "storage/partition_log.cc",
           (("if (records == 0 || records != unsynced_records_) return nullptr;",
             "if (records == 0) return nullptr;"),)),
    Mutant("a-failed-mark-counts", "cluster/node_control.cc",
           ((": mark_session(*volume, id, incarnation));",
             ": ((void)mark_session(*volume, id, incarnation), Result<void>()));"),), 1000),
    Mutant("an-earlier-life-is-not-marked", "cluster/roll_call.cc",
           (("if (!old.empty() && !seen.mark_failed && known->living()) {", "if (false) {"),)),
    Mutant("check-of-the-newest-session", "cluster/node.cc",
           (("std::shared_ptr<storage::LogDir> Node::Impl::make_logs(const Member& member) const {",
             "struct NewestSession final : storage::SessionCheck {\n"
             "    std::function<std::shared_ptr<Session>()> newest;\n"
             "    storage::Result<void> confirm() override { return newest()->confirm(); }\n"
             "};\n"
             "std::shared_ptr<storage::LogDir> Node::Impl::make_logs(const Member& member) const {"),
            ("    options.session = member.session.get();",
             "    static std::map<std::pair<const void*, std::string>, std::shared_ptr<Session>> newest;\n"
             "    auto& slot = newest[{this, member.volume.name}];\n"
             "    slot = member.session;\n"
             "    auto* session = new NewestSession;\n"
             "    session->newest = [&slot] { return slot; };\n"
             "    options.session = session;")), 1000),
    Mutant("a-controller-epoch-is-used-twice", "cluster/election.cc",
           (("        return fail(ErrorCode::kSuperseded, path + \" was taken by another candidate\");",
             "        made = {};"),),
           beside=(("storage/epoch_log.cc",  # a second control log of one epoch is refused, too
                    (("        KAAS_TRY(volume.make_directory(log.path_.epoch_directory(epoch)));",
                      "        auto made = volume.make_directory(log.path_.epoch_directory(epoch));\n"
                      "        if (!made && log.path_.kind != \"control\") return std::unexpected(made.error());"),
                     ("    KAAS_TRY_ASSIGN(file, volume_->create(path_.file(epoch_, number)));",
                      "    auto made = volume_->create(path_.file(epoch_, number));\n"
                      "    if (!made && path_.kind == \"control\")\n"
                      "        made = volume_->open(path_.file(epoch_, number), OpenMode::kReadWrite);\n"
                      "    KAAS_TRY_ASSIGN(file, std::move(made));"))),)),
    Mutant("controller-epochs-may-skip", "cluster/election.cc",
           (("const auto own = newest + 1;",
             "const auto own = newest + 1 + base::Uuid::random().bytes[0] % 2;"),
            ("#include \"base/ids.h\"", "#include \"base/ids.h\"\n#include \"base/uuid.h\"")), 1000),
    Mutant("a-successor-does-not-check", "cluster/reign.cc",
           (("if (auto alive = session->confirm(); !alive) return failed(std::move(alive).error());", ""),), 1000),
]

# Taken away by nobody's harm so far, in four hundred histories. For some another rule holds the same harm back (an epoch
# that was released cannot be made again, whoever asks), as `beside` takes away where it is known; others ask for
# harsher histories, or for a longer run. One that is seen moves up.
NOT_SEEN_YET = [
    Mutant("a-running-check-counts", "cluster/session.cc",
           (("const auto wanted = begun_ + 1;", "const auto wanted = begun_ > ended_ ? begun_ : begun_ + 1;"),), 1000),
    Mutant("a-released-epoch-is-opened-again", "cluster/tenancy.cc",
           (("const bool wanted = tenure && !recalled_ && tenure->epoch > given_up_;",
             "const bool wanted = tenure && !recalled_;"),
            ("    wanted_ = wanted_ && assigned_->epoch > given_up_;\n", "")), 1000),
    Mutant("high-watermark-moves-after-a-release", "storage/partition_log.cc",
           (("        } else if (!ended_) {\n            std::uint64_t bytes = 0;",
             "        } else {\n            std::uint64_t bytes = 0;"),), 1000),
    Mutant("a-marked-controller-epoch-is-removed", "cluster/election.cc",
           (("election_path(lower), storage::MarkKind::kKeep",
             "election_path(lower), storage::MarkKind::kRemove"),), 1000),
    Mutant("images-are-read-from-the-volume", "cluster/node_control.cc",
           (("    role_ = Role::kFollowing;\n    registered_ = false;\n",
             "    if (auto seen = catalog::glimpse_control(*survey_.cluster, address.epoch); seen && *seen) take(*seen);\n"
             "    role_ = Role::kFollowing;\n    registered_ = false;\n"),), 1000),
    Mutant("older-images-are-taken", "cluster/partition_table.cc",
           (("if (next->version() <= view->image->version()) return false;",
             "if (next->version() == view->image->version()) return false;"),), 1000),
    Mutant("what-was-only-read-counts", "storage/recovery.cc",
           (("|| !journaled_.empty() || !found->state.settled();", "|| !journaled_.empty();"),), 1000),
    Mutant("an-absence-is-believed", "storage/epoch_reader.cc",
           (("        KAAS_TRY_ASSIGN(closed, close_epoch(*candidate.volume, path, candidate.epoch));\n"
             "        if (closed) return std::move(*closed);",
             "        (void)close_epoch;\n        return Visited{.state = {}, .was_there = true};"),), 1000),
    Mutant("a-taker-does-not-check", "storage/recovery.cc",
           (("        KAAS_TRY(log_dir_.session().confirm());\n        report_stray_records(",
             "        report_stray_records("),), 1000),
    Mutant("epochs-are-removed-without-a-check", "storage/epoch_log.cc",
           (("    KAAS_TRY(session.confirm());\n    std::string first", "    (void)session;\n    std::string first"),), 1000),
    Mutant("a-failed-journal-counts", "storage/partition_log.cc",
           (("    if (!outcome) {\n        cycle_->error = outcome.error();\n        return;\n    }\n"
             "    unsynced_records_ = 0;\n    last_sync_ = log_dir_.clock().now();\n}\n\nvoid PartitionLog::answer(",
             "    (void)outcome;\n    unsynced_records_ = 0;\n}\n\nvoid PartitionLog::answer("),), 1000),
]


class NotThere(Exception):
    """The rule is not where its mutant looks for it."""


def changed_texts(mutant):
    """Pairs of a source and what stands in it with the rule taken away."""
    texts = []
    for source, changes in ((mutant.source, mutant.changes), *mutant.beside):
        text = (ROOT / "src" / source).read_text()
        for before, after in changes:
            if text.count(before) != 1:
                raise NotThere(f"{mutant.name}: {text.count(before)} times in {source}: {before}")
            text = text.replace(before, after)
        texts.append((source, text))
    return texts


def compiled(source, text, directory, work):
    source = ROOT / "src" / source
    copy = work / source.name
    copy.write_text(text)
    entry = next(entry for entry in json.loads((directory / "compile_commands.json").read_text())
                 if pathlib.Path(entry["file"]) == source)
    made = work / f"{source.stem}.o"
    command, skip = [], False
    for word in shlex.split(entry["command"]):
        if skip:
            skip = False
        elif word in ("-o", "-MT", "-MF"):
            skip = True
        elif word not in ("-MD", "-Werror"):
            command.append(str(copy) if word == entry["file"] else word)
    subprocess.run([*command, "-w", "-o", made], cwd=entry["directory"], check=True)
    return str(made)


def build(mutant, directory, work):
    """Gives a simulation with the mutant in it; `directory` is the build whose objects all others are."""
    made = " ".join(compiled(source, text, directory, work) for source, text in changed_texts(mutant))
    # As ninja would, but the mutant's objects stand before the libraries that have the rule.
    steps = subprocess.run(["ninja", "-C", directory, "-t", "commands", "kaas_simulation"], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    binary = work / "kaas_simulation"
    link = re.sub(r"-o tests/kaas_simulation\b", f"{made} -o {binary}", steps[-1])
    subprocess.run(["bash", "-c", link], cwd=directory, check=True)
    return binary


def first_sign(binary, seeds):
    """What the first history says that shows it; none when `seeds` of them are well."""
    run = subprocess.run([binary, "--seeds", str(seeds)], capture_output=True, text=True)
    return run.stdout.splitlines()[0] if run.returncode else None
