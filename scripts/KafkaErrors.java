import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** For kafka_messages.py: a line for each of Kafka's error codes, name TAB code TAB whether a client may retry. */
public class KafkaErrors {
    public static void main(String[] arguments) {
        for (Errors error : Errors.values()) {
            System.out.println(error + "\t" + error.code() + "\t" + (error.exception() instanceof RetriableException));
        }
    }
}
