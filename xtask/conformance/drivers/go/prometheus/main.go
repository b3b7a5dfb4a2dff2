// Prometheus' own Eureka discovery (XML): it reads only, and lists every instance as a target.
package main

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"conformance/protocol"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/eureka"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

const appName = model.LabelName(model.MetaLabelPrefix + "eureka_app_name")

func main() {
	protocol.Serve(&client{found: map[model.LabelValue]int{}})
}

type client struct {
	stop context.CancelFunc

	lock  sync.Mutex
	found map[model.LabelValue]int
}

func (c *client) Start() (string, error) {
	settings := eureka.DefaultSDConfig
	settings.Server = protocol.EurekaURL
	settings.RefreshInterval = model.Duration(time.Duration(protocol.FetchSecs) * time.Second)
	registerer := prometheus.NewRegistry()
	discoverer, err := settings.NewDiscoverer(discovery.DiscovererOptions{
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Metrics: settings.NewDiscovererMetrics(registerer, discovery.NewRefreshMetrics(registerer)),
		SetName: "conformance",
	})
	if err != nil {
		return "", err
	}
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	updates := make(chan []*targetgroup.Group)
	go discoverer.Run(ctx, updates)
	go c.follow(updates)
	return "", nil
}

func (c *client) follow(updates <-chan []*targetgroup.Group) {
	for groups := range updates {
		found := map[model.LabelValue]int{}
		for _, group := range groups {
			for _, target := range group.Targets {
				found[target[appName]]++
			}
		}
		c.lock.Lock()
		c.found = found
		c.lock.Unlock()
	}
}

func (c *client) Find(app string) (int, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.found[model.LabelValue(app)], nil
}

func (c *client) Status(string) error {
	return protocol.Unsupported("it only reads")
}

func (c *client) Leave() error {
	c.stop()
	return nil
}
