import java.net.InetAddress;
import java.net.UnknownHostException;

/** Prints the addresses that Java finds for a name, one a line, or the error. */
class Lookup {
    public static void main(String[] args) {
        try {
            for (InetAddress a : InetAddress.getAllByName(args[0])) {
                System.out.println(a.getHostAddress());
            }
        } catch (UnknownHostException e) {
            System.out.println(e.getMessage().contains("Temporary") ? "again" : "none");
        }
    }
}
