// A service that is registered as long as it runs.
//
//	go run ./service -servers 127.0.0.1:9761 -app ORDERS -id orders-1 -port 8080
//
// It registers, renews its lease on one stream, registers again when the server asks for it, and cancels when it is told to
// stop (SIGTERM or Ctrl-C).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	pb "example.com/eureka/eurekav1"
	"example.com/eureka/registry"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Lease keeps one instance registered.
type Lease struct {
	registry   pb.RegistryClient
	instance   *pb.Instance
	registered bool
}

// Hold returns when the context is done and the instance cancelled, or after an error that trying again does not mend.
func (lease *Lease) Hold(ctx context.Context) error {
	for ctx.Err() == nil {
		err := lease.register(ctx)
		if err == nil {
			err = lease.keepAlive(ctx)
		}
		if ctx.Err() != nil {
			break
		}
		if err == nil {
			continue
		}
		switch status.Code(err) {
		// The server is not there, stops, or is too busy: what was asked is still right. Anything else is a mistake of ours.
		case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
			fmt.Println("trying again:", registry.Explain(err))
			select {
			case <-time.After(registry.Pause(err)):
			case <-ctx.Done():
			}
		default:
			return err
		}
	}
	return lease.cancel()
}

func (lease *Lease) register(ctx context.Context) error {
	if lease.registered {
		return nil
	}
	ctx, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	if _, err := lease.registry.Register(ctx, &pb.RegisterRequest{Instance: lease.instance}); err != nil {
		return err
	}
	lease.registered = true
	fmt.Printf("registered %s/%s\n", lease.instance.App, lease.instance.InstanceId)
	return nil
}

// keepAlive renews until the stream ends. On a new stream, perhaps to another server, the first renewal goes out at once.
func (lease *Lease) keepAlive(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	stream, err := lease.registry.KeepAlive(ctx)
	if err != nil {
		return err
	}
	interval := time.Duration(lease.instance.LeaseTerms.RenewalIntervalSecs) * time.Second
	for {
		// What a failed Send means is told by Recv.
		if err := stream.Send(lease.renewal()); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for _, result := range answer.Results {
			if result.Outcome != pb.RenewalOutcome_RENEWAL_OUTCOME_RENEWED {
				fmt.Println("registering again:", result.Outcome)
				lease.registered = false
				if err := lease.register(ctx); err != nil {
					return err
				}
			}
		}
		select {
		case <-time.After(interval):
		// The stream has ended: Recv says why.
		case <-stream.Context().Done():
		}
	}
}

func (lease *Lease) renewal() *pb.KeepAliveRequest {
	return &pb.KeepAliveRequest{Renewals: []*pb.Renewal{{
		App:             lease.instance.App,
		InstanceId:      lease.instance.InstanceId,
		LastDirtyUnixMs: lease.instance.LastDirtyUnixMs,
	}}}
}

// The end of the stream is no cancel: without this the instance stays until its lease runs out.
func (lease *Lease) cancel() error {
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	request := &pb.CancelRequest{App: lease.instance.App, InstanceId: lease.instance.InstanceId}
	if _, err := lease.registry.Cancel(ctx, request); err != nil && status.Code(err) != codes.NotFound {
		return err
	}
	fmt.Printf("cancelled %s/%s\n", lease.instance.App, lease.instance.InstanceId)
	return nil
}

func main() {
	servers := flag.String("servers", "127.0.0.1:9761", "`HOST:PORT,...` of the registry")
	app := flag.String("app", "ORDERS", "application")
	id := flag.String("id", "orders-1", "instance id")
	host := flag.String("host", "localhost", "host name")
	ip := flag.String("ip", "127.0.0.1", "address")
	port := flag.Int("port", 8080, "port")
	renew := flag.Uint("renew", 30, "`seconds` between renewals")
	lease := flag.Uint("lease", 90, "`seconds` without renewal after which the lease runs out")
	flag.Parse()

	// The version of all this. It stays the same as long as the content does, also when it is registered again.
	version := time.Now().UnixMilli()
	instance := &pb.Instance{
		App:        *app,
		InstanceId: *id,
		HostName:   *host,
		IpAddress:  *ip,
		Status:     pb.Status_STATUS_UP,
		Port:       &pb.Port{Number: int32(*port), Enabled: true},
		VipAddress: strings.ToLower(*app),
		Metadata:   map[string]string{"language": "go"},
		LeaseTerms: &pb.LeaseTerms{
			RenewalIntervalSecs: uint32(*renew),
			DurationSecs:        uint32(*lease),
		},
		LastDirtyUnixMs: &version,
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	connection, err := registry.Connect(*servers)
	if err == nil {
		defer connection.Close()
		err = (&Lease{registry: pb.NewRegistryClient(connection), instance: instance}).Hold(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", registry.Explain(err))
		os.Exit(1)
	}
}
