import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;

/** The driver's side of the line protocol, and what the environment says about the instance. */
final class LineProtocol {
    static final String EUREKA_URL = System.getenv("EUREKA_URL");
    static final String APP = System.getenv("APP");
    static final String INSTANCE_ID = System.getenv("INSTANCE_ID");
    static final String HOST_NAME = System.getenv("HOST_NAME");
    static final String INSTANCE_PORT = System.getenv("INSTANCE_PORT");
    static final String RENEW_SECS = System.getenv("RENEW_SECS");
    static final String LEASE_SECS = System.getenv("LEASE_SECS");
    static final String FETCH_SECS = System.getenv("FETCH_SECS");

    private static final PrintStream ANSWERS = new PrintStream(new FileOutputStream(FileDescriptor.out), true);

    /** One Eureka client under test. */
    interface Client {
        void start() throws Exception;

        int find(String app) throws Exception;

        void status(String word) throws Exception;

        void leave() throws Exception;
    }

    /** The client has no way to do what was asked. */
    static final class Unsupported extends Exception {
        Unsupported(String reason) {
            super(reason);
        }
    }

    private LineProtocol() {}

    /** Runs the client until it has left, and ends the process. Standard output belongs to the answers alone. */
    static void serve(Client client) throws IOException {
        System.setOut(System.err);
        try {
            client.start();
        } catch (Exception error) {
            fail(error);
            Runtime.getRuntime().halt(1);
        }
        ANSWERS.println("registering {\"id\":\"" + INSTANCE_ID + "\"}");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null && !line.equals("leave"); line = commands.readLine()) {
            answer(client, line);
        }
        try {
            client.leave();
            ANSWERS.println("left");
        } catch (Exception error) {
            fail(error);
            Runtime.getRuntime().halt(1);
        }
        Runtime.getRuntime().halt(0);
    }

    private static void answer(Client client, String line) {
        String[] words = line.split(" ", 2);
        try {
            switch (words[0]) {
                case "find" -> ANSWERS.println("found " + client.find(words[1]));
                case "status" -> {
                    client.status(words[1]);
                    ANSWERS.println("ok");
                }
                default -> throw new IllegalArgumentException("no command " + words[0]);
            }
        } catch (Unsupported reason) {
            ANSWERS.println("unsupported " + reason.getMessage());
        } catch (Exception error) {
            fail(error);
        }
    }

    private static void fail(Exception error) {
        error.printStackTrace();
        ANSWERS.println("error " + error.toString().replaceAll("\\s+", " "));
    }
}
