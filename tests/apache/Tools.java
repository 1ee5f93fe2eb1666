// Runs Apache's console tools one after another in one JVM, whose start costs seconds where a tool takes a
// moment. A line on stdin is the main class and its arguments, with tabs between; the answer on stdout is a
// line with the exit code and the length of what the tool printed, and then that.
//
// For tools that end by themselves and read no input. Run: java -cp JARS Tools

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.utils.internals.Exit;

public final class Tools {
    /** Ends a tool where it would end the process. Some catch it, so the code is kept beside. */
    static final class Ended extends RuntimeException {
        private static final long serialVersionUID = 1;
    }

    static Integer ended;
    static final List<Runnable> HOOKS = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.setIn(InputStream.nullInputStream());
        Exit.setExitProcedure((code, message) -> end(code));
        Exit.setHaltProcedure((code, message) -> end(code));
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\t", -1);
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            PrintStream stream = new PrintStream(printed, true);
            System.setOut(stream);
            System.setErr(stream);
            int code = run(words[0], Arrays.copyOfRange(words, 1, words.length));
            stream.flush();
            answers.println(code + " " + printed.size());
            printed.writeTo(answers);
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    static void end(int code) {
        if (ended == null) ended = code;
        throw new Ended();
    }

    static int run(String name, String[] words) throws Exception {
        ended = null;
        HOOKS.clear();
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) words);
        } catch (InvocationTargetException error) {
            if (!(error.getCause() instanceof Ended)) {
                error.getCause().printStackTrace();
                return 1;
            }
        }
        HOOKS.forEach(Runnable::run);
        return ended == null ? 0 : ended;
    }
}
