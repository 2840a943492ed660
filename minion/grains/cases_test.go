package grains

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules/pyobj"
)

// machineCase is a machine of testdata/cases.json.gz and Salt's grains on it (testdata/generate.py).
type machineCase struct {
	Files    map[string]string
	Dirs     []string
	Programs map[string][2]any
	Opts     map[string]any
	Want     map[string]any
}

func loadCases(t testing.TB) map[string]machineCase {
	t.Helper()
	f, err := os.Open("testdata/cases.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var c struct{ Cases map[string]machineCase }
	if err := json.NewDecoder(z).Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c.Cases
}

// build creates the machine's files below a new root.
func (c machineCase) build(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range c.Dirs {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range c.Files {
		write(name, text)
	}
	for p := range c.Programs {
		name, _, _ := strings.Cut(p, " ")
		if _, err := os.Stat(filepath.Join(root, "/usr/bin", name)); err != nil {
			write("/usr/bin/"+name, "#!/bin/false\n")
		}
	}
	return root
}

// gather runs the Linux sources on the machine.
func (c machineCase) gather(t testing.TB) map[string]any {
	t.Helper()
	h := newHost(Options{Root: c.build(t), Opts: c.Opts, Getenv: func(string) string { return "" }})
	defer h.close()
	h.exec = func(_ context.Context, args ...string) (string, int, error) {
		key := strings.Join(append([]string{filepath.Base(args[0])}, args[1:]...), " ")
		p, ok := c.Programs[key]
		if !ok {
			return "", 127, nil
		}
		return p[0].(string), int(p[1].(float64)), nil
	}
	h.uname = func() unameInfo { return unameInfo{sysname: "Linux", machine: "x86_64"} }
	m := merger{grains: &pyobj.Dict{}}
	list := append([]source{{name: "kernel", gather: kernel}}, linuxSources()...)
	list = append(list, source{name: "extra", gather: extra}, source{name: "mdadm", gather: mdadm}, source{name: "lvm", gather: lvm},
		source{name: "iscsi", gather: iscsi}, source{name: "nvme", gather: nvme}, source{name: "fc", gather: fibreChannel})
	for _, s := range list {
		found, err := s.gather(t.Context(), h)
		if err != nil {
			t.Logf("%s: %v", s.name, err)
		}
		m.add(found)
	}
	return pyobj.PlainMap(m.grains)
}

func TestMachinesLikeSalt(t *testing.T) {
	for name, c := range loadCases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.gather(t)
			delete(got, "shell")
			b, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			var plain map[string]any
			if err := json.Unmarshal(b, &plain); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.Want, plain); diff != "" {
				t.Errorf("Salt -, ours +:\n%s", diff)
			}
		})
	}
}
