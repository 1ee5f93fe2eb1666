// A newcomer to a group of cooperative members, timed: how long until every member has what it keeps.
// Prints a line of JSON. Run: java -cp JARS Newcomer BOOTSTRAP GROUP TOPIC MEMBERS HEARTBEAT_MS
// The topic has two partitions for each member.

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.LongStream;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public final class Newcomer {
    static final AtomicLong LAST_EVENT = new AtomicLong();

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[3]);
        long heartbeat = Long.parseLong(args[4]);
        List<Member> members = new ArrayList<>();
        for (int i = 0; i < count; i++) members.add(new Member(args));
        for (Member member : members) member.start();
        awaitStable(members, 2 * count, heartbeat);
        for (Member member : members) member.generations.clear();
        Member newcomer = new Member(args);
        members.add(newcomer);
        long began = System.nanoTime();
        newcomer.start();
        awaitStable(members, 2 * count, heartbeat);
        System.out.printf("{\"heard_ms\": %d, \"first_ms\": %d, \"stable_ms\": %d, \"generations\": %d}%n",
                          ms(firsts(members).min().getAsLong() - began), ms(firsts(members).max().getAsLong() - began),
                          ms(LAST_EVENT.get() - began), newcomer.generations.size());
        Runtime.getRuntime().halt(0);
    }

    static long ms(long nanos) { return nanos / 1_000_000; }

    /** When each member had its assignment of the first generation since the newcomer came. */
    static LongStream firsts(List<Member> members) {
        return members.stream().mapToLong(member -> member.generations.get(0));
    }

    /** Every member has some partitions, all are given, and whoever was to hear of more by its heartbeat has. */
    static void awaitStable(List<Member> members, int total, long heartbeat) throws InterruptedException {
        long quiet = (2 * heartbeat + 1000) * 1_000_000;
        while (members.stream().anyMatch(member -> member.partitions.get() == 0)
               || members.stream().mapToInt(member -> member.partitions.get()).sum() != total
               || System.nanoTime() - LAST_EVENT.get() < quiet) {
            Thread.sleep(20);
        }
    }

    static final class Member extends Thread implements ConsumerRebalanceListener {
        final List<Long> generations = Collections.synchronizedList(new ArrayList<>());
        final AtomicInteger partitions = new AtomicInteger();
        final KafkaConsumer<byte[], byte[]> consumer;
        final String topic;

        Member(String[] args) {
            Properties config = new Properties();
            config.put("bootstrap.servers", args[0]);
            config.put("group.id", args[1]);
            config.put("heartbeat.interval.ms", args[4]);
            config.put("partition.assignment.strategy", CooperativeStickyAssignor.class.getName());
            config.put("enable.auto.commit", "false");
            consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            topic = args[2];
        }

        @Override
        public void run() {
            consumer.subscribe(List.of(topic), this);
            while (true) consumer.poll(Duration.ofMillis(100));
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> added) {
            long now = System.nanoTime();
            generations.add(now);
            partitions.addAndGet(added.size());
            LAST_EVENT.set(now);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> gone) {
            partitions.addAndGet(-gone.size());
            LAST_EVENT.set(System.nanoTime());
        }
    }
}
