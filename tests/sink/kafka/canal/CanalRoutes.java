import com.alibaba.otter.canal.connector.core.producer.MQMessageUtils;
import com.alibaba.otter.canal.protocol.CanalEntry;
import com.alibaba.otter.canal.protocol.FlatMessage;
import com.alibaba.otter.canal.protocol.Message;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Scanner;

/**
 * Adds to each line of routes.tsv what Canal 1.1.7 itself chooses: the partition of a row, or the topic of a table.
 * Needs com.alibaba.otter:connector.core:1.1.7, canal.protocol:1.1.7, canal.common:1.1.7 and commons-lang:2.6.
 */
public class CanalRoutes {
    public static void main(String[] arguments) {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        try (Scanner lines = new Scanner(System.in, StandardCharsets.UTF_8)) {
            while (lines.hasNextLine()) {
                String line = lines.nextLine();
                String[] fields = line.split("\t", -1);
                out.println(line + "\t" + (fields[0].equals("topic") ? topic(fields) : partition(fields)));
            }
        }
    }

    private static String topic(String[] fields) {
        CanalEntry.Header header =
            CanalEntry.Header.newBuilder().setSchemaName(fields[2]).setTableName(fields[3]).build();
        CanalEntry.Entry entry =
            CanalEntry.Entry.newBuilder().setHeader(header).setEntryType(CanalEntry.EntryType.ROWDATA).build();
        Message message = new Message(1, new ArrayList<>(List.of(entry)));
        // CanalKafkaProducer replaces the points.
        return MQMessageUtils.messageTopics(message, "rest", fields[1]).keySet().iterator().next().replace('.', '_');
    }

    private static int partition(String[] fields) {
        FlatMessage message = new FlatMessage(1);
        message.setIsDdl(false);
        message.setType("INSERT");
        message.setDatabase(fields[2]);
        message.setTable(fields[3]);
        Map<String, String> row = new LinkedHashMap<>();
        List<String> key = new ArrayList<>();
        for (String field : fields[6].split("&", -1)) {
            String name = field.substring(0, field.indexOf('='));
            String value = field.substring(field.indexOf('=') + 1);
            row.put(name, value.equals("NULL") ? null : value);
            if (List.of(fields[5].split(",")).contains(name)) {
                key.add(name);
            }
        }
        message.setPkNames(key.isEmpty() ? null : key);
        message.setData(new ArrayList<>(List.of(row)));
        FlatMessage[] found = MQMessageUtils.messagePartition(
            message, Integer.valueOf(fields[4]), fields[1], fields[0].equals("hash with schema"));
        for (int i = 0; i < found.length; i++) {
            if (found[i] != null) {
                return i;
            }
        }
        throw new IllegalStateException();
    }
}
