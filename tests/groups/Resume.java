// What Apache Flink does to its transactions: one process fills one and dies, another commits it by the
// producer id and the epoch that the first wrote down. Flink sets them by reflection, and so does this.
//
//   Resume begin BOOTSTRAP ID TOPIC VALUE   prints the producer id and the epoch of an open transaction
//   Resume commit BOOTSTRAP ID PID EPOCH    prints committed, or the exception
//   Resume next BOOTSTRAP ID TOPIC VALUE    the usual life: init, a committed transaction; prints committed

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.utils.internals.ProducerIdAndEpoch;
import org.apache.kafka.common.serialization.StringSerializer;

public final class Resume {
    public static void main(String[] args) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", args[1]);
        config.put("transactional.id", args[2]);
        config.put("max.block.ms", "30000");
        KafkaProducer<String, String> producer =
            new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
        Object manager = get(producer, "transactionManager");
        switch (args[0]) {
            case "begin" -> {
                producer.initTransactions();
                fill(producer, args);
                ProducerIdAndEpoch identity = (ProducerIdAndEpoch) get(manager, "producerIdAndEpoch");
                System.out.println(identity.producerId + " " + identity.epoch);
            }
            case "next" -> {
                producer.initTransactions();
                fill(producer, args);
                producer.commitTransaction();
                System.out.println("committed");
            }
            case "commit" -> {
                resume(manager, new ProducerIdAndEpoch(Long.parseLong(args[3]), Short.parseShort(args[4])));
                try {
                    producer.commitTransaction();
                    System.out.println("committed");
                } catch (KafkaException error) {
                    System.out.println(error.getClass().getSimpleName());
                }
            }
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static void fill(KafkaProducer<String, String> producer, String[] args) {
        producer.beginTransaction();
        for (int partition = 0; partition < 2; partition++) {
            producer.send(new ProducerRecord<>(args[3], partition, null, args[4]));
        }
        producer.flush();
    }

    static void resume(Object manager, ProducerIdAndEpoch identity) throws Exception {
        synchronized (manager) {
            become(manager, "INITIALIZING");
            set(manager, "producerIdAndEpoch", identity);
            become(manager, "READY");
            become(manager, "IN_TRANSACTION");
            set(manager, "transactionStarted", true);
        }
    }

    static void become(Object manager, String name) throws Exception {
        for (Class<?> inner : manager.getClass().getDeclaredClasses()) {
            if (inner.getSimpleName().equals("State")) {
                for (Object state : inner.getEnumConstants()) {
                    if (!state.toString().equals(name)) continue;
                    Method method = manager.getClass().getDeclaredMethod("transitionTo", inner);
                    method.setAccessible(true);
                    method.invoke(manager, state);
                }
            }
        }
    }

    static Object get(Object owner, String name) throws Exception {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }

    static void set(Object owner, String name, Object value) throws Exception {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        field.set(owner, value);
    }
}
