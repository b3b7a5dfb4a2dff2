// Single calls to the registry.
//
//	go run ./operate get ORDERS orders-1
//	go run ./operate list 'app == ORDERS && status == UP'
//	go run ./operate status ORDERS orders-1 OUT_OF_SERVICE
//	go run ./operate clear ORDERS orders-1
//	go run ./operate metadata ORDERS orders-1 version=2
//	go run ./operate health
//	go run ./operate services
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	pb "example.com/eureka/eurekav1"
	"example.com/eureka/registry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
)

// operation is called with the words after its name, as many as it asks for or more.
type operation struct {
	usage string
	words int
	run   func(ctx context.Context, connection *grpc.ClientConn, words []string) error
}

var operations = map[string]operation{
	"get":      {"get APP ID", 2, get},
	"list":     {"list [FILTER]", 0, list},
	"status":   {"status APP ID STATUS", 3, setStatus},
	"clear":    {"clear APP ID", 2, clearStatus},
	"metadata": {"metadata APP ID NAME=VALUE...", 3, updateMetadata},
	"health":   {"health", 0, health},
	"services": {"services", 0, services},
}

func get(ctx context.Context, connection *grpc.ClientConn, words []string) error {
	request := &pb.GetInstanceRequest{App: words[0], InstanceId: words[1]}
	answer, err := pb.NewRegistryClient(connection).GetInstance(ctx, request)
	if err == nil {
		show(answer.Instance)
	}
	return err
}

func list(ctx context.Context, connection *grpc.ClientConn, words []string) error {
	request := &pb.ListApplicationsRequest{Filter: strings.Join(words, " ")}
	for {
		page, err := pb.NewRegistryClient(connection).ListApplications(ctx, request)
		if err != nil {
			return err
		}
		for _, application := range page.Applications {
			for _, instance := range application.Instances {
				show(instance)
			}
		}
		request.PageToken = page.NextPageToken
		if request.PageToken == "" {
			return nil
		}
	}
}

func setStatus(ctx context.Context, connection *grpc.ClientConn, words []string) error {
	value := pb.Status(pb.Status_value["STATUS_"+words[2]])
	request := &pb.SetStatusRequest{App: words[0], InstanceId: words[1], Status: value}
	_, err := pb.NewRegistryClient(connection).SetStatus(ctx, request)
	return err
}

func clearStatus(ctx context.Context, connection *grpc.ClientConn, words []string) error {
	// UP until the instance reports something else. Without a status it would be UNKNOWN and have to register again.
	request := &pb.ClearStatusRequest{App: words[0], InstanceId: words[1], Status: pb.Status_STATUS_UP}
	_, err := pb.NewRegistryClient(connection).ClearStatus(ctx, request)
	return err
}

func updateMetadata(ctx context.Context, connection *grpc.ClientConn, words []string) error {
	metadata := map[string]string{}
	for _, pair := range words[2:] {
		name, value, _ := strings.Cut(pair, "=")
		metadata[name] = value
	}
	request := &pb.UpdateMetadataRequest{App: words[0], InstanceId: words[1], Metadata: metadata}
	_, err := pb.NewRegistryClient(connection).UpdateMetadata(ctx, request)
	return err
}

func show(instance *pb.Instance) {
	var pairs []string
	for name, value := range instance.Metadata {
		pairs = append(pairs, name+"="+value)
	}
	slices.Sort(pairs)
	status := strings.TrimPrefix(instance.Status.String(), "STATUS_")
	fmt.Printf("%s/%s %s %s:%d %s\n", instance.App, instance.InstanceId, status,
		instance.IpAddress, instance.GetPort().GetNumber(), strings.Join(pairs, " "))
}

// "eureka.v1.Registry" says whether to connect at all, ".../reads" whether lists and watches are answered yet.
func health(ctx context.Context, connection *grpc.ClientConn, _ []string) error {
	for _, service := range []string{"eureka.v1.Registry", "eureka.v1.Registry/reads"} {
		request := &grpc_health_v1.HealthCheckRequest{Service: service}
		answer, err := grpc_health_v1.NewHealthClient(connection).Check(ctx, request)
		if err != nil {
			return err
		}
		fmt.Println(service, answer.Status)
	}
	return nil
}

func services(ctx context.Context, connection *grpc.ClientConn, _ []string) error {
	stream, err := grpc_reflection_v1.NewServerReflectionClient(connection).ServerReflectionInfo(ctx)
	if err != nil {
		return err
	}
	question := &grpc_reflection_v1.ServerReflectionRequest_ListServices{}
	if err := stream.Send(&grpc_reflection_v1.ServerReflectionRequest{MessageRequest: question}); err != nil {
		return err
	}
	answer, err := stream.Recv()
	if err != nil {
		return err
	}
	for _, service := range answer.GetListServicesResponse().GetService() {
		fmt.Println(service.Name)
	}
	return stream.CloseSend()
}

func main() {
	servers := flag.String("servers", "127.0.0.1:9761", "`HOST:PORT,...` of the registry")
	flag.Parse()
	operation, known := operations[flag.Arg(0)]
	if !known || flag.NArg() <= operation.words {
		fmt.Fprintln(os.Stderr, "usage: operate [-servers HOST:PORT,...] COMMAND, where COMMAND is one of")
		for _, operation := range operations {
			fmt.Fprintln(os.Stderr, "  ", operation.usage)
		}
		os.Exit(2)
	}
	connection, err := registry.Connect(*servers)
	if err == nil {
		defer connection.Close()
		// Without a deadline a call waits for ever.
		ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
		defer done()
		err = operation.run(ctx, connection, flag.Args()[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", registry.Explain(err))
		os.Exit(1)
	}
}
