package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func open(t *testing.T, o Options) *Spool {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func load(n int) map[string]any {
	return map[string]any{"cmd": "_return", "jid": fmt.Sprint(n), "return": []byte{0xff, byte(n)}, "big": strings.Repeat("x", 1000)}
}

func jids(list []*Item) []string {
	var out []string
	for _, it := range list {
		out = append(out, it.JID)
	}
	return out
}

func TestSurvivesARestart(t *testing.T) {
	c := &clock{time.Unix(1_800_000_000, 0)}
	o := Options{Dir: filepath.Join(t.TempDir(), "s"), Now: c.now}
	s := open(t, o)
	for i := range 12 {
		if _, err := s.Put(fmt.Sprint("m", i%2), fmt.Sprint(i), load(i)); err != nil {
			t.Fatal(err)
		}
	}
	s.Done(s.Pending()[3])
	s = open(t, o)
	want := []string{"0", "1", "2", "4", "5", "6", "7", "8", "9", "10", "11"}
	if diff := cmp.Diff(want, jids(s.Pending())); diff != "" {
		t.Error(diff)
	}
	it := s.Pending()[10]
	got, err := s.Load(it)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(load(11), got); diff != "" || it.Master != "m1" || !it.At.Equal(c.t) {
		t.Errorf("%s %v %s", it.Master, it.At, diff)
	}
	if !s.Has("7") || s.Has("3") {
		t.Error("Has is wrong")
	}
	files, _ := os.ReadDir(o.Dir)
	if len(files) != 11 {
		t.Errorf("%d files", len(files))
	}
	for _, f := range files {
		if info, _ := f.Info(); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", f.Name(), info.Mode())
		}
	}
	for _, it := range s.Pending() {
		s.Done(it)
		s.Done(it)
	}
	if files, _ := os.ReadDir(o.Dir); len(files) != 0 || s.bytes != 0 || s.Dropped() != 0 {
		t.Errorf("%d files, %d bytes, %d dropped", len(files), s.bytes, s.Dropped())
	}
}

func TestSizeLimitDropsTheOldest(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), MaxBytes: 5000})
	for i := range 10 {
		if _, err := s.Put("m", fmt.Sprint(i), load(i)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"6", "7", "8", "9"}, jids(s.Pending())); diff != "" || s.Dropped() != 6 {
		t.Errorf("%d dropped %s", s.Dropped(), diff)
	}
}

func TestExpired(t *testing.T) {
	c := &clock{time.Unix(1_800_000_000, 0)}
	s := open(t, Options{Dir: t.TempDir(), Now: c.now, TTL: time.Hour})
	s.Put("m", "1", load(1))
	c.t = c.t.Add(30 * time.Minute)
	s.Put("m", "2", load(2))
	c.t = c.t.Add(31 * time.Minute)
	if diff := cmp.Diff([]string{"1"}, jids(s.Expired())); diff != "" {
		t.Error(diff)
	}
	s.Drop(s.Expired()[0], "old")
	if len(s.Expired()) != 0 || len(s.Pending()) != 1 || s.Dropped() != 1 {
		t.Error("Drop is wrong")
	}
}

func TestDamagedFilesAreSetAside(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"00000000000000000001.return": "", "00000000000000000002.return": "\xc1", "x.return": "\x93\x01\x02\x03", "note": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, Options{Dir: dir})
	if len(s.Pending()) != 0 {
		t.Errorf("%v", jids(s.Pending()))
	}
	damagedFiles, _ := filepath.Glob(filepath.Join(dir, "*.damaged"))
	if len(damagedFiles) != 3 {
		t.Errorf("set aside: %v", damagedFiles)
	}
	if _, err := s.Put("m", "1", load(1)); err != nil {
		t.Error(err)
	}
}

func TestDiskFailureKeepsReturnsInMemory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	s := open(t, Options{Dir: dir})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	it, err := s.Put("m", "1", load(1))
	if err == nil || it == nil || !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("Put = %v, %v", it, err)
	}
	if got, err := s.Load(it); err != nil || got["jid"] != "1" {
		t.Errorf("Load = %v, %v", got, err)
	}
	big := map[string]any{"return": strings.Repeat("y", 6<<20)}
	for i := range 5 {
		if it, _ := s.Put("m", fmt.Sprint("big", i), big); it == nil {
			t.Fatal("a return was not kept")
		}
	}
	if s.memory > maxMemory || len(s.Pending()) != 2 || s.Dropped() != 4 {
		t.Errorf("%d bytes in memory, %d returns, %d dropped", s.memory, len(s.Pending()), s.Dropped())
	}
}

func TestUnpackable(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir()})
	if it, err := s.Put("m", "1", map[string]any{"return": make(chan int)}); it != nil || err == nil {
		t.Errorf("Put = %v, %v", it, err)
	}
}
