// Package registry is what the programs beside it share: the connection to the servers, and what an error says.
package registry

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
)

// Every call of the registry may be tried again, so a unary one that meets a server that is stopping, or too busy, is.
const retries = `{"methodConfig": [{
	"name": [{"service": "eureka.v1.Registry"}],
	"retryPolicy": {
		"maxAttempts": 4,
		"initialBackoff": "0.2s",
		"maxBackoff": "2s",
		"backoffMultiplier": 2,
		"retryableStatusCodes": ["UNAVAILABLE"]
	}
}]}`

// Connect leads to the first of "HOST:PORT,HOST:PORT,..." that answers; when it fails, to the next one.
func Connect(servers string) (*grpc.ClientConn, error) {
	var endpoints []resolver.Endpoint
	for _, server := range strings.Split(servers, ",") {
		endpoints = append(endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: server}}})
	}
	listed := manual.NewBuilderWithScheme("listed")
	listed.InitialState(resolver.State{Endpoints: endpoints})
	// gRPC's own longest pause between two attempts is two minutes: longer than a lease.
	pauses := backoff.DefaultConfig
	pauses.MaxDelay = 5 * time.Second
	return grpc.NewClient("listed:///servers",
		grpc.WithResolvers(listed),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		// A connection that died without a word is found out after 20 + 5 seconds, well within a lease.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: pauses, MinConnectTimeout: 5 * time.Second}),
		grpc.WithDefaultServiceConfig(retries),
	)
}

// Explain gives an error in one line: "NotFound NOT_REGISTERED: what the server said".
func Explain(err error) string {
	said := status.Convert(err)
	words := []string{said.Code().String()}
	if reason := Reason(err); reason != "" {
		words = append(words, reason)
	}
	text := said.Message()
	var fields []string
	for _, violation := range detail[*errdetails.BadRequest](err).GetFieldViolations() {
		fields = append(fields, violation.GetField()+": "+violation.GetDescription())
	}
	if len(fields) > 0 {
		text = strings.Join(fields, "; ")
	}
	return fmt.Sprintf("%s: %s", strings.Join(words, " "), text)
}

// Reason is the one in ErrorInfo, such as NOT_REGISTERED; empty if the error gives none.
func Reason(err error) string {
	return detail[*errdetails.ErrorInfo](err).GetReason()
}

// Pause is how long the server asks to wait (RetryInfo); a second if it does not.
func Pause(err error) time.Duration {
	if asked := detail[*errdetails.RetryInfo](err).GetRetryDelay().AsDuration(); asked > 0 {
		return asked
	}
	return time.Second
}

// detail is the one of a kind that an error carries; nil, which reads as empty, if there is none.
func detail[Kind any](err error) (found Kind) {
	for _, each := range status.Convert(err).Details() {
		if fits, ok := each.(Kind); ok {
			return fits
		}
	}
	return found
}
