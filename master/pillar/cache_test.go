package pillar_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/protocol/payload"
)

// counted returns pillars with a running number.
type counted struct {
	n    int64
	errs bool
	fail error
}

func (c *counted) make() (payload.OrderedMap, error) {
	c.n++
	if c.errs {
		return payload.OrderedMap{{Key: "_errors", Value: []any{"broken"}}}, nil
	}
	return payload.OrderedMap{{Key: "z", Value: c.n}, {Key: "a", Value: payload.OrderedMap{{Key: int64(1), Value: nil}}}}, c.fail
}

func TestCache(t *testing.T) {
	for name, dir := range map[string]string{"memory": "", "disk": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { cacheKeeps(t, dir) })
		})
	}
}

func cacheKeeps(t *testing.T, dir string) {
	c, err := pillar.OpenCache(dir, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { c.Close() }()
	src := &counted{}
	// want fetches a pillar and expects the n-th that was made.
	want := func(what, id, env string, n int64) {
		t.Helper()
		p, err := c.Fetch(id, env, src.make)
		if err != nil {
			t.Fatal(what, err)
		}
		if d := cmp.Diff(payload.OrderedMap{{Key: "z", Value: n}, {Key: "a", Value: payload.OrderedMap{{Key: int64(1), Value: nil}}}}, p); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	want("made", "web1", "", 1)
	time.Sleep(time.Minute)
	want("kept", "web1", "", 1)
	want("another environment", "web1", "dev", 2)
	time.Sleep(time.Minute)
	want("the time counts from the last one", "web1", "", 1)
	want("another minion", "web2", "", 3)
	time.Sleep(time.Second)
	want("too old", "web1", "", 4)
	want("and what was beside it", "web1", "dev", 5)
	if dir != "" {
		c.Close()
		if c, err = pillar.OpenCache(dir, time.Minute, nil); err != nil {
			t.Fatal(err)
		}
		want("kept over a restart", "web1", "", 4)
		if info, err := os.Stat(filepath.Join(dir, "web1")); err != nil || info.Mode() != 0o600 {
			t.Error(info.Mode(), err)
		}
	}
	if p, ok := c.Shown("web1", "dev"); !ok || !cmp.Equal(p, any(object{"z": int64(5), "a": map[any]any{int64(1): nil}})) {
		t.Errorf("shown: %#v %v", p, ok)
	}
	if p, ok := c.Shown("web1", "prod"); !ok || p != nil {
		t.Error("another environment is shown:", p, ok)
	}
	if err := c.Clear("web1"); err != nil {
		t.Fatal(err)
	}
	if p, ok := c.Shown("web1", ""); ok || p != nil {
		t.Error("shown after it was cleared:", p)
	}
	want("cleared", "web1", "", 6)
	want("of that minion only", "web2", "", 3)
	if err := errors.Join(c.Clear("web1"), c.Clear("web1")); err != nil {
		t.Error("cleared twice:", err)
	}

	src.errs = true
	for n := range int64(2) {
		if p, err := c.Fetch("web1", "", src.make); err != nil || len(p) != 1 || src.n != 7+n {
			t.Error("errors are not kept:", p, err, src.n)
		}
	}
	src.errs, src.fail = false, errors.New("no")
	if _, err := c.Fetch("web1", "", src.make); err == nil {
		t.Error("a failure is not told")
	}
	src.fail = nil
	want("neither is a failure", "web1", "", 10)
	for _, id := range []string{"../web1", "", "a/b", "."} {
		if _, err := c.Fetch(id, "", src.make); err == nil || src.n != 10 {
			t.Errorf("id %q", id)
		}
		if _, ok := c.Shown(id, ""); ok || c.Clear(id) == nil {
			t.Errorf("id %q", id)
		}
	}
}

func TestCacheFilesThatAreBroken(t *testing.T) {
	dir := t.TempDir()
	c, err := pillar.OpenCache(dir, time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	src := &counted{}
	for i, text := range [][]byte{nil, []byte("no pack"), {0xc1}, {0x80}, {0x93, 1, 2, 3}, bytes.Repeat([]byte{0x91}, 1<<16), []byte("\x82\xaeCacheDisk_data\x01\xb3CacheDisk_cachetime\x02")} {
		if err := os.WriteFile(filepath.Join(dir, "web1"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok := c.Shown("web1", ""); ok {
			t.Errorf("%.20q has a pillar", text)
		}
		for range 2 {
			if p, err := c.Fetch("web1", "", src.make); err != nil || p[0].Value != int64(i+1) {
				t.Errorf("%.20q: %v %v", text, p, err)
			}
		}
	}
	// What is in the way stays in the way: the pillar is made each time.
	if err := errors.Join(os.Remove(filepath.Join(dir, "web1")), os.Mkdir(filepath.Join(dir, "web1"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if p, err := c.Fetch("web1", "", src.make); err != nil || len(p) != 2 {
		t.Error(p, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pillar.OpenCache(filepath.Join(dir, "file"), time.Hour, nil); err == nil {
		t.Error("a file was opened as a directory")
	}
}

// TestCacheOfManyEnvironments: a minion that asks for ever more environments has some of them kept.
func TestCacheOfManyEnvironments(t *testing.T) {
	c, err := pillar.OpenCache("", time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		if _, err := c.Fetch("m", fmt.Sprint("e", i), func() (payload.OrderedMap, error) { return payload.OrderedMap{{Key: "n", Value: int64(i)}}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	for env, want := range map[string]any{"e7": nil, "e8": map[string]any{"n": int64(8)}, "e39": map[string]any{"n": int64(39)}} {
		if got, _ := c.Shown("m", env); !cmp.Equal(got, want) {
			t.Errorf("%s: %v, want %v", env, got, want)
		}
	}
}
