package kit;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cloud.netflix.eureka.server.EnableEurekaServer;

/** Spring's Eureka server as everybody runs it; all settings come from the command line. */
@SpringBootApplication
@EnableEurekaServer
public class SpringServer {
    public static void main(String[] arguments) {
        SpringApplication.run(SpringServer.class, arguments);
    }
}
