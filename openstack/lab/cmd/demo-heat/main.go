//go:build linux

// Demo-heat shows Heat as a Salt master: it starts a real Heat on loopback, creates a stack with three servers and
// ordered deployments on each, prints the events, and cleans up. It runs as root on Debian 12, in the directory
// openstack of the sources: make demo-heat.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/brine-salt/brine/openstack/lab"
)

//go:embed template.yaml
var template string

const stack = "demo"

var begin = time.Now()

func say(format string, args ...any) {
	fmt.Printf("%6.1f s  %s\n", time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
}

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "brine-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	say("building brine-master and brine-minion")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", dir, "./cmd/brine-master", "./cmd/brine-minion")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build: %w\n%s", err, out)
	}
	python, err := filepath.Abs("python")
	if err != nil {
		return err
	}
	say("starting MariaDB, RabbitMQ, keystone, heat-api, heat-api-cfn and heat-engine (the first time takes a minute)")
	l, err := lab.Start(ctx, lab.Options{Brine: filepath.Join(dir, "brine-master"), Python: python,
		Logf: func(format string, args ...any) { say(format, args...) }})
	if err != nil {
		return err
	}
	defer func() {
		if e := l.Close(); err == nil {
			err = e
		}
		say("everything is stopped, and nothing is left")
	}()
	say("Heat answers at %s", l.HeatURL())
	fmt.Print("\n", template, "\n")
	if _, err := l.Heat.Create(ctx, stack, template, lab.StackArgs{}); err != nil {
		return err
	}
	say("stack %s: creation asked for. heat-engine starts brine-master with the first minion", stack)
	for _, name := range []string{"s1", "s2", "s3"} {
		if err := boot(ctx, l, name, filepath.Join(dir, "brine-minion")); err != nil {
			return err
		}
	}
	s, err := l.Heat.Wait(ctx, stack, "CREATE_COMPLETE")
	if err != nil {
		return err
	}
	if err := show(ctx, l, s); err != nil {
		return err
	}
	if err := l.Heat.Delete(ctx, stack); err != nil {
		return err
	}
	if err := l.Heat.WaitGone(ctx, stack); err != nil {
		return err
	}
	say("stack %s is deleted, and its minions are revoked", stack)
	return nil
}

// boot starts a guest with the user data that Heat created for a resource.
func boot(ctx context.Context, l *lab.Lab, name, program string) error {
	r, err := l.Heat.WaitResource(ctx, stack, name, func(r *lab.Resource) bool {
		return r != nil && strings.Contains(fmt.Sprint(r.Attributes["user_data"]), "salt_minion")
	})
	if err != nil {
		return err
	}
	data := fmt.Sprint(r.Attributes["user_data"])
	g, err := l.StartGuest(ctx, name)
	if err != nil {
		return err
	}
	if err := g.ApplySaltMinion(data); err != nil {
		return err
	}
	say("server %s: boots with %d bytes of user data, and nothing in it but brine-minion", name, len(data))
	_, err = g.Start("minion", nil, program, "minion", "-c", "/etc/salt")
	return err
}

// show prints the stack's history and outputs.
func show(ctx context.Context, l *lab.Lab, s *lab.Stack) error {
	events, err := l.Heat.Events(ctx, stack)
	if err != nil {
		return err
	}
	fmt.Println()
	for _, e := range events {
		fmt.Printf("  %s  %-8s %-20s %s\n", e.Time, e.Resource, e.Status, e.Reason)
	}
	fmt.Println()
	out := s.Outputs()
	for _, name := range []string{"s1", "s2", "s3"} {
		say("output %s: %s", name, strings.TrimSpace(fmt.Sprint(out[name])))
	}
	say("stack %s is %s", stack, s.Status)
	return nil
}
