package kit;

import com.netflix.config.ConfigurationManager;
import java.io.File;
import java.util.Properties;
import org.apache.catalina.core.StandardContext;
import org.apache.catalina.startup.Tomcat;

/**
 * The classic Netflix server under /eureka on an embedded Tomcat.
 *
 * Arguments: address, port, the folder of the web application, a folder for Tomcat's files, then settings `key=value`.
 */
public class NetflixServer {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        for (int i = 4; i < arguments.length; i++) {
            String[] setting = arguments[i].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        ConfigurationManager.loadProperties(settings);
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(arguments[3]);
        tomcat.setPort(Integer.parseInt(arguments[1]));
        tomcat.getConnector().setProperty("address", arguments[0]);
        StandardContext context =
            (StandardContext) tomcat.addWebapp("/eureka", new File(arguments[2]).getAbsolutePath());
        context.setParentClassLoader(NetflixServer.class.getClassLoader());
        context.setDelegate(true);
        tomcat.start();
        tomcat.getServer().await();
    }
}
