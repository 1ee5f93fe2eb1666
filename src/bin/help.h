#pragma once

#include <string_view>

namespace kaas::bin {

inline constexpr std::string_view kHelp =
    R"(kaas is a Kafka broker that keeps its data on a shared filesystem.

Usage: kaas COMMAND [OPTIONS]

  serve           run a broker; needs no configuration
  cluster status  show members, sessions, the controller, moves, and what is offline
  log check       hold partitions against their manifests and checksums
  log dump        show what is in the files of a data directory
  volume check    prove that a file system keeps the promises that brokers build on
  --version       print the version
  --help          print this; kaas COMMAND --help tells more of one command

Examples:
  kaas serve                                 a broker on 127.0.0.1:9092, data in ./kaas-data
  kaas serve --ephemeral                     the same for a test: nothing is kept
  kaas serve --config server.properties      with the settings of a file
  kaas log dump kaas-data/orders.*/0         every batch of a partition
)";

inline constexpr std::string_view kServeHelp = R"(kaas serve runs a broker until SIGTERM or Ctrl-C.

Usage: kaas serve [--config FILE] [--override KEY=VALUE]... [--ephemeral]

  -c, --config FILE         settings, in the form of Kafka's server.properties
      --override KEY=VALUE  one setting, over the file and the environment; may be repeated
      --ephemeral           data in a new directory below $TMPDIR, never synced, deleted at exit
                            (after kill -9, by the next --ephemeral start)

Without any setting it listens on 127.0.0.1:9092, keeps its data in ./kaas-data and serves health and
metrics on 127.0.0.1:8080. Settings have Kafka's names; the environment gives them too, after the file:
KAFKA_NUM_PARTITIONS=3 is num.partitions=3. docs/configuration.md lists them all.

Examples:
  kaas serve --override log.dirs=/data --override listeners=PLAINTEXT://:9092
  kaas serve --ephemeral --override listeners=PLAINTEXT://127.0.0.1:0     on any free port
  KAFKA_NUM_PARTITIONS=6 kaas serve --config server.properties

Exit codes: 0 stopped in good order, 1 could not start or go on, 2 wrong usage or configuration.
)";

inline constexpr std::string_view kLogCheckHelp =
    R"(kaas log check looks for damage in partitions, and names each place by file and offset.

Usage: kaas log check [-o text|json] PATH...

  PATH                      a partition's directory, or one above: all partitions below it
  -o, --output text|json    json: an object a damage, and nothing when all is well

It holds what counts, by the newest manifest, against the files: each segment is there and long enough, each
batch has its checksum, offsets go in a row, leader epochs and times are as recorded, and indexes lead where
they promise. At the root of a volume it looks at kaas.json, the control log, journals, and loads the slots of groups
and transactions as a start would. It reads only and may run beside a broker; what that removes meanwhile shows as missing.

Examples:
  kaas log check kaas-data
  kaas log check -o json kaas-data/orders.*/0

Exit codes: 0 all is well, 1 something is damaged or cannot be read, 2 wrong usage.
)";

inline constexpr std::string_view kLogDumpHelp =
    R"(kaas log dump shows what is in the files of a data directory, one item a line.

Usage: kaas log dump [--records] [-o text|json] PATH...

  PATH                      a file, or a directory: all files in it and below
      --records             unpack the batches and show their records too
  -o, --output text|json    json: an object a line, each naming its file

It knows .log, .index, .timeindex, .txnindex, .snapshot, .jsonl (manifests and the control log), kaas.json
and kaas.lock; any other file is reported as damage. It reads only and may run beside a broker. What counts
of a log's end stands in the manifest; a torn last line of a .jsonl is what a crash leaves, and no damage.

Examples:
  kaas log dump kaas-data/orders.*/0
  kaas log dump --records -o json kaas-data/orders.*/0/00000001/00000000000000000000.log | jq .value
  kaas log dump kaas-data/__cluster/control

Exit codes: 0 all is well, 1 something cannot be read or is damaged, 2 wrong usage.
)";

inline constexpr std::string_view kClusterStatusHelp =
    R"(kaas cluster status shows who is in a cluster, who reigns, what moves, and what is offline and why.

Usage: kaas cluster status [-o text|json] DIRECTORY...

  DIRECTORY                 a volume of the cluster; all of them show the sessions on all of them, and the one
                            with __cluster is needed
  -o, --output text|json    json: one object

It asks the volume and no broker: what it tells is what the controller has written, some milliseconds old, and whether
that still counts up its epoch, which it watches for up to three seconds. A session that has ended is the truth
whatever else is said: its broker can acknowledge nothing any more. It changes nothing.

Examples:
  kaas cluster status /mnt/kaas
  kaas cluster status -o json /mnt/kaas | jq '.offline[] | .why'

Exit codes: 0 it was read, 1 it could not be, 2 wrong usage.
)";

inline constexpr std::string_view kVolumeCheckHelp =
    R"(kaas volume check proves, one by one, what brokers need of a file system, on the directory itself.

Usage: kaas volume check [-o text|json] DIRECTORY...

  DIRECTORY                 where a volume is, or will be, mounted; nothing that is there is touched
  -o, --output text|json    json: an object a finding

Two directories that show the same volume, through two mounts, are also held against each other: so do it on the
machine where that is mounted twice, as two brokers would. The verdict on each property is good, note (works, and
there is something to know), bad (records may be lost here) or unknown (an error came between); one that is not
good is followed by what to do. It works below DIRECTORY/__check and removes that again. docs/volumes.md
tells more, and which file systems and mount options are fit.

Examples:
  kaas volume check /mnt/kaas
  kaas volume check -o json /mnt/a /mnt/b | jq 'select(.verdict != "good")'

Exit codes: 0 every property is good or a note, 1 one is bad or not proven, 2 wrong usage.
)";

}  // namespace kaas::bin
