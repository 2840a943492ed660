package doctor

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/brine-salt/brine/internal/conf"
)

// host is a configuration with everything in order, and a network that answers.
func host(t *testing.T, extra string) Options {
	t.Helper()
	dir := t.TempDir()
	pki := filepath.Join(dir, "pki")
	err := os.Mkdir(pki, 0o700)
	for name, mode := range map[string]os.FileMode{"minion.pem": 0o400, "minion_master.pub": 0o644} {
		if err == nil {
			err = os.WriteFile(filepath.Join(pki, name), nil, mode)
		}
	}
	file := filepath.Join(dir, "minion")
	if err == nil {
		err = os.WriteFile(file, []byte("id: m\nmaster: salt.example\npki_dir: "+pki+"\ncachedir: "+dir+"/cache\nsock_dir: "+dir+"/s\n"+extra), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := conf.LoadMinion(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Config: c, Python: func() string { return "/usr/bin/python3" },
		Lookup: func(context.Context, string) ([]string, error) { return []string{"192.0.2.1"}, nil },
		Dial: func(context.Context, string, string) (net.Conn, error) {
			a, b := net.Pipe()
			_ = b.Close()
			return a, nil
		}}
}

// TestLines: a host in order has ok alone; each fault has its line, with a cure.
func TestLines(t *testing.T) {
	if list := Examine(t.Context(), host(t, "")); len(list) != 10 || slices.ContainsFunc(list, func(l Line) bool { return l.State != OK }) {
		t.Errorf("a host in order: %v", list)
	}
	pki := func(o *Options) string { return o.Config.String("pki_dir") }
	for name, c := range map[string]struct {
		state State
		extra string
		spoil func(o *Options) error
	}{
		"configuration": {Warning, "", func(o *Options) error { o.Config.Files = nil; return nil }},
		"option":        {Warning, "mastr_port: 1\n", nil},
		"pki_dir":       {Failure, "", func(o *Options) error { return os.Chmod(pki(o), 0o777) }},
		"cachedir":      {Failure, "", func(o *Options) error { return os.WriteFile(o.Config.String("cachedir"), nil, 0o600) }},
		"key":           {Failure, "", func(o *Options) error { return os.Chmod(filepath.Join(pki(o), "minion.pem"), 0o644) }},
		"master's key":  {Warning, "", func(o *Options) error { return os.Remove(filepath.Join(pki(o), "minion_master.pub")) }},
		"name": {Failure, "", func(o *Options) error {
			o.Lookup = func(context.Context, string) ([]string, error) { return nil, errors.New("no such host") }
			return nil
		}},
		"publish port": {Warning, "", refuse("salt.example:4505")},
		"request port": {Failure, "", refuse("salt.example:4506")},
		"python":       {Failure, "module_dirs: [/x]\n", func(o *Options) error { o.Python = nil; return nil }},
	} {
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
		if len(bad) != 1 || bad[0].Name != name || bad[0].State != c.state || bad[0].Cure == "" {
			t.Errorf("%s: %v", name, bad)
		}
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
