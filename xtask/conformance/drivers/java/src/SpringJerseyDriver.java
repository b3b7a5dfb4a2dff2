import com.netflix.discovery.Jersey3DiscoveryClientOptionalArgs;
import com.netflix.discovery.shared.transport.jersey3.Jersey3TransportClientFactories;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** The Spring client on Netflix's Jersey transport, which Spring Cloud 2025.1 sets up by itself in a server only. */
public class SpringJerseyDriver {
    public static void main(String[] arguments) throws Exception {
        // Not the end of the override: the server answers the next heartbeat 404 then, and with Spring Cloud's error
        // document in that answer this transport never registers again.
        String transport = Jersey3TransportClientFactories.class.getSimpleName();
        LineProtocol.serve(new SpringDriver(transport, "UP", Transport.class));
    }

    @Configuration(proxyBeanMethods = false)
    static class Transport {
        @Bean
        Jersey3TransportClientFactories transportClientFactories() {
            return new Jersey3TransportClientFactories();
        }

        @Bean
        Jersey3DiscoveryClientOptionalArgs optionalArguments() {
            return new Jersey3DiscoveryClientOptionalArgs();
        }
    }
}
