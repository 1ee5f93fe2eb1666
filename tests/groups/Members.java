// Members of consumer groups in one JVM. Lines on stdin move them, lines on stdout tell what happens to them.
//
//   open NAME KEY=VALUE...   a consumer with these configs, that subscribes to `topic`. With `out` it copies
//                            what it reads there: with `transactional.id` in a transaction a poll, which
//                            commits the offsets too, without before the offsets are committed
//   close NAME               leaves the group (a static member stays in it, as Java's default is)
//   abandon NAME             ends without a word to the group, its transaction as it is
//
// An event is NAME, what happened, and its words, with tabs between: joined (generation, member id) and
// assigned, revoked, lost (partitions); read (partition, offset, value) of what is not copied; closed;
// failed (class, message); trouble (the same) of what a member goes on after. Run: java -cp JARS Members BOOTSTRAP

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class Members {
    static final Map<String, Member> MEMBERS = new HashMap<>();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\t");
            switch (words[0]) {
                case "open" -> {
                    Member member = new Member(words[1], args[0], words);
                    MEMBERS.put(words[1], member);
                    member.start();
                }
                case "close" -> MEMBERS.remove(words[1]).end(CloseOptions.GroupMembershipOperation.DEFAULT);
                case "abandon" ->
                    MEMBERS.remove(words[1]).end(CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP);
                default -> throw new IllegalArgumentException(line);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    static synchronized void tell(String name, String what, Object... words) {
        StringBuilder line = new StringBuilder(name).append('\t').append(what);
        for (Object word : words) {
            line.append('\t').append(String.valueOf(word).replaceAll("[\t\n]", " "));
        }
        System.out.println(line);
        System.out.flush();
    }

    /** One consumer and its thread. */
    static final class Member extends Thread implements ConsumerRebalanceListener {
        final Properties consumerConfig = new Properties();
        final Properties producerConfig = new Properties();
        String topic;
        String out;
        volatile CloseOptions.GroupMembershipOperation ending;
        KafkaConsumer<String, String> consumer;
        KafkaProducer<String, String> producer;

        Member(String name, String bootstrap, String[] words) {
            super(name);
            for (Properties config : new Properties[] {consumerConfig, producerConfig}) {
                config.put("bootstrap.servers", bootstrap);
                // A broker that was killed is back in a moment.
                config.put("reconnect.backoff.max.ms", "200");
                config.put("client.id", name);
            }
            consumerConfig.put("auto.offset.reset", "earliest");
            consumerConfig.put("enable.auto.commit", "false");
            producerConfig.put("linger.ms", "0");
            for (int i = 2; i < words.length; i++) {
                String[] pair = words[i].split("=", 2);
                switch (pair[0]) {
                    case "topic" -> topic = pair[1];
                    case "out" -> out = pair[1];
                    case "transactional.id", "transaction.timeout.ms" -> producerConfig.put(pair[0], pair[1]);
                    default -> consumerConfig.put(pair[0], pair[1]);
                }
            }
        }

        boolean transactional() { return producerConfig.containsKey("transactional.id"); }

        void end(CloseOptions.GroupMembershipOperation how) {
            ending = how;
        }

        @Override
        public void run() {
            try {
                consumer = new KafkaConsumer<>(consumerConfig, new StringDeserializer(), new StringDeserializer());
                if (out != null) openProducer();
                consumer.subscribe(List.of(topic), this);
                while (ending == null) {
                    turn();
                }
                boolean silent = ending == CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP;
                if (producer != null) producer.close(silent ? Duration.ZERO : Duration.ofSeconds(30));
                consumer.close(CloseOptions.timeout(Duration.ofSeconds(30)).withGroupMembershipOperation(ending));
                tell(getName(), "closed");
            } catch (Throwable error) {
                tell(getName(), "failed", error.getClass().getSimpleName(), error.getMessage());
                if (consumer != null) {
                    consumer.close(CloseOptions.groupMembershipOperation(
                        CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP).withTimeout(Duration.ZERO));
                }
            }
        }

        void openProducer() {
            if (producer != null) producer.close(Duration.ZERO);
            producer = new KafkaProducer<>(producerConfig, new StringSerializer(), new StringSerializer());
            if (transactional()) producer.initTransactions();
        }

        void turn() {
            ConsumerRecords<String, String> records;
            try {
                records = consumer.poll(Duration.ofMillis(50));
            } catch (RetriableException error) {
                tell(getName(), "trouble", error.getClass().getSimpleName(), error.getMessage());
                return;
            }
            if (records.isEmpty()) return;
            if (transactional()) {
                copyInTransaction(records);
            } else {
                for (ConsumerRecord<String, String> record : records) {
                    if (out != null) {
                        producer.send(new ProducerRecord<>(out, record.key(), record.value()));
                    } else {
                        tell(getName(), "read", record.partition(), record.offset(), record.value());
                    }
                }
                if (producer != null) producer.flush();
                commit(records.nextOffsets());
            }
        }

        void commit(Map<TopicPartition, OffsetAndMetadata> offsets) {
            try {
                consumer.commitSync(offsets);
            } catch (CommitFailedException | RebalanceInProgressException | RetriableException error) {
                tell(getName(), "trouble", error.getClass().getSimpleName(), error.getMessage());
            }
        }

        /** What a poll brought, and its offsets, or nothing of it: then it is read again. */
        void copyInTransaction(ConsumerRecords<String, String> records) {
            try {
                producer.beginTransaction();
                for (ConsumerRecord<String, String> record : records) {
                    producer.send(new ProducerRecord<>(out, record.key(), record.value()));
                }
                if (ending == CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP) return;
                producer.sendOffsetsToTransaction(records.nextOffsets(), consumer.groupMetadata());
                producer.commitTransaction();
            } catch (KafkaException error) {
                tell(getName(), "trouble", error.getClass().getSimpleName(), error.getMessage());
                abort(error);
                rewind();
            }
        }

        void abort(KafkaException error) {
            try {
                if (error instanceof ProducerFencedException) throw error;
                producer.abortTransaction();
            } catch (KafkaException fatal) {
                openProducer();
            }
        }

        void rewind() {
            Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
            for (TopicPartition partition : consumer.assignment()) {
                OffsetAndMetadata at = committed.get(partition);
                if (at == null) {
                    consumer.seekToBeginning(List.of(partition));
                } else {
                    consumer.seek(partition, at.offset());
                }
            }
        }

        static String names(Collection<TopicPartition> partitions) {
            return partitions.stream().map(Object::toString).sorted().collect(Collectors.joining(","));
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            tell(getName(), "joined", consumer.groupMetadata().generationId(), consumer.groupMetadata().memberId());
            tell(getName(), "assigned", names(partitions));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            tell(getName(), "revoked", names(partitions));
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            tell(getName(), "lost", names(partitions));
        }
    }
}
