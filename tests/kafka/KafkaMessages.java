import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.message.ApiMessageType;

/**
 * Kafka's own classes, for test_kafka_classes.py. On stdin a message a line: API key, "request" or
 * "response", version, bytes in hexadecimal. It is read and written again; on stdout the line's
 * number and what is wrong, or nothing for lines that come out the same; last, how many did.
 */
public class KafkaMessages {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        int number = 0;
        int equal = 0;
        String line;
        while ((line = lines.readLine()) != null) {
            String wrong = wrong(line.split(" ", -1));
            if (wrong == null) {
                equal++;
            } else {
                System.out.println(number + " " + wrong);
            }
            number++;
        }
        System.out.println("equal " + equal);
    }

    private static String wrong(String[] parts) {
        short version = Short.parseShort(parts[2]);
        byte[] ours = HexFormat.of().parseHex(parts[3]);
        try {
            ApiMessageType type = ApiMessageType.fromApiKey(Short.parseShort(parts[0]));
            ApiMessage message = parts[1].equals("request") ? type.newRequest() : type.newResponse();
            ByteBuffer buffer = ByteBuffer.wrap(ours);
            message.read(new ByteBufferAccessor(buffer), version);
            if (buffer.hasRemaining()) {
                return buffer.remaining() + " bytes were not read";
            }
            ByteBuffer written = MessageUtil.toByteBuffer(message, version);
            byte[] theirs = new byte[written.remaining()];
            written.get(theirs);
            return Arrays.equals(ours, theirs) ? null : "Kafka writes " + HexFormat.of().formatHex(theirs);
        } catch (Exception error) {
            return String.valueOf(error).split("\n")[0];
        }
    }
}
