package outside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/internal/testkit/gobuild"
	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/protocol/crypt"
)

// patience is the time limit for things that take seconds.
const patience = 90 * time.Second

// bin is the directory of all programs, under stock's names.
var bin string

func build(t *testing.T, dir string) {
	t.Helper()
	for program, names := range map[string][]string{"brine-master": {"salt-master", "salt", "salt-key", "salt-run"}, "brine-minion": {"salt-minion", "salt-call"}} {
		if err := gobuild.Build("", filepath.Join(dir, program), "../../"+program); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// keyPair generates RSA keys once for all rows.
var keyPair = func() func(i int) *crypt.PrivateKey {
	var mu sync.Mutex
	made := map[int]*crypt.PrivateKey{}
	return func(i int) *crypt.PrivateKey {
		mu.Lock()
		defer mu.Unlock()
		if made[i] == nil {
			k, err := crypt.GenerateKey(2048)
			if err != nil {
				panic(err)
			}
			made[i] = k
		}
		return made[i]
	}
}()

// site is a directory with the configuration of a master and a minion, and the changes that a row made to it.
type site struct {
	t        *testing.T
	dir, bin string
	pub, ret int
	http     int
	env      []string
	as       *syscall.Credential // of programs started from now on; nil is the test's user
	master   *exec.Cmd
	log      *output
}

// output collects the output of a program, for tests that wait for a text.
type output struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir, err := os.MkdirTemp("", "o") // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &site{t: t, dir: dir, bin: bin, pub: freeport.Port(t), ret: freeport.Port(t), http: freeport.Port(t)}
	for _, d := range []string{"conf", "pki/master/minions", "pki/master/minions_pre", "pki/minion", "cache/master", "cache/minion", "run", "log"} {
		if err := os.MkdirAll(s.path(d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.write("conf/master", fmt.Sprintf("root_dir: %[1]s\npki_dir: %[1]s/pki/master\ncachedir: %[1]s/cache/master\nsock_dir: %[1]s/run\npidfile: %[1]s/run/master.pid\nlog_file: %[1]s/log/master\n"+
		"interface: 127.0.0.1\npublish_port: %[2]d\nret_port: %[3]d\nuser: %[4]s\ntimeout: 2\ngather_job_timeout: 1\nworker_threads: 1\n", dir, s.pub, s.ret, me()))
	s.write("conf/minion", fmt.Sprintf("root_dir: %[1]s\npki_dir: %[1]s/pki/minion\ncachedir: %[1]s/cache/minion\nsock_dir: %[1]s/run\npidfile: %[1]s/run/minion.pid\nlog_file: %[1]s/log/minion\n"+
		"id: m\nmaster: 127.0.0.1\npublish_port: %[2]d\nmaster_port: %[3]d\nuser: %[4]s\nauth_timeout: 2\nauth_tries: 1\nrequest_channel_timeout: 3\nrequest_channel_tries: 1\nenable_fqdns_grains: false\nenable_gpu_grains: false\n", dir, s.pub, s.ret, me()))
	s.write("pki/master/master.pem", string(keyPair(0).PEM()))
	s.write("pki/minion/minion.pem", string(keyPair(1).PEM()))
	s.write("pki/minion/minion.pub", string(keyPair(1).Public().PEM()))
	s.write("pki/master/minions/m", string(keyPair(1).Public().PEM()))
	return s
}

func me() string {
	if u := os.Getenv("USER"); u != "" && os.Geteuid() != 0 {
		return u
	}
	return "root"
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name, content string) {
	s.t.Helper()
	os.Remove(s.path(name))
	if err := os.WriteFile(s.path(name), []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// option sets an option of a configuration.
func (s *site) option(role, line string) {
	s.t.Helper()
	b, err := os.ReadFile(s.path("conf/" + role))
	if err != nil {
		s.t.Fatal(err)
	}
	name, _, _ := strings.Cut(line, ":")
	lines := slices.DeleteFunc(strings.Split(string(b), "\n"), func(l string) bool { return strings.HasPrefix(l, name+":") })
	s.write("conf/"+role, strings.Join(lines, "\n")+line+"\n")
}

// file creates a file where a directory is expected.
func (s *site) file(name string) {
	s.t.Helper()
	if err := os.RemoveAll(s.path(name)); err != nil {
		s.t.Fatal(err)
	}
	s.write(name, "")
}

// fill mounts a small file system and fills it. Rows that use it need root.
func (s *site) fill(name string) {
	s.t.Helper()
	s.small(name)
	f, err := os.Create(s.path(name + "/ballast"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 4096)
	for {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			s.t.Fatal(err)
		}
	}
}

// small mounts a small file system over a directory, and copies its content.
func (s *site) small(name string) {
	s.t.Helper()
	if os.Geteuid() != 0 {
		s.t.Skip("needs root, for a small file system")
	}
	if err := os.MkdirAll(s.path(name), 0o700); err != nil {
		s.t.Fatal(err)
	}
	aside := s.path("aside")
	if err := os.Rename(s.path(name), aside); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Mkdir(s.path(name), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", s.path(name), "tmpfs", 0, "size=2m,mode=0700"); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { syscall.Unmount(s.path(name), syscall.MNT_DETACH) })
	if err := os.CopyFS(s.path(name), os.DirFS(aside)); err != nil {
		s.t.Fatal(err)
	}
}

// nobody changes the site's owner to the user "nobody", who runs the programs from now on. The named files remain
// root's, with a mode.
func (s *site) nobody(mode os.FileMode, names ...string) {
	s.t.Helper()
	prereq.Root(s.t)
	const id = 65534
	err := filepath.WalkDir(s.dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, id, id))
	})
	for _, name := range names {
		err = errors.Join(err, os.Chown(s.path(name), 0, 0), os.Chmod(s.path(name), mode))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.as = &syscall.Credential{Uid: id, Gid: id}
}

// tls makes the peers use TLS over tcp, with the certificates in a directory.
func (s *site) tls(dir string) {
	s.t.Helper()
	for _, side := range [][2]string{{"master", "server"}, {"minion", "client"}} {
		s.option(side[0], "transport: tcp")
		s.option(side[0], fmt.Sprintf("ssl: {certfile: %[1]s/%[2]s.pem, keyfile: %[1]s/%[2]s.key, ca_certs: %[1]s/ca.pem}", dir, side[1]))
	}
}

// listen listens on a port of loopback, and answers each connection with a text.
func (s *site) listen(port int, answer string) {
	s.t.Helper()
	ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}
	}()
}

func (s *site) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	dir := s.path("conf")
	args = append([]string{"-c", dir}, args...)
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, program), args...)
	cmd.Env = append(append(os.Environ(), "LANG=C.UTF-8", "HOME="+s.dir), s.env...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// serve starts brine's master and waits until it serves.
func (s *site) serve() {
	s.t.Helper()
	s.log = &output{}
	s.master = s.command(context.Background(), "salt-master", "-l", "info")
	s.master.Stdout, s.master.Stderr = s.log, s.log
	if err := s.master.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = s.master.Process.Signal(syscall.SIGTERM)
		_ = s.master.Wait()
	})
	s.await(s.log, "Master is ready")
}

func (s *site) await(o *output, text string) {
	s.t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(o.String(), text); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("it does not say %q but:\n%s", text, o)
		}
	}
}

// run runs a program and returns its exit code and output.
func (s *site) run(program string, args ...string) (code int, out string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	cmd := s.command(ctx, program, args...)
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	if ctx.Err() != nil {
		s.t.Fatalf("%s does not end; it printed:\n%s", program, b)
	}
	return cmd.ProcessState.ExitCode(), string(b)
}
