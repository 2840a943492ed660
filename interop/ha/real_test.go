//go:build interop && linux

package ha

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/minion/config"
	_ "github.com/brine-salt/brine/modules/cmdmod"
	_ "github.com/brine-salt/brine/modules/saltutil"
	_ "github.com/brine-salt/brine/modules/test"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// envMinion is the configuration of a minion of ours.
const envMinion = "BRINE_HA_MINION"

// How a minion finds the masters: one address of all of them, the list of theirs, or the first of those of a list that answers.
const (
	one      = "one address"
	list     = "list"
	failover = "failover"
)

// failoverMasters is how many masters the minions with failover know.
const failoverMasters = 3

// real is a whole minion: stock's of the line that its name ends with, or ours.
type real struct{ name, masters string }

// dirs are the directories of real minions.
var dirs = make(map[string]string)

func (r real) ledger() string { return filepath.Join(dirs[r.name], "ledger") }

// start starts the minion until the test ends.
func (r real) start(t *testing.T, c *cluster) {
	t.Helper()
	dir := t.TempDir()
	dirs[r.name] = dir
	var addrs []string
	for i := range masters {
		addrs = append(addrs, fmt.Sprintf("%q", fmt.Sprintf("%s:%d", addr(i), c.ret)))
	}
	// A stock minion that has lost a master looks after it every master_alive_interval seconds from then on, each time with a process of
	// its own; the default is 0.
	where := "master: [" + strings.Join(addrs, ", ") + "]\nmaster_alive_interval: 3600"
	switch r.masters {
	case failover: // without ports, with which stock took minutes to leave the dead one, if it did
		var hosts []string
		for i := range failoverMasters {
			hosts = append(hosts, addr(i))
		}
		where = "master: [" + strings.Join(hosts, ", ") + "]\nmaster_type: failover\nmaster_alive_interval: 2\nretry_dns: 0"
	case one:
		where = "master: " + balancer + "\nmaster_alive_interval: 3600"
	}
	conf := filepath.Join(dir, "etc", "minion")
	text := fmt.Sprintf(`
id: %s
%s
master_port: %d
publish_port: %d
root_dir: %s
pki_dir: pki
cachedir: cache
sock_dir: run
pidfile: minion.pid
log_file: minion.log
log_level: info
log_level_logfile: info
cache_jobs: true
acceptance_wait_time: 1
random_reauth_delay: 1
recon_default: 100
recon_max: 1000
enable_fqdns_grains: false
mine_enabled: false
user: root
`, r.name, where, c.ret, c.pub, dir)
	if err := errors.Join(os.MkdirAll(filepath.Dir(conf), 0o755), os.WriteFile(conf, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	var cmd *exec.Cmd
	if line, stock := strings.CutPrefix(r.name, "stock-"); stock {
		venv := os.Getenv("BRINE_SALT_" + line)
		if venv == "" {
			t.Fatalf("BRINE_SALT_%s is not set: run this through make interop or make soak", line)
		}
		cmd = exec.Command(filepath.Join(venv, "bin", "salt-minion"), "-c", filepath.Dir(conf))
	} else {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd = exec.Command(exe)
		cmd.Env = append(os.Environ(), envMinion+"="+conf)
	}
	log, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if t.Failed() {
			text := readFile(t, log.Name())
			t.Logf("the output of %s ends with:\n%s", r.name, text[max(0, len(text)-3000):])
		}
	})
}

// await waits until the masters know that the minion started.
func (r real) await(ctx context.Context, t *testing.T, db store.Store) {
	t.Helper()
	minions, _ := store.MinionsOf(db)
	for {
		x, err := minions.Minion(ctx, r.name)
		if _, started := payload.Int(x.Spec["started"]); err == nil && started {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s has not started: %+v, %v", r.name, x, err)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

// childMinion is a minion of ours with the modules that the test needs.
func childMinion(conf string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	opts, err := config.Load(conf, nil)
	if err != nil {
		return err
	}
	m, err := minion.New(minion.Options{Opts: opts, Log: slog.Default(), Dialers: map[string]transport.Dialer{"zeromq": zeromq.New()},
		Runner: &runcmd.Runner{}})
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

// Addresses of the masters, all with the same ports, and the one of all.
const balancer = "127.90.0.100"

func addr(i int) string { return fmt.Sprintf("127.90.0.%d", i+1) }

// balance forwards the connections to one port of the common address to masters chosen at random, until the test ends.
func balance(t *testing.T, port int) {
	t.Helper()
	l, err := net.Listen("tcp4", fmt.Sprintf("%s:%d", balancer, port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go forward(c, port)
		}
	}()
}

func forward(c net.Conn, port int) {
	defer c.Close()
	for _, i := range rand.Perm(masters) {
		m, err := net.DialTimeout("tcp4", fmt.Sprintf("%s:%d", addr(i), port), 10*time.Second)
		if err != nil {
			continue // it is being replaced
		}
		defer m.Close()
		ended := make(chan struct{}, 2)
		for _, way := range [][2]net.Conn{{c, m}, {m, c}} {
			go func() {
				_, _ = io.Copy(way[0], way[1])
				ended <- struct{}{}
			}()
		}
		<-ended
		return
	}
}
