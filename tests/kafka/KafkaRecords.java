import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

/**
 * Kafka's own record code, for test_kafka_classes.py. On stdin a batch a line, in hexadecimal. It is checked and
 * read; on stdout a batch with the same header fields and records, which Kafka has built, or what is wrong.
 */
public class KafkaRecords {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = lines.readLine()) != null) {
            System.out.println(rebuilt(ByteBuffer.wrap(HexFormat.of().parseHex(line))));
        }
    }

    private static String rebuilt(ByteBuffer ours) {
        try {
            RecordBatch batch = MemoryRecords.readableRecords(ours).firstBatch();
            batch.ensureValid();
            MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
                new ByteBufferOutputStream(1024), batch.magic(), Compression.of(batch.compressionType()).build(),
                TimestampType.CREATE_TIME, batch.baseOffset(), 0, batch.producerId(), batch.producerEpoch(),
                batch.baseSequence(), false, false, batch.partitionLeaderEpoch(), Integer.MAX_VALUE);
            for (Record record : batch) {
                builder.append(record);
            }
            ByteBuffer theirs = builder.build().buffer();
            byte[] bytes = new byte[theirs.remaining()];
            theirs.get(bytes);
            return HexFormat.of().formatHex(bytes);
        } catch (Exception error) {
            return "wrong " + String.valueOf(error).split("\n")[0];
        }
    }
}
