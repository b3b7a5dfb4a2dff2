import com.netflix.appinfo.ApplicationInfoManager;
import com.netflix.appinfo.InstanceInfo.InstanceStatus;
import com.netflix.appinfo.MyDataCenterInstanceConfig;
import com.netflix.appinfo.providers.EurekaConfigBasedInstanceInfoProvider;
import com.netflix.config.ConfigurationManager;
import com.netflix.discovery.DefaultEurekaClientConfig;
import com.netflix.discovery.DiscoveryClient;
import com.netflix.discovery.shared.Application;
import java.util.Properties;

/** The plain Netflix client with its own transport (Jersey 1) and its own configuration (Archaius). */
public class NetflixDriver implements LineProtocol.Client {
    private ApplicationInfoManager instance;
    private DiscoveryClient client;

    public static void main(String[] arguments) throws Exception {
        LineProtocol.serve(new NetflixDriver());
    }

    @Override
    public void start() {
        ConfigurationManager.loadProperties(settings());
        MyDataCenterInstanceConfig config = new MyDataCenterInstanceConfig() {
            @Override
            public String getHostName(boolean refresh) {
                return LineProtocol.HOST_NAME;
            }

            @Override
            public String getIpAddress() {
                return "127.0.0.1";
            }
        };
        instance = new ApplicationInfoManager(config, new EurekaConfigBasedInstanceInfoProvider(config).get());
        client = new DiscoveryClient(instance, new DefaultEurekaClientConfig());
        instance.setInstanceStatus(InstanceStatus.UP);
    }

    private static Properties settings() {
        Properties settings = new Properties();
        settings.put("eureka.shouldUseDns", "false");
        settings.put("eureka.region", "default");
        settings.put("eureka.serviceUrl.default", LineProtocol.EUREKA_URL + "/");
        settings.put("eureka.name", LineProtocol.APP);
        settings.put("eureka.vipAddress", LineProtocol.APP.toLowerCase());
        settings.put("eureka.secureVipAddress", LineProtocol.APP.toLowerCase());
        settings.put("eureka.instanceId", LineProtocol.INSTANCE_ID);
        settings.put("eureka.port", LineProtocol.INSTANCE_PORT);
        settings.put("eureka.lease.renewalInterval", LineProtocol.RENEW_SECS);
        settings.put("eureka.lease.duration", LineProtocol.LEASE_SECS);
        settings.put("eureka.client.refresh.interval", LineProtocol.FETCH_SECS);
        settings.put("eureka.appinfo.replicate.interval", "1");
        settings.put("eureka.metadata.lang", "java");
        return settings;
    }

    @Override
    public int find(String app) {
        Application found = client.getApplication(app);
        return found == null ? 0 : found.getInstancesAsIsFromEureka().size();
    }

    /** The client reports its status by registering again. */
    @Override
    public void status(String word) throws LineProtocol.Unsupported {
        if (word.equals("OUT_OF_SERVICE")) {
            throw new LineProtocol.Unsupported("the client has no override, and a server keeps a live instance UP when it registers as this");
        }
        instance.setInstanceStatus(InstanceStatus.valueOf(word));
    }

    @Override
    public void leave() {
        client.shutdown();
    }
}
