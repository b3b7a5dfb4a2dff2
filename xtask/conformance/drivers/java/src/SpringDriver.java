import com.netflix.discovery.EurekaClient;
import com.netflix.discovery.shared.Application;
import com.netflix.discovery.shared.transport.jersey.TransportClientFactories;
import java.util.Map;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.cloud.netflix.eureka.serviceregistry.EurekaRegistration;
import org.springframework.cloud.netflix.eureka.serviceregistry.EurekaServiceRegistry;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;

/** A Spring Boot application as a user has it, without a web server, on the client's default transport. */
public class SpringDriver implements LineProtocol.Client {
    private final String transport;
    private final String backUp;
    private final Class<?>[] moreSettings;
    private ConfigurableApplicationContext application;

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Settings {}

    /**
     * @param transport simple name of the transport factory that must be in use: Spring Cloud chooses in silence
     * @param backUp what the service registry is told when the instance is to be UP again
     */
    SpringDriver(String transport, String backUp, Class<?>... moreSettings) {
        this.transport = transport;
        this.backUp = backUp;
        this.moreSettings = moreSettings;
    }

    public static void main(String[] arguments) throws Exception {
        LineProtocol.serve(new SpringDriver("RestClientTransportClientFactories", "CANCEL_OVERRIDE"));
    }

    @Override
    public void start() {
        application = new SpringApplicationBuilder(Settings.class)
                .sources(moreSettings)
                .web(WebApplicationType.NONE)
                // The driver says when to leave, in order; a signal may just end it.
                .registerShutdownHook(false)
                .properties(Map.ofEntries(
                        Map.entry("spring.main.banner-mode", "off"),
                        Map.entry("spring.application.name", LineProtocol.APP),
                        Map.entry("eureka.client.service-url.defaultZone", LineProtocol.EUREKA_URL + "/"),
                        Map.entry("eureka.client.registry-fetch-interval-seconds", LineProtocol.FETCH_SECS),
                        Map.entry("eureka.client.instance-info-replication-interval-seconds", "1"),
                        Map.entry("eureka.instance.instance-id", LineProtocol.INSTANCE_ID),
                        Map.entry("eureka.instance.hostname", LineProtocol.HOST_NAME),
                        Map.entry("eureka.instance.ip-address", "127.0.0.1"),
                        Map.entry("eureka.instance.non-secure-port", LineProtocol.INSTANCE_PORT),
                        Map.entry("eureka.instance.lease-renewal-interval-in-seconds", LineProtocol.RENEW_SECS),
                        Map.entry("eureka.instance.lease-expiration-duration-in-seconds", LineProtocol.LEASE_SECS),
                        Map.entry("eureka.instance.metadata-map.lang", "java")))
                .run();
        String used = application.getBean(TransportClientFactories.class).getClass().getSimpleName();
        if (!used.equals(transport)) {
            throw new IllegalStateException("the client's transport is " + used);
        }
    }

    @Override
    public int find(String app) {
        Application found = application.getBean(EurekaClient.class).getApplication(app);
        return found == null ? 0 : found.getInstancesAsIsFromEureka().size();
    }

    /** As Spring's service-registry endpoint does it. */
    @Override
    public void status(String word) {
        application.getBean(EurekaServiceRegistry.class).setStatus(
                application.getBean(EurekaRegistration.class), word.equals("UP") ? backUp : word);
    }

    @Override
    public void leave() {
        application.close();
    }
}
