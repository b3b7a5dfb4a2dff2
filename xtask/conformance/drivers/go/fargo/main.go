// fargo in JSON or XML (argument: json or xml): one call per request; the driver beats and fetches.
package main

import (
	"os"
	"strings"
	"sync"
	"time"

	"conformance/protocol"

	"github.com/hudl/fargo"
)

func main() {
	connection := fargo.NewConn(protocol.EurekaURL)
	connection.UseJson = os.Args[1] == "json"
	instance := &fargo.Instance{
		InstanceId:       protocol.InstanceID,
		HostName:         protocol.HostName,
		App:              protocol.App,
		IPAddr:           "127.0.0.1",
		VipAddress:       strings.ToLower(protocol.App),
		SecureVipAddress: strings.ToLower(protocol.App),
		Port:             protocol.InstancePort,
		HomePageUrl:      protocol.Home,
		StatusPageUrl:    protocol.Home + "info",
		HealthCheckUrl:   protocol.Home + "health",
		PortEnabled:      true,
		SecurePort:       443,
		Status:           fargo.UP,
		DataCenterInfo:   fargo.DataCenterInfo{Name: fargo.MyOwn},
		LeaseInfo: fargo.LeaseInfo{
			RenewalIntervalInSecs: int32(protocol.RenewSecs),
			DurationInSecs:        int32(protocol.LeaseSecs),
		},
	}
	instance.SetMetadataString("lang", "go")
	if !connection.UseJson {
		// As the client's guide registers in XML: without an id, so that the host name is the id.
		instance.InstanceId = ""
		instance.UniqueID = func(i fargo.Instance) string { return i.HostName }
	}
	protocol.Serve(&client{connection: &connection, instance: instance})
}

type client struct {
	connection *fargo.EurekaConnection
	instance   *fargo.Instance
	loops      []*protocol.Loop

	lock     sync.Mutex
	registry map[string]*fargo.Application
}

func (c *client) Start() (string, error) {
	c.connection.Timeout = 5 * time.Second
	if err := c.connection.RegisterInstance(c.instance); err != nil {
		return "", err
	}
	if err := c.fetch(); err != nil {
		return "", err
	}
	c.loops = []*protocol.Loop{
		protocol.NewLoop(protocol.RenewSecs, c.renew),
		protocol.NewLoop(protocol.FetchSecs, c.fetch),
	}
	return c.instance.Id(), nil
}

func (c *client) renew() error {
	err := c.connection.HeartBeatInstance(c.instance)
	if code, ok := fargo.HTTPResponseStatusCode(err); ok && code == 404 {
		return c.connection.ReregisterInstance(c.instance)
	}
	return err
}

func (c *client) fetch() error {
	applications, err := c.connection.GetApps()
	if err != nil {
		return err
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	c.registry = applications
	return nil
}

func (c *client) Find(app string) (int, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if application := c.registry[app]; application != nil {
		return len(application.Instances), nil
	}
	return 0, nil
}

func (c *client) Status(word string) error {
	return c.connection.UpdateInstanceStatus(c.instance, fargo.StatusType(word))
}

func (c *client) Leave() error {
	for _, loop := range c.loops {
		loop.Stop()
	}
	return c.connection.DeregisterInstance(c.instance)
}
