//go:build linux

// Package testserver starts servers for tests: real servers from the distribution's packages, on loopback, with their
// data in a temporary directory. The end of the test stops them. Only tests import this package.
package testserver

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// Program returns the path of a program. It also searches the directories of Debian's PostgreSQL.
func Program(t testing.TB, name string) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	for _, path := range append(found, "/usr/sbin/"+name, "/usr/bin/"+name) {
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path
		}
	}
	prereq.Missing(t, "the program "+name)
	return ""
}

// Port returns a free port of the loopback interface.
func Port(t testing.TB) string {
	t.Helper()
	return strconv.Itoa(freeport.Port(t))
}

// Dir returns a temporary directory with a short name, for sockets. It belongs to owner, or to this process's user if
// owner is "". cred runs programs as that user.
func Dir(t testing.TB, owner string) (dir string, cred *syscall.Credential) {
	t.Helper()
	dir, err := os.MkdirTemp("", "brine")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if owner == "" {
		return dir, nil
	}
	prereq.Root(t)
	u, err := user.Lookup(owner)
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return dir, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// Run runs a program as a user. The test fails if the program does.
func Run(t testing.TB, cred *syscall.Credential, args ...string) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// Server is a running server. It can be restarted.
type Server struct {
	// Port is its port on 127.0.0.1, Socket the path of its socket if it has one.
	Port, Socket string

	t    testing.TB
	cred *syscall.Credential
	sig  os.Signal
	args []string
	cmd  *exec.Cmd
	log  *bytes.Buffer
}

// PID returns the process id of the server.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Start starts a server. The end of the test stops it with a signal.
func Start(t testing.TB, cred *syscall.Credential, sig os.Signal, args ...string) *Server {
	t.Helper()
	s := &Server{t: t, cred: cred, sig: sig, args: args}
	s.begin()
	t.Cleanup(func() {
		s.end()
		if t.Failed() {
			t.Logf("the server said at last:\n%s", s.last(6))
		}
	})
	return s
}

func (s *Server) begin() {
	s.t.Helper()
	s.cmd, s.log = exec.Command(s.args[0], s.args[1:]...), new(bytes.Buffer)
	s.cmd.Dir = "/"
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) end() {
	if err := s.cmd.Process.Signal(s.sig); err != nil {
		s.t.Error(err)
	}
	_ = s.cmd.Wait()
}

// last returns the last lines of the server's output.
func (s *Server) last(n int) string {
	lines := strings.Split(strings.TrimSpace(s.log.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Restart stops the server, which closes its connections, and starts it again.
func (s *Server) Restart() {
	s.t.Helper()
	s.end()
	s.begin()
}

// Until retries try until it succeeds. The test fails after two minutes.
func Until(t testing.TB, what string, try func(ctx context.Context) error) {
	t.Helper()
	var err error
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		err = try(ctx)
		cancel()
		if err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// MariaDB starts MariaDB on a socket and on a port of 127.0.0.1, with the user root without a password. Wait for it
// with [Until].
func MariaDB(t testing.TB) (socket, port string) {
	t.Helper()
	s := MariaDBServer(t)
	return s.Socket, s.Port
}

// MariaDBServer is like [MariaDB] for a test that restarts it or sets further options.
func MariaDBServer(t testing.TB, options ...string) *Server {
	t.Helper()
	server, install := Program(t, "mariadbd"), Program(t, "mariadb-install-db")
	dir, cred := Dir(t, "mysql")
	data := filepath.Join(dir, "data")
	Run(t, cred, install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")
	port := Port(t)
	args := append([]string{server, "--no-defaults", "--datadir=" + data, "--port=" + port, "--bind-address=127.0.0.1", "--socket=" + dir + "/s",
		"--skip-name-resolve", "--pid-file=" + dir + "/pid"}, options...)
	s := Start(t, cred, syscall.SIGTERM, args...)
	s.Socket, s.Port = dir+"/s", port
	return s
}

// Postgres starts PostgreSQL on a port of 127.0.0.1, with the user postgres without a password. Wait for it with
// [Until].
func Postgres(t testing.TB) (port string) {
	t.Helper()
	return PostgresServer(t).Port
}

// PostgresServer is like [Postgres] for a test that restarts it.
func PostgresServer(t testing.TB) *Server {
	t.Helper()
	initdb, server := Program(t, "initdb"), Program(t, "postgres")
	dir, cred := Dir(t, "postgres")
	data := filepath.Join(dir, "data")
	Run(t, cred, initdb, "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
	port := Port(t)
	s := Start(t, cred, syscall.SIGINT, server, "-D", data, "-p", port, "-h", "127.0.0.1", "-k", dir, "-F")
	s.Socket, s.Port = dir, port
	return s
}

// Redis starts a Redis server on a port of 127.0.0.1 and waits for it. settings are further arguments.
func Redis(t testing.TB, settings ...string) (port string) {
	t.Helper()
	server := Program(t, "redis-server")
	dir, _ := Dir(t, "")
	port = Port(t)
	Start(t, nil, syscall.SIGTERM, append([]string{server, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no"}, settings...)...)
	Until(t, "redis", func(ctx context.Context) error { return Reach(ctx, port) })
	return port
}

// Etcd starts a real etcd, which implements only version 3 of the interface, and returns its port.
func Etcd(t testing.TB) (port string) {
	t.Helper()
	server := Program(t, "etcd")
	dir, _ := Dir(t, "")
	port = Port(t)
	at, peers := "http://127.0.0.1:"+port, "http://127.0.0.1:"+Port(t)
	Start(t, nil, syscall.SIGTERM, server, "--data-dir", dir+"/data", "--enable-v2=false", "--unsafe-no-fsync",
		"--listen-client-urls", at, "--advertise-client-urls", at, "--listen-peer-urls", peers,
		"--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers)
	Until(t, "etcd", func(ctx context.Context) error { return Reach(ctx, port) })
	return port
}

// Influxdb starts InfluxDB 1 without authentication and returns its port.
func Influxdb(t testing.TB) (port string) {
	t.Helper()
	server := Program(t, "influxd")
	dir, _ := Dir(t, "")
	port = Port(t)
	conf := fmt.Sprintf("reporting-disabled = true\nbind-address = \"127.0.0.1:%s\"\n[meta]\ndir = %q\n[data]\ndir = %q\nwal-dir = %q\n"+
		"[http]\nbind-address = \"127.0.0.1:%s\"\n[monitor]\nstore-enabled = false\n", Port(t), dir+"/meta", dir+"/data", dir+"/wal", port)
	if err := os.WriteFile(dir+"/conf", []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	Start(t, nil, syscall.SIGTERM, server, "run", "-config", dir+"/conf")
	Until(t, "influxdb", func(ctx context.Context) error { return Reach(ctx, port) })
	return port
}

// S3 starts moto, a server that implements the interface of S3 and accepts any key, and returns its port. BRINE_MOTO
// is the path of the program.
func S3(t testing.TB) (port string) {
	t.Helper()
	server := os.Getenv("BRINE_MOTO")
	if server == "" {
		prereq.Missing(t, "BRINE_MOTO, the program moto_server (interop/fetch-salt.sh)")
	}
	port = Port(t)
	Start(t, nil, syscall.SIGTERM, server, "-H", "127.0.0.1", "-p", port)
	Until(t, "moto", func(ctx context.Context) error { return Reach(ctx, port) })
	return port
}

// Reach connects to a port of loopback and disconnects.
func Reach(ctx context.Context, port string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	return conn.Close()
}
