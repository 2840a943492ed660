package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/brine-salt/brine/internal/swarm"
	"github.com/brine-salt/brine/internal/testkit/freeport"
)

// A site is the directories and daemons of one side of one command.
type site struct {
	dir, srv       string // srv is the file tree of all sites
	programs       string // directory of the side's programs
	newPrograms    string // directory of the working tree's programs
	publish, reply int    // the master's ports
	daemons        []*daemon
}

func newSite(dir, command, side string) *site {
	return &site{
		dir:         filepath.Join(dir, side, command),
		srv:         filepath.Join(dir, "srv"),
		programs:    filepath.Join(dir, side, "bin"),
		newPrograms: filepath.Join(dir, "new", "bin"),
	}
}

func (s *site) minion() string    { return filepath.Join(s.programs, "brine-minion") }
func (s *site) master() string    { return filepath.Join(s.programs, "brine-master") }
func (s *site) config() string    { return filepath.Join(s.dir, "etc") }
func (s *site) minionDir() string { return filepath.Join(s.dir, "minion") }

// write writes a file of the site.
func (s *site) write(name, text string) error {
	file := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o600)
}

// writeMinion writes the configuration of a minion. more is added to it.
func (s *site) writeMinion(more string) error {
	return s.write("etc/minion", fmt.Sprintf(`id: bench
root_dir: %s
cachedir: cache
log_level: quiet
enable_fqdns_grains: false
grains: {os_family: Debian}
%s
`, s.minionDir(), more))
}

// writeMaster writes the configuration of a master.
func (s *site) writeMaster() (err error) {
	for _, port := range []*int{&s.publish, &s.reply} {
		if *port, err = freeport.Find(); err != nil {
			return err
		}
	}
	u, err := user.Current()
	if err != nil {
		return err
	}
	return s.write("etc/master", fmt.Sprintf(`interface: 127.0.0.1
publish_port: %d
ret_port: %d
auto_accept: True
root_dir: %s
pki_dir: pki
user: %s
log_level: quiet
file_roots: {base: [%s]}
`, s.publish, s.reply, s.dir, u.Username, s.srv))
}

// startMaster starts the master and waits until it accepts connections.
func (s *site) startMaster(ctx context.Context) (*daemon, error) {
	if err := s.writeMaster(); err != nil {
		return nil, err
	}
	d, err := s.start(ctx, exec.CommandContext(ctx, s.master(), "master", "-c", s.config(), "-l",
		"quiet"))
	if err != nil {
		return nil, err
	}
	return d, d.await(ctx, "the master's port", func() (bool, error) {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.reply)))
		if err != nil {
			return false, nil
		}
		return true, conn.Close()
	})
}

// startSwarm starts simulated minions and waits until all of them are subscribed. They end with the end of their
// input, so they also end if this program is killed.
func (s *site) startSwarm(ctx context.Context, n int) error {
	cmd := exec.CommandContext(ctx, filepath.Join(s.newPrograms, "brine-swarm"), "-n",
		strconv.Itoa(n), "-parallel", "50", "-masters",
		net.JoinHostPort("127.0.0.1", strconv.Itoa(s.reply)))
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, lines := io.Pipe() // not StdoutPipe, which start would close while it is read
	cmd.Stdout = lines
	d, err := s.start(ctx, cmd)
	if err != nil {
		return err
	}
	silent := time.AfterFunc(patience, func() { _ = lines.CloseWithError(errSilent) })
	defer silent.Stop()
	go func() {
		<-d.done
		lines.Close()
	}()
	stats := json.NewDecoder(out)
	return d.await(ctx, fmt.Sprintf("%d minions", n), func() (bool, error) {
		var st swarm.Stats
		_, err := io.WriteString(in, "\n")
		if err == nil {
			err = stats.Decode(&st)
		}
		return err == nil && st.Ready >= int64(n), err
	})
}

// errSilent is the end of a swarm that does not answer.
var errSilent = errors.New("the simulated minions do not answer")

// A daemon is a program that runs beside the measured command.
type daemon struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// patience is how long a daemon may take until it is ready. On a busy machine 1,000 sign-ins take a minute.
const patience = 4 * time.Minute

// start starts a daemon, which ends by SIGTERM when ctx or the site ends.
func (s *site) start(ctx context.Context, cmd *exec.Cmd) (*daemon, error) {
	d := &daemon{cmd: cmd, done: make(chan struct{}),
		log: filepath.Join(s.dir, filepath.Base(cmd.Path)+".log")}
	log, err := os.Create(d.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stderr = log
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	cmd.Cancel = d.terminate
	cmd.WaitDelay = patience
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.daemons = append(s.daemons, d)
	go func() {
		_ = cmd.Wait()
		close(d.done)
	}()
	return d, ctx.Err()
}

func (d *daemon) terminate() error { return d.cmd.Process.Signal(syscall.SIGTERM) }

// stop ends the daemons.
func (s *site) stop() {
	for _, d := range s.daemons {
		if err := d.terminate(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			_ = d.cmd.Process.Kill()
		}
	}
	for _, d := range s.daemons {
		select {
		case <-d.done:
		case <-time.After(patience):
			_ = d.cmd.Process.Kill()
			<-d.done
		}
	}
}

// await polls a daemon, which sends no notification, until holds returns true.
func (d *daemon) await(ctx context.Context, what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := holds()
		if ok {
			return nil
		}
		if err == nil {
			select {
			case <-tick.C:
				continue
			case <-d.done:
				err = errors.New("the program has ended")
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		return fmt.Errorf("cannot await %s: %w\n%s", what, err, d.said())
	}
}

// said returns the end of the daemon's output.
func (d *daemon) said() string {
	b, err := os.ReadFile(d.log)
	if err != nil {
		return err.Error()
	}
	return tail(string(b))
}
