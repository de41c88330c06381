import java.io.File;
import java.util.Map;
import org.apache.iceberg.Files;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/** Iceberg's own REST catalog, in front of a SQLite file: IcebergRest PORT DIRECTORY. */
public class IcebergRest {
    public static void main(String[] arguments) throws Exception {
        String directory = arguments[1];
        JdbcCatalog catalog = new JdbcCatalog(properties -> new LocalFiles(directory), null, true);
        catalog.initialize("rest", Map.of(
            "uri", "jdbc:sqlite:" + directory + "/rest.db",
            "warehouse", "file://" + directory + "/warehouse",
            "jdbc.schema-version", "V1",
            "clients", "1"));
        ServletContextHandler context = new ServletContextHandler();
        context.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
        Server server = new Server();
        ServerConnector connector = new ServerConnector(server, new HttpConnectionFactory(new HttpConfiguration()));
        connector.setHost("127.0.0.1");
        connector.setPort(Integer.parseInt(arguments[0]));
        connector.setReuseAddress(true);
        server.addConnector(connector);
        server.setHandler(context);
        server.start();
        server.join();
    }

    /** Files of this machine, by URLs as file:///var/lake; those of a bucket are in the directory. */
    record LocalFiles(String directory) implements FileIO {
        private File file(String location) {
            return location.startsWith("s3:")
                ? new File(directory, location.substring("s3:".length()))
                : new File(location.replaceFirst("^file:(//)?", ""));
        }

        @Override
        public InputFile newInputFile(String location) {
            return Files.localInput(file(location));
        }

        @Override
        public OutputFile newOutputFile(String location) {
            return Files.localOutput(file(location));
        }

        @Override
        public void deleteFile(String location) {
            file(location).delete();
        }
    }
}
