// Apache Kafka's side of the oracle test: its own generated classes (kafka-clients) make, read and judge
// messages. Run from source: java -cp JARS Oracle.java COMMAND ...
//
//   facts FILE          judge what peer.cc says of APIs, versions, headers, errors and messages
//   make FILE SEED N    write messages, N random ones and one of defaults for each type and version
//   judge FILE          read messages that peer.cc wrote, with what it read in them
//   make-batches FILE SEED N, judge-batches FILE     the same for record batches

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;

public final class Oracle {
    static final ObjectMapper JSON = new ObjectMapper();
    static int failures = 0;
    static int checks = 0;

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "facts" -> Facts.judge(Files.readAllLines(Path.of(args[1])));
            case "make" -> make(args[1], Long.parseLong(args[2]), Integer.parseInt(args[3]), args[4]);
            case "judge" -> judge(args[1]);
            case "make-batches" -> Batches.make(args[1], Long.parseLong(args[2]), Integer.parseInt(args[3]));
            case "judge-batches" -> Batches.judge(args[1]);
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.out.println(checks + " checks");
        if (failures > 0) {
            System.err.println(failures + " failures");
            System.exit(1);
        }
    }

    static void fail(String text) {
        if (++failures <= 20) System.err.println("FAIL " + text);
    }

    static void same(Object expected, Object found, String what) {
        ++checks;
        if (!expected.equals(found)) fail(what + ": Apache has " + expected + ", kaas has " + found);
    }

    // ---- messages by name ------------------------------------------------------------------------

    static Class<?> dataClass(String name) throws ClassNotFoundException {
        String base = "org.apache.kafka.common.message." + name;
        try {
            return Class.forName(base + "Data");
        } catch (ClassNotFoundException e) {
            return Class.forName(base);
        }
    }

    static byte[] bytes(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) throw new IllegalStateException("size() and write() differ");
        return buffer.array();
    }

    static void make(String file, long seed, int count, String types) throws Exception {
        try (Cases out = new Cases(new DataOutputStream(new BufferedOutputStream(new FileOutputStream(file))))) {
            for (String line : Files.readAllLines(Path.of(types))) {
                String[] words = line.split(" ");
                if (!words[0].equals("message")) continue;
                Class<?> type = dataClass(words[1]);
                Random random = new Random(seed ^ words[1].hashCode());
                short lowest = type.getField("LOWEST_SUPPORTED_VERSION").getShort(null);
                short highest = type.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
                for (short version = lowest; version <= highest; version++) {
                    Message plain = (Message) type.getConstructor().newInstance();
                    out.write(words[1], version, bytes(plain, version), "");
                    for (int i = 0; i < count; i++) {
                        Message message = (Message) type.getConstructor().newInstance();
                        Filler.fill(message, Filler.schema(type, version), random);
                        out.write(words[1], version, bytes(message, version), "");
                    }
                }
            }
        }
    }

    static void judge(String file) throws Exception {
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(new FileInputStream(file)))) {
            for (Case one = Case.read(in); one != null; one = Case.read(in)) {
                String what = one.name + " v" + one.version;
                ++checks;
                try {
                    judgeOne(one, what);
                } catch (Throwable e) {
                    Throwable cause = e.getCause() == null ? e : e.getCause();
                    fail(what + ": " + cause + " on " + HexFormat.of().formatHex(one.bytes));
                }
            }
        }
    }

    static void judgeOne(Case one, String what) throws Exception {
        Class<?> type = dataClass(one.name);
        ByteBuffer buffer = ByteBuffer.wrap(one.bytes);
        Constructor<?> read = type.getConstructor(Readable.class, short.class);
        Message message = (Message) read.newInstance(new ByteBufferAccessor(buffer), one.version);
        if (buffer.hasRemaining()) fail(what + ": " + buffer.remaining() + " bytes too many");
        byte[] again = bytes(message, one.version);
        if (!Arrays.equals(again, one.bytes)) {
            fail(what + ": Apache writes " + HexFormat.of().formatHex(again) + ", kaas wrote "
                    + HexFormat.of().formatHex(one.bytes));
        }
        Class<?> converter = Class.forName(type.getName() + "JsonConverter");
        Method write = converter.getMethod("write", type, short.class, boolean.class);
        // Through text, so that a short and a long of one value are the same number.
        JsonNode theirs = JSON.readTree(write.invoke(null, message, one.version, false).toString());
        JsonNode ours = JSON.readTree(one.text);
        if (!theirs.equals(ours)) fail(what + ": Apache reads " + theirs + ", kaas reads " + ours);
    }

    // ---- the file between the two sides ------------------------------------------------------------

    record Case(String name, short version, byte[] bytes, String text) {
        static Case read(DataInputStream in) throws Exception {
            String name;
            try {
                name = new String(block(in), StandardCharsets.UTF_8);
            } catch (EOFException e) {
                return null;
            }
            short version = in.readShort();
            byte[] bytes = block(in);
            return new Case(name, version, bytes, new String(block(in), StandardCharsets.UTF_8));
        }

        static byte[] block(DataInputStream in) throws Exception {
            byte[] result = new byte[in.readInt()];
            in.readFully(result);
            return result;
        }
    }

    record Cases(DataOutputStream out) implements AutoCloseable {
        void write(String name, short version, byte[] bytes, String text) throws Exception {
            block(name.getBytes(StandardCharsets.UTF_8));
            out.writeShort(version);
            block(bytes);
            block(text.getBytes(StandardCharsets.UTF_8));
            checks++;
        }

        void block(byte[] bytes) throws Exception {
            out.writeInt(bytes.length);
            out.write(bytes);
        }

        @Override
        public void close() throws Exception {
            out.close();
        }
    }

    // ---- random values, led by Apache's schemas ----------------------------------------------------

    static final class Filler {
        static final String[] PIECES = {"a", "Z", "9", "-", "\"", "\\", "\n", "\u00e9", "\u6f22", "\ud83d\udc1b"};

        static Schema schema(Class<?> type, short version) throws Exception {
            return ((Schema[]) type.getField("SCHEMAS").get(null))[version];
        }

        static void fill(Object target, Schema schema, Random random) throws Exception {
            for (BoundField bound : schema.fields()) {
                if (bound.def.type instanceof TaggedFields tagged) {
                    for (var field : tagged.fields().values()) {
                        if (random.nextBoolean()) set(target, field.name, field.type, random);
                    }
                    unknownTags(((Message) target).unknownTaggedFields(), random);
                } else {
                    set(target, bound.def.name, bound.def.type, random);
                }
            }
        }

        static void unknownTags(List<RawTaggedField> tags, Random random) {
            if (random.nextInt(4) != 0) return;
            int first = 20;  // above all that any version of a struct knows
            for (int left = 1 + random.nextInt(3); left > 0; left--) {
                first += 1 + random.nextInt(random.nextInt(4) == 0 ? 100_000 : 3);
                tags.add(new RawTaggedField(first, bytes(random)));
            }
        }

        static void set(Object target, String name, Type type, Random random) throws Exception {
            Field field = target.getClass().getDeclaredField(camel(name));
            field.setAccessible(true);
            if (type.isNullable() && random.nextInt(4) == 0) {
                field.set(target, null);
                return;
            }
            if (type.isArray()) {
                field.set(target, array(field, type.arrayElementType().get(), random));
            } else {
                field.set(target, value(field.getType(), type, random));
            }
        }

        @SuppressWarnings("unchecked")
        static Object array(Field field, Type element, Random random) throws Exception {
            Collection<Object> result;
            Class<?> of;
            if (field.getType() == List.class) {
                result = new ArrayList<>();
                of = (Class<?>) ((ParameterizedType) field.getGenericType()).getActualTypeArguments()[0];
            } else {
                result = (Collection<Object>) field.getType().getConstructor().newInstance();
                of = (Class<?>) ((ParameterizedType) field.getType().getGenericSuperclass())
                        .getActualTypeArguments()[0];
            }
            int size = random.nextInt(4);
            for (int i = 0; i < size; i++) result.add(value(of, element, random));
            if (result.size() != size) {
                throw new IllegalStateException("elements were lost");
            }
            return result;
        }

        static Object value(Class<?> of, Type type, Random random) throws Exception {
            if (type instanceof Schema schema) {
                Constructor<?> constructor = of.getDeclaredConstructor();
                constructor.setAccessible(true);
                Object inner = constructor.newInstance();
                fill(inner, schema, random);
                return inner;
            }
            if (type == Type.UINT16) return (int) integer(random, 0, 65535);
            if (of == boolean.class) return random.nextBoolean();
            if (of == byte.class || of == Byte.class) return (byte) integer(random, Byte.MIN_VALUE, Byte.MAX_VALUE);
            if (of == short.class || of == Short.class) return (short) integer(random, Short.MIN_VALUE, Short.MAX_VALUE);
            if (of == int.class || of == Integer.class) return (int) integer(random, Integer.MIN_VALUE, Integer.MAX_VALUE);
            if (of == long.class || of == Long.class) return integer(random, Long.MIN_VALUE, Long.MAX_VALUE);
            if (of == double.class) return real(random);
            if (of == Uuid.class) return new Uuid(random.nextLong(), random.nextLong());
            if (of == String.class) return text(random);
            if (of == byte[].class) return bytes(random);
            if (of == ByteBuffer.class) return ByteBuffer.wrap(bytes(random));
            if (BaseRecords.class.isAssignableFrom(of)) {
                return MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(random)));
            }
            throw new IllegalArgumentException("no values for " + of + " " + type);
        }

        static double real(Random random) {
            for (;;) {
                double value = Double.longBitsToDouble(random.nextLong());
                if (Double.isFinite(value)) return value;
            }
        }

        static long integer(Random random, long min, long max) {
            return switch (random.nextInt(6)) {
                case 0 -> min;
                case 1 -> max;
                case 2 -> max == Long.MAX_VALUE ? random.nextLong() : min + Math.floorMod(random.nextLong(), max - min + 1);
                default -> random.nextInt(min < 0 ? -1 : 0, 101);
            };
        }

        static String text(Random random) {
            StringBuilder result = new StringBuilder();
            int left = random.nextInt(20) == 0 ? 100 + random.nextInt(100) : random.nextInt(10);
            for (; left > 0; left--) result.append(PIECES[random.nextInt(PIECES.length)]);
            return result.toString();
        }

        static byte[] bytes(Random random) {
            byte[] result = new byte[random.nextInt(20) == 0 ? random.nextInt(20_000) : random.nextInt(20)];
            random.nextBytes(result);
            return result;
        }

        static String camel(String name) {
            StringBuilder result = new StringBuilder();
            boolean upper = false;
            for (char c : name.toCharArray()) {
                if (c == '_') {
                    upper = true;
                } else {
                    result.append(upper ? Character.toUpperCase(c) : c);
                    upper = false;
                }
            }
            return result.toString();
        }
    }

    // ---- the registry ------------------------------------------------------------------------------

    static final class Facts {
        static void judge(List<String> lines) throws Exception {
            Map<Short, String> seen = new TreeMap<>();
            int errors = 0;
            for (String line : lines) {
                String[] words = line.split(" ");
                switch (words[0]) {
                    case "api" -> {
                        seen.put(Short.parseShort(words[1]), words[2]);
                        api(words);
                    }
                    case "message" -> message(words);
                    case "error" -> {
                        errors++;
                        error(words);
                    }
                    default -> fail("not understood: " + line);
                }
            }
            for (ApiKeys key : ApiKeys.brokerApis()) {
                if (key.hasValidVersion()) same(key.name, seen.get(key.id), "API " + key.id);
            }
            same(Errors.values().length, errors, "number of errors");
        }

        // api KEY NAME MIN MAX ADVERTISED ON_BROKER ON_CONTROLLER FORWARDABLE CLUSTER_ACTION HEADERS
        static void api(String[] words) {
            ApiKeys key = ApiKeys.forId(Integer.parseInt(words[1]));
            String what = "API " + key.name;
            same(key.name, words[2], what);
            same(key.oldestVersion() + " " + key.latestVersion(false), words[3] + " " + words[4], what + " versions");
            same(advertised(key), words[5], what + " advertised");
            same(key.inScope(ApiMessageType.ListenerType.BROKER) + " " + key.inScope(ApiMessageType.ListenerType.CONTROLLER),
                    words[6] + " " + words[7], what + " listeners");
            same(key.forwardable + " " + key.clusterAction, words[8] + " " + words[9], what + " flags");
            // Headers, for versions that are served and for some that are not.
            for (int i = 10; i < words.length; i++) {
                short version = (short) (i - 10);
                String headers = key.requestHeaderVersion(version) + "/" + key.responseHeaderVersion(version);
                same(headers, words[i], what + " v" + version + " headers");
            }
        }

        /** What a broker without a receiver of client metrics (KIP-714) puts into ApiVersions. */
        static String advertised(ApiKeys key) {
            boolean telemetry = key == ApiKeys.GET_TELEMETRY_SUBSCRIPTIONS || key == ApiKeys.PUSH_TELEMETRY;
            if (!key.inScope(ApiMessageType.ListenerType.BROKER) || telemetry) return "none";
            return key.toApiVersionForApiResponse(false, ApiMessageType.ListenerType.BROKER)
                    .map(version -> version.minVersion() + "-" + version.maxVersion()).orElse("none");
        }

        static void message(String[] words) throws Exception {
            Class<?> type = dataClass(words[1]);
            same(type.getField("LOWEST_SUPPORTED_VERSION").get(null) + " " + type.getField("HIGHEST_SUPPORTED_VERSION").get(null),
                    words[2] + " " + words[3], words[1] + " versions");
        }

        static void error(String[] words) {
            Errors error = Errors.valueOf(words[2]);
            boolean retriable = error.exception() instanceof org.apache.kafka.common.errors.RetriableException;
            same(error.code() + " " + retriable, words[1] + " " + words[3], "error " + words[2]);
        }
    }

    // ---- record batches ----------------------------------------------------------------------------

    static final class Batches {
        static void make(String file, long seed, int count) throws Exception {
            Random random = new Random(seed);
            try (Cases out = new Cases(new DataOutputStream(new BufferedOutputStream(new FileOutputStream(file))))) {
                for (CompressionType codec : CompressionType.values()) {
                    for (int i = 0; i < count; i++) {
                        byte[] batch = random(codec, random);
                        out.write(codec.name, (short) 2, batch, text(batch));
                    }
                }
            }
        }

        static byte[] random(CompressionType codec, Random random) {
            boolean idempotent = random.nextBoolean();
            boolean appendTime = random.nextInt(4) == 0;
            long offset = random.nextInt(3) == 0 ? 0 : random.nextLong(1L << 50);
            MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1024), (byte) 2,
                    Compression.of(codec).build(), appendTime ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME,
                    offset, appendTime ? 1_700_000_000_000L : -1, idempotent ? random.nextLong(1L << 40) : -1,
                    idempotent ? (short) random.nextInt(30_000) : -1, idempotent ? random.nextInt(Integer.MAX_VALUE) : -1,
                    idempotent && random.nextBoolean(), false, random.nextInt(1000));
            for (int left = 1 + random.nextInt(20); left > 0; left--) {
                Header[] headers = new Header[random.nextInt(3)];
                for (int h = 0; h < headers.length; h++) {
                    headers[h] = new RecordHeader(Filler.text(random), random.nextInt(3) == 0 ? null : Filler.bytes(random));
                }
                builder.appendWithOffset(offset, 1_600_000_000_000L + random.nextInt(1_000_000),
                        random.nextInt(3) == 0 ? null : Filler.bytes(random),
                        random.nextInt(5) == 0 ? null : Filler.bytes(random), headers);
                offset += random.nextInt(5) == 0 ? 1 + random.nextInt(1000) : 1;
            }
            ByteBuffer buffer = builder.build().buffer();
            byte[] result = new byte[buffer.remaining()];
            buffer.get(result);
            return result;
        }

        static String hex(ByteBuffer buffer) {
            if (buffer == null) return "null";
            byte[] bytes = new byte[buffer.remaining()];
            buffer.duplicate().get(bytes);
            return "x" + HexFormat.of().formatHex(bytes);
        }

        /** What Apache reads in a batch: the header, then a line a record. */
        static String text(byte[] batch) {
            StringBuilder out = new StringBuilder();
            for (MutableRecordBatch one : MemoryRecords.readableRecords(ByteBuffer.wrap(batch)).batches()) {
                one.ensureValid();
                out.append(one.baseOffset()).append(' ').append(one.lastOffset()).append(' ')
                        .append(one.partitionLeaderEpoch()).append(' ').append(one.maxTimestamp()).append(' ')
                        .append(one.timestampType() == TimestampType.LOG_APPEND_TIME).append(' ')
                        .append(one.producerId()).append(' ').append(one.producerEpoch()).append(' ')
                        .append(one.baseSequence()).append(' ').append(one.lastSequence()).append(' ')
                        .append(one.isTransactional()).append(' ').append(one.isControlBatch()).append(' ')
                        .append(one.countOrNull()).append(' ').append(one.compressionType().name).append('\n');
                for (Record record : one) {
                    out.append(record.offset()).append(' ').append(record.timestamp()).append(' ')
                            .append(record.sequence()).append(' ').append(hex(record.key())).append(' ')
                            .append(hex(record.value()));
                    for (Header header : record.headers()) {
                        out.append(' ').append(hex(ByteBuffer.wrap(header.key().getBytes(StandardCharsets.UTF_8))))
                                .append('=').append(hex(header.value() == null ? null : ByteBuffer.wrap(header.value())));
                    }
                    out.append('\n');
                }
            }
            return out.toString();
        }

        /** What Apache's builder makes of a batch's records; codecs may choose other bytes, no codec may not. */
        static byte[] rebuilt(byte[] batch) {
            MutableRecordBatch one = MemoryRecords.readableRecords(ByteBuffer.wrap(batch)).batches().iterator().next();
            MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1024), (byte) 2,
                    Compression.of(one.compressionType()).build(), one.timestampType(), one.baseOffset(),
                    one.timestampType() == TimestampType.LOG_APPEND_TIME ? one.maxTimestamp() : -1, one.producerId(),
                    one.producerEpoch(), one.baseSequence(), one.isTransactional(), one.isControlBatch(),
                    one.partitionLeaderEpoch());
            for (Record record : one) builder.append(record);
            ByteBuffer buffer = builder.build().buffer();
            byte[] result = new byte[buffer.remaining()];
            buffer.get(result);
            return result;
        }

        static void judge(String file) throws Exception {
            try (DataInputStream in = new DataInputStream(new BufferedInputStream(new FileInputStream(file)))) {
                for (Case one = Case.read(in); one != null; one = Case.read(in)) {
                    try {
                        same(text(one.bytes), one.text, "batch " + one.name);
                        // Under LogAppendTime the records' own timestamps cannot be read back.
                        boolean appendTime = one.text.split(" ")[4].equals("true");
                        if (one.name.equals("none") && !appendTime) {
                            same(HexFormat.of().formatHex(rebuilt(one.bytes)), HexFormat.of().formatHex(one.bytes), "batch as built");
                        }
                    } catch (Throwable e) {
                        fail("batch " + one.name + ": " + e);
                    }
                }
            }
        }
    }
}
