// Follows what is registered.
//
//	go run ./watch -servers 127.0.0.1:9761 -filter 'app == ORDERS'
//
// Keeps a copy of the instances that the filter selects, and prints every change of it. When the connection breaks it goes
// on where it was, at this server or another one.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	pb "example.com/eureka/eurekav1"
	"example.com/eureka/registry"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type key struct{ app, id string }

// Copy is the instances that a filter selects, by application and id, as of the cursor.
type Copy struct {
	filter    string
	cursor    string
	instances map[key]*pb.Instance
	incoming  map[key]*pb.Instance
}

// Follow takes over what one stream tells, until it ends.
func (copy *Copy) Follow(ctx context.Context, client pb.RegistryClient) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	stream, err := client.Watch(ctx, &pb.WatchRequest{Cursor: copy.cursor, Filter: copy.filter})
	if err != nil {
		return err
	}
	for {
		answer, err := stream.Recv()
		if err != nil {
			return err
		}
		copy.take(answer)
	}
}

func (copy *Copy) take(answer *pb.WatchResponse) {
	switch event := answer.Event.(type) {
	case *pb.WatchResponse_SnapshotBegin:
		copy.incoming = map[key]*pb.Instance{}
		fmt.Println("snapshot", event.SnapshotBegin.Reason)
	case *pb.WatchResponse_SnapshotPage:
		for _, instance := range event.SnapshotPage.Instances {
			copy.incoming[key{instance.App, instance.InstanceId}] = instance
		}
	case *pb.WatchResponse_SnapshotEnd:
		// Only a whole snapshot replaces what was known: a stream may break in the middle of one.
		copy.instances = copy.incoming
		for _, instance := range copy.instances {
			fmt.Println("there", describe(instance))
		}
		fmt.Println("synced", event.SnapshotEnd.Instances, answer.Cursor)
	case *pb.WatchResponse_Change:
		copy.change(event.Change)
	}
	// Within a snapshot there is none: the old one stays valid until the new one is complete.
	if answer.Cursor != "" {
		copy.cursor = answer.Cursor
	}
}

func (copy *Copy) change(change *pb.Change) {
	at := key{change.Instance.App, change.Instance.InstanceId}
	if change.Action == pb.Action_ACTION_DELETED {
		delete(copy.instances, at)
	} else {
		copy.instances[at] = change.Instance
	}
	fmt.Println(
		strings.TrimPrefix(change.Action.String(), "ACTION_"),
		describe(change.Instance),
		strings.TrimPrefix(change.Cause.String(), "CAUSE_"),
		"by",
		strings.TrimPrefix(change.Author.String(), "AUTHOR_"),
	)
}

func describe(instance *pb.Instance) string {
	status := strings.TrimPrefix(instance.Status.String(), "STATUS_")
	return fmt.Sprintf("%s/%s %s", instance.App, instance.InstanceId, status)
}

func main() {
	servers := flag.String("servers", "127.0.0.1:9761", "`HOST:PORT,...` of the registry")
	filter := flag.String("filter", "", "which instances; empty for all")
	cursor := flag.String("cursor", "", "begin after this one, without a snapshot if the server can")
	flag.Parse()

	connection, err := registry.Connect(*servers)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	defer connection.Close()
	client := pb.NewRegistryClient(connection)
	copy := &Copy{filter: *filter, cursor: *cursor, instances: map[key]*pb.Instance{}}
	for {
		err := copy.Follow(context.Background(), client)
		switch status.Code(err) {
		// A filter or cursor that is none, or a server that has no such call, will not get better.
		case codes.InvalidArgument, codes.Unimplemented:
			fmt.Fprintln(os.Stderr, "error:", registry.Explain(err))
			os.Exit(1)
		}
		fmt.Println("lost", registry.Explain(err))
		time.Sleep(registry.Pause(err))
	}
}
