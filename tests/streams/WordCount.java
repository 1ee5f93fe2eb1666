// Counts words with exactly_once_v2: each word that comes in by `words` goes out by `counts` with how many
// times it has come. Every count is written, so that what is doubled or lost shows in the numbers.
//
//   WordCount BOOTSTRAP APPLICATION-ID STATE-DIR [KEY=VALUE...]     prints its state on each change

import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

public final class WordCount {
    public static void main(String[] args) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", args[0]);
        config.put("application.id", args[1]);
        config.put("state.dir", args[2]);
        config.put("processing.guarantee", "exactly_once_v2");
        config.put("commit.interval.ms", "100");
        config.put("statestore.cache.max.bytes", "0");
        config.put("num.stream.threads", "2");
        config.put("replication.factor", "1");
        config.put("heartbeat.interval.ms", "300");
        config.put("reconnect.backoff.max.ms", "200");
        config.put("auto.offset.reset", "earliest");
        for (int i = 3; i < args.length; i++) {
            config.put(args[i].split("=", 2)[0], args[i].split("=", 2)[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("words", Consumed.with(Serdes.String(), Serdes.String()))
            .groupBy((number, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("seen"))
                       .withKeySerde(Serdes.String())
                       .withValueSerde(Serdes.Long()))
            .toStream()
            .mapValues(String::valueOf)
            .to("counts", Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), config);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.start();
        while (System.in.read() >= 0) {
        }
        streams.close();
        System.out.println("CLOSED");
        Runtime.getRuntime().halt(0);
    }
}
