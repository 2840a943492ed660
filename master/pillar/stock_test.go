//go:build interop

package pillar_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testsalt"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/protocol/payload"
)

// step is what is done with a cache whose pillars live 60 s.
type step struct {
	Text  string `json:"-"` // what the file of the pillar says from now on
	Env   string `json:"env,omitempty"`
	Clean bool   `json:"clean,omitempty"`
	Later int    `json:"later,omitempty"` // seconds that pass before
}

// TestStockCache runs stock's PillarCache and ours on the same requests, first each on its own files, then each on
// the other's.
func TestStockCache(t *testing.T) {
	dir := t.TempDir()
	files := filepath.Join(dir, "files")
	write := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(files, 0o755), os.WriteFile(filepath.Join(files, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("top.sls", "base: {'*': [data]}\ndev: {'*': [data]}\n")
	write("data.sls", "v: 0\n")
	start := time.Now().Truncate(time.Second)
	cmd := exec.Command(testsalt.Python(t), "-B", "testdata/stock_cache.py", dir, files, filepath.Join(dir, "theirs"), strconv.FormatInt(start.Unix(), 10))
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	answers := bufio.NewReader(out)
	theirs := func(s step) (p object) {
		t.Helper()
		b, err := json.Marshal(s)
		if err == nil {
			_, err = fmt.Fprintf(in, "%s\n", b)
		}
		if err != nil {
			t.Fatal(err)
		}
		line, err := answers.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &p)
		}
		if err != nil {
			t.Fatal("stock did not answer:", err)
		}
		return p
	}
	steps := []step{{Text: "v: 1\nn: {z: 1, a: [x, null, 1.5]}\n"}, {Text: "v: 2\n"}, {Env: "dev"}, {Text: "v: 3\n"}, {Env: "dev"}, {Later: 50}, {Later: 50}, {Text: "v: 4\n"},
		{Clean: true}, {Env: "dev", Text: "v: 5\n"}, {Later: 10}, {Later: 100, Env: "dev"}}
	var want []object
	for _, s := range steps {
		if s.Text != "" {
			write("data.sls", s.Text)
		}
		want = append(want, theirs(s))
	}
	// The clocks are the test's own, and the same, as the two share files afterwards.
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(start))
		r := pillar.NewRoots(pillar.RootsOptions{Roots: map[string][]string{"base": {files}, "dev": {files}}})
		c, err := pillar.OpenCache(filepath.Join(dir, "ours", "pillar_cache"), time.Minute, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ours := func(c *pillar.Cache, s step) object {
			t.Helper()
			time.Sleep(time.Duration(s.Later) * time.Second)
			if s.Clean {
				if err := c.Clear("web1"); err != nil {
					t.Fatal(err)
				}
			}
			p, err := c.Fetch("web1", s.Env, func() (payload.OrderedMap, error) {
				return r.Ordered(t.Context(), pillar.Request{ID: "web1", Grains: object{"id": "web1"}, Pillarenv: s.Env})
			})
			if err != nil {
				t.Fatal(err)
			}
			return payload.Plain(p).(object)
		}
		tidy := func(v object) string {
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		write("data.sls", "v: 0\n")
		for i, s := range steps {
			if s.Text != "" {
				write("data.sls", s.Text)
			}
			if d := cmp.Diff(tidy(want[i]), tidy(ours(c, s))); d != "" {
				t.Errorf("step %d %+v (-stock +ours):\n%s", i, s, d)
			}
		}
		// Each continues with the other's cache.
		write("data.sls", "v: later\n")
		swap := filepath.Join(dir, "swap")
		if err := errors.Join(os.Rename(filepath.Join(dir, "ours"), swap), os.Rename(filepath.Join(dir, "theirs"), filepath.Join(dir, "ours")),
			os.Rename(swap, filepath.Join(dir, "theirs"))); err != nil {
			t.Fatal(err)
		}
		c2, err := pillar.OpenCache(filepath.Join(dir, "ours", "pillar_cache"), time.Hour, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c2.Close()
		last := object{"v": float64(5)}
		if got := ours(c2, step{Env: "dev"}); tidy(got) != tidy(last) {
			t.Error("ours, with what stock kept:", got)
		}
		if got := theirs(step{Env: "dev"}); tidy(got) != tidy(last) {
			t.Error("stock, with what ours kept:", got)
		}
	})
}
