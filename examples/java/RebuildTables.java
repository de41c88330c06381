import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.avro.Conversions;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Rebuilds tables from their topics, up to their present end, and prints a line of JSON for each row.
 *
 * <p>java -cp 'jars/*' RebuildTables.java BROKERS REGISTRY canal-json:TOPIC avro:TOPIC …
 *
 * <p>All values are printed as text, binary ones in hexadecimal digits.
 */
public class RebuildTables {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("isolation.level", "read_committed");
        settings.put("enable.auto.commit", "false");
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            for (String argument : List.of(arguments).subList(2, arguments.length)) {
                String format = argument.substring(0, argument.indexOf(':'));
                String topic = argument.substring(argument.indexOf(':') + 1);
                Table table = format.equals("avro") ? new AvroTable(new Registry(arguments[1])) : new CanalTable();
                read(consumer, topic, table);
                for (Map<String, String> row : table.rows.values()) {
                    out.println(JSON.writeValueAsString(Map.of("topic", argument, "row", row)));
                }
            }
        }
        out.flush();
    }

    /** Applies the changes of all partitions; those of one row are in one partition. */
    private static void read(KafkaConsumer<byte[], byte[]> consumer, String topic, Table table) throws Exception {
        List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
            .map(found -> new TopicPartition(topic, found.partition())).toList();
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
        while (partitions.stream().anyMatch(one -> consumer.position(one) < ends.get(one))) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                table.apply(record.key(), record.value());
            }
        }
    }

    /** Rows by the text of their key. */
    private abstract static class Table {
        final Map<String, Map<String, String>> rows = new TreeMap<>();

        abstract void apply(byte[] key, byte[] value) throws Exception;
    }

    /** A table of canal-json: every value is a text, binary ones with a character for each byte. */
    private static class CanalTable extends Table {
        @Override
        void apply(byte[] key, byte[] value) throws IOException {
            JsonNode message = JSON.readTree(value);
            String type = message.get("type").asText();
            if (message.get("isDdl").asBoolean()) {
                if (type.equals("TRUNCATE")) {
                    rows.clear();
                }
                return;
            }
            JsonNode gone = type.equals("UPDATE") ? message.get("old") : message.get("data");
            for (JsonNode row : type.equals("INSERT") ? JSON.createArrayNode() : gone) {
                if (rows.remove(keyOf(message, row)) == null) {
                    throw new IllegalStateException("no such row: " + message);
                }
            }
            for (JsonNode row : type.equals("DELETE") ? JSON.createArrayNode() : message.get("data")) {
                if (rows.put(keyOf(message, row), values(message, row)) != null) {
                    throw new IllegalStateException("there is such a row: " + message);
                }
            }
        }

        private static String keyOf(JsonNode message, JsonNode row) {
            StringBuilder found = new StringBuilder();
            message.get("pkNames").forEach(name -> found.append(row.get(name.asText())).append(','));
            return found.toString();
        }

        private static Map<String, String> values(JsonNode message, JsonNode row) {
            Map<String, String> found = new TreeMap<>();
            row.properties().forEach(field -> {
                String type = message.get("mysqlType").get(field.getKey()).asText();
                String text = field.getValue().isNull() ? null : field.getValue().asText();
                boolean isBinary = type.contains("binary") || type.contains("blob");
                found.put(field.getKey(), text != null && isBinary
                    ? HexFormat.of().formatHex(text.getBytes(StandardCharsets.ISO_8859_1)) : text);
            });
            return found;
        }
    }

    /** A table of Avro in Confluent's frame; a deleted row has a key only. */
    private static class AvroTable extends Table {
        private final Registry registry;

        AvroTable(Registry registry) {
            this.registry = registry;
        }

        @Override
        void apply(byte[] key, byte[] value) throws Exception {
            String name = values(registry.decode(key)).toString();
            if (value == null) {
                rows.remove(name);
            } else {
                rows.put(name, values(registry.decode(value)));
            }
        }

        private static Map<String, String> values(GenericRecord record) {
            Map<String, String> found = new TreeMap<>();
            for (Schema.Field field : record.getSchema().getFields()) {
                found.put(field.name(), text(record.get(field.pos())));
            }
            return found;
        }

        private static String text(Object value) {
            if (value instanceof ByteBuffer bytes) {
                byte[] found = new byte[bytes.remaining()];
                bytes.get(found);
                return HexFormat.of().formatHex(found);
            }
            if (value instanceof BigDecimal number) {
                return number.toPlainString();
            }
            return value == null ? null : value.toString();
        }
    }

    /** A schema registry, and the schemas that it gave. */
    private static class Registry {
        private final HttpClient client = HttpClient.newHttpClient();
        private final Map<Integer, GenericDatumReader<GenericRecord>> readers = new HashMap<>();
        private final GenericData data = new GenericData();
        private final String url;

        Registry(String url) {
            this.url = url;
            data.addLogicalTypeConversion(new Conversions.DecimalConversion());
        }

        GenericRecord decode(byte[] message) throws Exception {
            ByteBuffer frame = ByteBuffer.wrap(message);
            if (frame.get() != 0) {
                throw new IllegalStateException("no message of a registry's schema");
            }
            int id = frame.getInt();
            if (!readers.containsKey(id)) {
                readers.put(id, reader(id));
            }
            var decoder = DecoderFactory.get().binaryDecoder(message, 5, message.length - 5, null);
            return readers.get(id).read(null, decoder);
        }

        private GenericDatumReader<GenericRecord> reader(int id) throws Exception {
            HttpRequest request = HttpRequest.newBuilder(URI.create(url + "/schemas/ids/" + id)).build();
            JsonNode answer = JSON.readTree(client.send(request, BodyHandlers.ofString()).body());
            Schema schema = new Schema.Parser().parse(answer.get("schema").asText());
            return new GenericDatumReader<>(schema, schema, data);
        }
    }
}
