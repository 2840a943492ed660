//go:build budgets && linux

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/master"
)

// Limits of the small hosts in the tests below.
const (
	smallMemory      = 32 << 20
	smallDescriptors = 64
	largeOutput      = 10 << 20
)

// smallHost starts a minion through a shell script that sets limits and ends with exec "$@".
func smallHost(t *testing.T, script string) *master.Master {
	t.Helper()
	m, err := master.New(master.Options{Network: master.Loopback(),
		Keys: master.KeyOptions{AutoAccept: true},
		Log:  slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- m.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		<-served
	})
	<-m.Ready()
	dir := t.TempDir()
	conf := fmt.Sprintf("id: budget\nroot_dir: %s\nmaster: 127.0.0.1\nmaster_port: %d\n", dir, m.RequestAddr().(*net.TCPAddr).Port)
	if err := os.WriteFile(filepath.Join(dir, "minion"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	p := connect(t, m, build(t, ".", ".", "", false), dir, "sh", "-c", script, "sh")
	t.Cleanup(func() { p.end(t) })
	return m
}

// memoryGroup creates a control group with little memory, and returns the file to which processes are added.
func memoryGroup(t *testing.T) string {
	t.Helper()
	for _, kind := range []struct{ base, limit, swap string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max", "memory.swap.max"},
	} {
		dir := filepath.Join(kind.base, fmt.Sprintf("brine-small-%d", os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() {
			for range 100 { // the kernel takes a while after the last process has ended
				if os.Remove(dir) == nil {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
			t.Errorf("cannot remove %s", dir)
		})
		if os.WriteFile(filepath.Join(dir, kind.limit), fmt.Append(nil, smallMemory), 0o644) != nil {
			continue
		}
		_ = os.WriteFile(filepath.Join(dir, kind.swap), []byte("0"), 0o644) // not all kernels count swap
		return filepath.Join(dir, "cgroup.procs")
	}
	t.Skip("this user may not make control groups of memory here")
	return ""
}

// TestSmallMemory: a minion in 32 MB survives a program that prints 10 MB, and one that prints 50 MB.
func TestSmallMemory(t *testing.T) {
	procs := memoryGroup(t)
	m := smallHost(t, `echo $$ > `+procs+` && exec "$@"`)
	print := fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", largeOutput)
	for _, job := range []master.Job{
		{Fun: "cmd.run", Args: []any{print}, Tgt: "*"},
		{Fun: "cmd.run", Args: []any{"for i in 1 2 3 4 5; do " + print + "; done"}, Tgt: "*"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		res, err := m.Run(ctx, job)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		text, _ := res["budget"].Return.(string)
		if !strings.HasPrefix(text, "xxxx") || len(text) < 1<<20 {
			t.Fatalf("it returned %d bytes: %.100q", len(text), text)
		}
		t.Logf("%d bytes came", len(text))
	}
	if res, err := m.Run(t.Context(), master.Job{Fun: "test.ping", Tgt: "*"}); err != nil || res["budget"].Return != true {
		t.Errorf("afterwards: %v %v", res, err)
	}
}

// TestFewDescriptors: a minion with 64 descriptors gets 60 jobs at once. It runs as many as it can, and then the
// others.
func TestFewDescriptors(t *testing.T) {
	m := smallHost(t, fmt.Sprintf(`ulimit -n %d && exec "$@"`, smallDescriptors))
	const jobs = 60
	answers := make(chan any, jobs)
	for i := range jobs {
		go func() {
			res, err := m.Run(t.Context(), master.Job{Fun: "cmd.run", Args: []any{fmt.Sprintf("sleep 0.3; echo %d", i)}, Tgt: "*"})
			if err != nil {
				answers <- err
				return
			}
			if got := res["budget"].Return; got != fmt.Sprint(i) {
				answers <- fmt.Errorf("job %d: %v", i, got)
				return
			}
			answers <- nil
		}()
	}
	for range jobs {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}
