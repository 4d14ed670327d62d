import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/**
 * Java's own answers, for test_java_regex.py: pattern TAB name on stdin, a line each; on stdout
 * the same and whether the whole name matches, or INVALID.
 *
 * java JavaRegexAnswers.java < questions > java_regex_answers.tsv
 */
public class JavaRegexAnswers {
    public static void main(String[] arguments) throws Exception {
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = questions.readLine()) != null) {
            String[] parts = line.split("\t", -1);
            System.out.println(parts[0] + "\t" + parts[1] + "\t" + answer(parts[0], parts[1]));
        }
    }

    private static String answer(String pattern, String name) {
        try {
            return String.valueOf(Pattern.compile(pattern).matcher(name).matches());
        } catch (PatternSyntaxException refused) {
            return "INVALID";
        }
    }
}
