// go-kit's sd/eureka on fargo (JSON): its registrar registers, renews and leaves; one instancer follows each application.
package main

import (
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"conformance/protocol"

	"github.com/go-kit/kit/sd"
	"github.com/go-kit/kit/sd/eureka"
	"github.com/go-kit/log"
	"github.com/hudl/fargo"
)

func main() {
	connection := fargo.NewConn(protocol.EurekaURL)
	connection.UseJson = true
	connection.Timeout = 5 * time.Second
	connection.PollInterval = time.Duration(protocol.FetchSecs) * time.Second
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
		Status:           fargo.UP,
		DataCenterInfo:   fargo.DataCenterInfo{Name: fargo.MyOwn},
		LeaseInfo: fargo.LeaseInfo{
			RenewalIntervalInSecs: int32(protocol.RenewSecs),
			DurationInSecs:        int32(protocol.LeaseSecs),
		},
	}
	logger := log.NewLogfmtLogger(os.Stderr)
	protocol.Serve(&client{
		connection: &connection,
		logger:     logger,
		registrar:  eureka.NewRegistrar(&connection, instance, logger),
		followed:   map[string]*follower{},
	})
}

type client struct {
	connection *fargo.EurekaConnection
	logger     log.Logger
	registrar  *eureka.Registrar
	followed   map[string]*follower
}

// The registrar logs a failed registration and carries on, as it is meant to.
func (c *client) Start() (string, error) {
	c.registrar.Register()
	return protocol.InstanceID, nil
}

// The first question about an application starts an instancer, which then polls for it.
func (c *client) Find(app string) (int, error) {
	if c.followed[app] == nil {
		c.followed[app] = follow(eureka.NewInstancer(c.connection, app, c.logger))
	}
	event := c.followed[app].latest()
	if errors.As(event.Err, &fargo.AppNotFoundError{}) {
		return 0, nil
	}
	return len(event.Instances), event.Err
}

func (c *client) Status(string) error {
	return protocol.Unsupported("the registrar has no call for it")
}

func (c *client) Leave() error {
	c.registrar.Deregister()
	return nil
}

type follower struct {
	lock  sync.Mutex
	event sd.Event
}

// The instancer sends its present state at once, and a new one after each change.
func follow(instancer *eureka.Instancer) *follower {
	events := make(chan sd.Event, 1)
	instancer.Register(events)
	f := &follower{event: <-events}
	go func() {
		for event := range events {
			f.lock.Lock()
			f.event = event
			f.lock.Unlock()
		}
	}()
	return f
}

func (f *follower) latest() sd.Event {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.event
}
