package doctor

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/minion/connections"
	"github.com/brine-salt/brine/protocol"
)

// host returns options for a host without faults, whose network answers.
func host(t *testing.T, extra string) Options {
	t.Helper()
	dir := t.TempDir()
	pki := filepath.Join(dir, "pki")
	err := errors.Join(os.Mkdir(pki, 0o700), os.Mkdir(filepath.Join(dir, "s"), 0o755))
	for name, mode := range map[string]os.FileMode{"minion.pem": 0o400, "minion_master.pub": 0o644} {
		if err == nil {
			err = os.WriteFile(filepath.Join(pki, name), nil, mode)
		}
	}
	file := filepath.Join(dir, "minion")
	if err == nil {
		err = os.WriteFile(file, []byte("id: m\nmaster: salt.example\npki_dir: "+pki+"\ncachedir: "+dir+"/cache\nsock_dir: "+dir+"/s\nlog_file: "+dir+"/log\n"+
			strings.ReplaceAll(extra, "DIR", dir)), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := conf.LoadMinion(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Config: c, Python: func() string { return "/usr/bin/python3" },
		Daemon: func(context.Context) (int, []connections.Connection, error) {
			return 7, []connections.Connection{{Master: "salt.example", State: connections.Connected}}, nil
		},
		SignIn: func(context.Context) (string, []minion.SignInReport, error) {
			return "aa:bb", []minion.SignInReport{{Master: "salt.example", Status: protocol.Accepted, Known: true, Fingerprint: "cc:dd"}}, nil
		},
		Space:       func(string) (Space, error) { return Space{Free: 1 << 40, Total: 1 << 41}, nil },
		Descriptors: func(int) (int, error) { return 1 << 16, nil }, Synced: func() (bool, bool) { return true, true },
		Lookup: func(context.Context, string) ([]string, error) { return []string{"192.0.2.1"}, nil },
		Dial: func(context.Context, string, string) (net.Conn, error) {
			a, b := net.Pipe()
			_ = b.Close()
			return a, nil
		}}
}

// TestLines: a host without faults has only lines in state ok. Each fault has a line with a remedy.
func TestLines(t *testing.T) {
	list := Examine(t.Context(), host(t, ""))
	if len(list) != 18 || slices.ContainsFunc(list, func(l Line) bool { return l.State != OK }) {
		t.Errorf("a host in order: %v", list)
	}
	pki := func(o *Options) string { return o.Config.String("pki_dir") }
	answer := func(r minion.SignInReport) func(o *Options) error {
		return func(o *Options) error {
			r.Master = "salt.example"
			o.SignIn = func(context.Context) (string, []minion.SignInReport, error) {
				return "aa:bb", []minion.SignInReport{r}, nil
			}
			return nil
		}
	}
	space := func(s Space) func(o *Options) error {
		return func(o *Options) error { o.Space = func(string) (Space, error) { return s, nil }; return nil }
	}
	limit := func(n int) func(o *Options) error {
		return func(o *Options) error { o.Descriptors = func(int) (int, error) { return n, nil }; return nil }
	}
	at := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		name  string
		state State
		extra string
		spoil func(o *Options) error
		found string // a part of the line's Found text
	}{
		{"configuration", Warning, "", func(o *Options) error { o.Config.Files = nil; return nil }, "no file was read"},
		{"option", Warning, "mastr_port: 1\n", nil, "did you mean 'master_port'?"},
		{"option", Warning, "master_port: [1]\n", nil, "master_port"},
		{"pki_dir", Failure, "", func(o *Options) error { return os.Chmod(pki(o), 0o777) }, "mode 777"},
		{"cachedir", Failure, "", func(o *Options) error { return os.WriteFile(o.Config.String("cachedir"), nil, 0o600) }, "is not a directory"},
		{"module_dirs", Warning, "module_dirs: [/no/such]\n", nil, "/no/such"},
		{"grains_dirs", Failure, "grains_dirs: [DIR/open]\n", func(o *Options) error {
			dir := o.Config.Strings("grains_dirs")[0]
			return errors.Join(os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777))
		}, "can be written by others (mode 777)"},
		{"disk", Failure, "", space(Space{Free: 1000, Total: 1 << 30}), "the disk is full: 0 MB of 1024 MB"},
		{"disk", Warning, "", space(Space{Free: 50 << 20, Total: 1 << 30}), "50 MB of 1024 MB"},
		{"disk", Failure, "", space(Space{Free: 1 << 30, Total: 1 << 30, TotalFiles: 100}), "no inodes left"},
		{"disk", Failure, "", space(Space{Free: 1 << 30, Total: 1 << 30, ReadOnly: true}), "read-only"},
		{"disk", Warning, "", func(o *Options) error {
			o.Space = func(string) (Space, error) { return Space{}, errors.New("no such device") }
			return nil
		}, "no such device"},
		{"descriptors", Failure, "", limit(20), "only 20 files"},
		{"descriptors", Warning, "", limit(256), "only 256 files"},
		{"clock", Failure, "", func(o *Options) error { o.Now = func() time.Time { return at }; return nil }, "before"},
		{"clock", Warning, "", answer(minion.SignInReport{Status: protocol.Accepted, Known: true, Time: at, At: at.Add(95 * time.Second)}), "by 1m35s"},
		{"clock", Warning, "", func(o *Options) error { o.Synced = func() (bool, bool) { return false, true }; return nil }, "not synchronized"},
		{"key", Failure, "", func(o *Options) error { return os.Chmod(filepath.Join(pki(o), "minion.pem"), 0o644) }, "others may read"},
		{"key", Failure, "", func(o *Options) error {
			o.SignIn = func(context.Context) (string, []minion.SignInReport, error) {
				return "", nil, errors.New("cannot use minion key")
			}
			return nil
		}, "cannot use minion key"},
		{"key", Warning, "", func(o *Options) error { return os.Remove(filepath.Join(pki(o), "minion.pem")) }, "no key yet"},
		{"master's key", Warning, "", func(o *Options) error { return os.Remove(filepath.Join(pki(o), "minion_master.pub")) }, "no master has accepted"},
		{"name", Failure, "", func(o *Options) error {
			o.Lookup = func(context.Context, string) ([]string, error) { return nil, errors.New("no such host") }
			return nil
		}, "salt.example cannot be resolved: no such host"},
		{"publish port", Warning, "", refuse("salt.example:4505"), "connection refused"},
		{"request port", Failure, "", refuse("salt.example:4506"), "connection refused"},
		{"TLS", Failure, "", func(o *Options) error {
			o.TLS = func() (func(context.Context, net.Conn, string) (net.Conn, error), error) {
				return nil, errors.New("cannot read certfile")
			}
			return nil
		}, "cannot read certfile"},
		{"key on master", Failure, "", answer(minion.SignInReport{Status: protocol.Pending}), "its fingerprint is aa:bb"},
		{"key on master", Failure, "", answer(minion.SignInReport{Status: protocol.Rejected}), "refuses the key with the fingerprint aa:bb"},
		{"key on master", Failure, "", answer(minion.SignInReport{Status: protocol.Denied}), "fingerprint aa:bb: another key has this id"},
		{"key on master", Failure, "", answer(minion.SignInReport{Status: protocol.Full}), "takes no more minions"},
		{"key on master", Failure, "", answer(minion.SignInReport{Err: minion.ErrFinger}), "master_finger"},
		{"key on master", Failure, "", answer(minion.SignInReport{Err: protocol.ErrMasterKeyChanged}), "is not the master that this minion trusts"},
		{"key on master", Failure, "", answer(minion.SignInReport{Err: errors.New("no reply")}), "no reply"},
		{"key on master", Warning, "", answer(minion.SignInReport{Status: protocol.Accepted, Fingerprint: "cc:dd"}), "does not know yet: cc:dd"},
		{"event sockets", Warning, "", daemonSays(nil, errors.New("no such file")), "no minion runs on this host"},
		{"event sockets", Warning, "", daemonSays(nil, context.DeadlineExceeded), "does not answer"},
		{"last connection", Failure, "", daemonSays([]connections.Connection{{Master: "salt.example", State: string(minion.Connecting), Since: at.Unix(), Answered: at.Unix(), Err: "connection refused"}}, nil),
			"connection refused; salt.example last answered: 20"},
		{"python", Failure, "module_dirs: [DIR]\n", func(o *Options) error { o.Python = nil; return nil }, "no Python"},
	} {
		t.Run(c.name+" "+c.found, func(t *testing.T) {
			o := host(t, c.extra)
			if c.spoil != nil {
				if err := c.spoil(&o); err != nil {
					t.Fatal(err)
				}
			}
			var bad []Line
			for _, l := range Examine(t.Context(), o) {
				if l.State != OK {
					bad = append(bad, l)
				}
			}
			if len(bad) != 1 || bad[0].Name != c.name || bad[0].State != c.state || bad[0].Cure == "" || !strings.Contains(bad[0].Found, c.found) {
				t.Errorf("got %v", bad)
			}
		})
	}
}

func daemonSays(list []connections.Connection, err error) func(o *Options) error {
	return func(o *Options) error {
		o.Daemon = func(context.Context) (int, []connections.Connection, error) { return 1, list, err }
		return nil
	}
}

func refuse(address string) func(o *Options) error {
	return func(o *Options) error {
		next := o.Dial
		o.Dial = func(ctx context.Context, network, a string) (net.Conn, error) {
			if a == address {
				return nil, errors.New("connection refused")
			}
			return next(ctx, network, a)
		}
		return nil
	}
}
