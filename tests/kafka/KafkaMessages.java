import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.ResponseHeader;

/**
 * Kafka's own classes, for test_kafka_classes.py. On stdin a frame a line: API key, "request" or
 * "response", version, bytes in hexadecimal. Header and message are read and written again; on stdout
 * the line's number and what is wrong, or nothing for frames that come out the same; last, how many did.
 */
public class KafkaMessages {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        int number = 0;
        int equal = 0;
        String line;
        while ((line = lines.readLine()) != null) {
            String wrong = wrong(line.split(" "));
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
        ApiKeys api = ApiKeys.forId(Integer.parseInt(parts[0]));
        boolean request = parts[1].equals("request");
        short version = Short.parseShort(parts[2]);
        byte[] ours = HexFormat.of().parseHex(parts[3]);
        try {
            ByteBuffer buffer = ByteBuffer.wrap(ours);
            ByteArrayOutputStream theirs = new ByteArrayOutputStream();
            if (request) {
                RequestHeader header = RequestHeader.parse(buffer);
                write(theirs, header.data(), header.headerVersion());
            } else {
                ResponseHeader header = ResponseHeader.parse(buffer, api.responseHeaderVersion(version));
                write(theirs, header.data(), header.headerVersion());
            }
            ApiMessageType type = ApiMessageType.fromApiKey(api.id);
            ApiMessage message = request ? type.newRequest() : type.newResponse();
            message.read(new ByteBufferAccessor(buffer), version);
            if (buffer.hasRemaining()) {
                return buffer.remaining() + " bytes were not read";
            }
            write(theirs, message, version);
            return Arrays.equals(ours, theirs.toByteArray())
                ? null
                : "Kafka writes " + HexFormat.of().formatHex(theirs.toByteArray());
        } catch (Exception error) {
            return String.valueOf(error).split("\n")[0];
        }
    }

    private static void write(ByteArrayOutputStream out, ApiMessage message, short version) {
        ByteBuffer written = MessageUtil.toByteBuffer(message, version);
        byte[] bytes = new byte[written.remaining()];
        written.get(bytes);
        out.writeBytes(bytes);
    }
}
