// Package protocol is the driver's side of the line protocol, and what the environment says about the instance.
package protocol

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What the environment says.
var (
	EurekaURL    = os.Getenv("EUREKA_URL")
	App          = os.Getenv("APP")
	InstanceID   = os.Getenv("INSTANCE_ID")
	HostName     = os.Getenv("HOST_NAME")
	InstancePort = number("INSTANCE_PORT")
	Home         = fmt.Sprintf("http://%s:%d/", HostName, InstancePort)
	RenewSecs    = number("RENEW_SECS")
	LeaseSecs    = number("LEASE_SECS")
	FetchSecs    = number("FETCH_SECS")
)

// Client is one Eureka client under test.
type Client interface {
	// Start registers; the id is what the server knows the instance by.
	Start() (id string, err error)
	// Find counts the instances of an application that the client lists now.
	Find(app string) (int, error)
	Status(word string) error
	Leave() error
}

// Unsupported says why a client has no way to do what was asked.
type Unsupported string

func (reason Unsupported) Error() string { return string(reason) }

// Serve runs the client until it has left, and ends the process.
func Serve(client Client) {
	// Standard output belongs to the answers alone: whatever a library prints there goes to the log.
	answers := os.Stdout
	os.Stdout = os.Stderr
	id, err := client.Start()
	if err != nil {
		fmt.Fprintln(answers, failure(err))
		os.Exit(1)
	}
	quoted, _ := json.Marshal(id)
	fmt.Fprintf(answers, "registering {\"id\":%s}\n", quoted)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() && lines.Text() != "leave" {
		fmt.Fprintln(answers, outcome(client, lines.Text()))
	}
	if err := client.Leave(); err != nil {
		fmt.Fprintln(answers, failure(err))
		os.Exit(1)
	}
	fmt.Fprintln(answers, "left")
	os.Exit(0)
}

func outcome(client Client, line string) string {
	command, argument, _ := strings.Cut(line, " ")
	var err error
	switch command {
	case "find":
		var count int
		if count, err = client.Find(argument); err == nil {
			return fmt.Sprintf("found %d", count)
		}
	case "status":
		if err = client.Status(argument); err == nil {
			return "ok"
		}
	default:
		err = fmt.Errorf("no command %s", command)
	}
	if reason := Unsupported(""); errors.As(err, &reason) {
		return "unsupported " + string(reason)
	}
	return failure(err)
}

func failure(err error) string {
	return "error " + strings.Join(strings.Fields(err.Error()), " ")
}

func number(name string) int {
	value, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		fmt.Printf("error %s is not a number\n", name)
		os.Exit(1)
	}
	return value
}

// Loop calls work every so many seconds until stopped; a failure is logged and the next turn tries again.
type Loop struct {
	quit chan struct{}
	done sync.WaitGroup
}

// NewLoop starts a loop.
func NewLoop(seconds int, work func() error) *Loop {
	loop := &Loop{quit: make(chan struct{})}
	loop.done.Go(func() {
		ticker := time.NewTicker(time.Duration(seconds) * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-loop.quit:
				return
			case <-ticker.C:
				if err := work(); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}
		}
	})
	return loop
}

// Stop returns when no call is under way any more.
func (loop *Loop) Stop() {
	close(loop.quit)
	loop.done.Wait()
}
