//go:build linux

// Heat-lab starts a complete Heat on loopback for experiments, and ends it when it receives INT or TERM:
//
//	go run ./lab/cmd/heat-lab -dir /tmp/heat -plugins ~/plugins
//
// It prints the OS_ variables and writes them to <dir>/env. HUP restarts all engines, which reloads their plugins.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/brine-salt/brine/openstack/lab"
)

type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

func main() {
	log.SetFlags(0)
	var plugins, env, files, conf list
	opts := lab.Options{Logf: log.Printf, Environments: map[string]string{}, Heat: map[string]map[string]string{},
		Endpoints: map[string]string{}}
	var endpoints list
	flag.StringVar(&opts.Dir, "dir", "", "directory of the lab (default: a temporary one)")
	flag.Var(&plugins, "plugins", "directory with Heat plugins; may be repeated")
	flag.Var(&env, "env", "NAME=VALUE for the engines; may be repeated")
	flag.Var(&files, "environment", "file for the engine's environment.d; may be repeated")
	flag.Var(&conf, "conf", "setting of heat.conf, section/name=value; may be repeated")
	flag.Var(&endpoints, "endpoint", "another service of the catalog, type=URL; may be repeated")
	flag.IntVar(&opts.Engines, "engines", 1, "number of heat-engines")
	flag.StringVar(&opts.Brine, "brine", "", "path of brine-master: load the plugin of brine")
	flag.StringVar(&opts.Python, "python", "", "directory with the package brine_openstack")
	flag.BoolVar(&opts.Swift, "swift", false, "start swift too")
	flag.BoolVar(&opts.Zaqar, "zaqar", false, "start zaqar too")
	flag.Parse()
	opts.Plugins, opts.EngineEnv = plugins, env
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			log.Fatal(err)
		}
		opts.Environments[filepath.Base(name)] = string(b)
	}
	for _, c := range conf {
		key, value, ok := strings.Cut(c, "=")
		section, name, ok2 := strings.Cut(key, "/")
		if !ok || !ok2 {
			log.Fatalf("-conf %s: want section/name=value", c)
		}
		if opts.Heat[section] == nil {
			opts.Heat[section] = map[string]string{}
		}
		opts.Heat[section][name] = value
	}
	for _, e := range endpoints {
		kind, url, ok := strings.Cut(e, "=")
		if !ok {
			log.Fatalf("-endpoint %s: want type=URL", e)
		}
		opts.Endpoints[kind] = url
	}
	if err := run(opts); err != nil {
		log.Fatal(err)
	}
}

func run(opts lab.Options) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	begin := time.Now()
	l, err := lab.Start(ctx, opts)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, v := range l.Env() {
		fmt.Fprintf(&b, "export %s\n", v)
	}
	addr, user, password := l.SQLAddr()
	fmt.Fprintf(&b, "export LAB_DIR=%s LAB_PID=%d LAB_HEAT=%s LAB_CFN=%s LAB_SQL=%s LAB_SQL_USER=%s LAB_SQL_PASSWORD=%s\n",
		l.Dir, os.Getpid(), l.HeatURL(), l.CFNURL(), addr, user, password)
	if err := os.WriteFile(filepath.Join(l.Dir, "env"), []byte(b.String()), 0o600); err != nil {
		return err
	}
	fmt.Print(b.String())
	log.Printf("# ready after %.1f s; logs are in %s/log", time.Since(begin).Seconds(), l.Dir)
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	for {
		select {
		case <-ctx.Done():
			return l.Close()
		case <-hup:
			for n := range max(opts.Engines, 0) {
				rctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
				if l.Engine(n) != nil {
					err = l.RestartEngine(rctx, n, syscall.SIGKILL)
				} else {
					err = l.StartEngine(rctx, n)
				}
				cancel()
				if err != nil {
					log.Printf("# cannot restart engine %d: %v", n, err)
				} else {
					log.Printf("# engine %d restarted", n)
				}
			}
		}
	}
}
