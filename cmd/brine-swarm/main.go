// Command brine-swarm runs thousands of minions in one process to load a master, brine's or a stock one. For every
// line that it reads it writes its counters as a line of JSON. It ends at the end of its input.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"github.com/brine-salt/brine/internal/swarm"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/transport/tcp"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// swarmGC lets the heap grow fivefold: memory is plentiful, and the processors are for the master under test.
const swarmGC = 400

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "brine-swarm:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	o := swarm.Options{Dialer: zeromq.New()}
	f := flag.NewFlagSet("brine-swarm", flag.ContinueOnError)
	masters := f.String("masters", "127.0.0.1:4506",
		"request addresses of masters, separated by commas; minions begin with one after the other")
	over := f.String("transport", "zeromq", "zeromq or tcp")
	key := f.String("key", "", "PEM file with the private key of all minions; one is made if empty")
	showKey := f.Bool("show-key", false, "write the public key to standard output first")
	verbose := f.Bool("v", false, "log what goes wrong")
	f.IntVar(&o.Minions, "n", 1000, "how many minions")
	f.StringVar(&o.Prefix, "prefix", "swarm-", "what their ids begin with")
	f.IntVar(&o.Parallel, "parallel", 0, "how many sign in at the same time; 0 is all")
	f.BoolVar(&o.Spread, "spread", false, "give each a source address of its own in 127.0.0.0/8")
	f.IntVar(&o.KeepConns, "keep", 0,
		"how many keep a request connection, as minions of 3006.28, 3007.15 and 3008 do; older "+
			"ones open one for each request")
	f.IntVar(&o.OneOff, "one-off", 0,
		"how many of the others may have a request connection at the same time, where "+
			"descriptors are short; 0 is all")
	f.BoolVar(&o.Pillar, "pillar", false, "ask for the pillar at the start")
	setGrain := func(text string) error {
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			return fmt.Errorf("grain %q has no colon", text)
		}
		if o.Grains == nil {
			o.Grains = make(map[string]any)
		}
		o.Grains[name] = value
		return nil
	}
	f.Func("grain", "name:value that the pillar is asked with; may be repeated", setGrain)
	f.BoolVar(&o.StartEvent, "start", false, "fire the start event")
	if err := f.Parse(args); err != nil {
		return err
	}
	for a := range strings.SplitSeq(*masters, ",") {
		o.Masters = append(o.Masters, swarm.Addr{Request: a})
	}
	switch *over {
	case "zeromq":
	case "tcp":
		o.Dialer, o.Presence = tcp.New(), true
	default:
		return fmt.Errorf("unknown transport %q", *over)
	}
	if *key != "" {
		b, err := os.ReadFile(*key)
		if err != nil {
			return err
		}
		if o.Key, err = crypt.ParsePrivateKey(b); err != nil {
			return err
		}
	}
	if *verbose {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr,
			&slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	debug.SetGCPercent(swarmGC)
	s, err := swarm.New(o)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	if *showKey {
		if err := out.Encode(s.PublicKey()); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if err := out.Encode(s.Stats()); err != nil {
			return err
		}
	}
	cancel()
	<-done
	return nil
}
