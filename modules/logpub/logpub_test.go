package logpub

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// sender is a master that receives files, or refuses them.
type sender struct {
	modulestest.NoFiles
	got    map[string]string
	refuse bool
}

func (s *sender) Send(_ context.Context, path, name string) (bool, error) {
	b, err := os.ReadFile(path)
	if err != nil || s.refuse {
		return false, err
	}
	s.got[name] = string(b)
	return true, nil
}

type host struct {
	t   *testing.T
	env *modules.Env
	log string
}

func newHost(t *testing.T) *host {
	h := &host{t: t, env: modulestest.Env(t)}
	now := time.Date(2026, 5, 4, 3, 2, 1, 500_000_000, time.UTC)
	h.env.Clock = func() time.Time { now = now.Add(time.Second); return now }
	h.log = h.env.Path("/app.log")
	return h
}

// write writes a log that is old, so that the end of its last line is not awaited.
func (h *host) write(text string) {
	h.t.Helper()
	err := os.WriteFile(h.log, []byte(text), 0o600)
	if err == nil {
		err = os.Chtimes(h.log, time.Time{}, time.Now().Add(-time.Hour))
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// append is called by other goroutines as well.
func (h *host) append(text string) {
	log, err := os.OpenFile(h.log, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = log.WriteString(text)
		err = errors.Join(err, log.Close())
	}
	if err != nil {
		h.t.Error(err)
	}
}

func (h *host) run(fun string, args ...any) (any, error) {
	r := modules.NewRegistry(Module).Run(h.t.Context(), h.env, modules.Request{Fun: "logpub." + fun, Args: args})
	return r.Return, r.Err
}

// is compares the state that a function returns.
func (h *host) is(status string, size, published, pending int64, fun string, args ...any) {
	h.t.Helper()
	want := map[string]any{"name": "app.log", "path": "/app.log", "status": status, "size": size, "published": published, "pending": pending, "prefix": nil}
	if published > 0 {
		want["prefix"] = "minion/app.log/"
	}
	v, err := h.run(fun, append([]any{"/app.log"}, args...)...)
	if err != nil {
		h.t.Errorf("%s: %v", fun, err)
	} else if d := cmp.Diff(any(want), v); d != "" {
		h.t.Errorf("%s:\n%s", fun, d)
	}
}

// files returns the names and texts of the files in a directory.
func (h *host) files(dir string) map[string]string {
	h.t.Helper()
	out := map[string]string{}
	root := h.env.Path(dir)
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		out[strings.TrimPrefix(p, root+"/")] = string(b)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

// TestDirectory publishes, goes on, follows a rotation and discards.
func TestDirectory(t *testing.T) {
	h := newHost(t)
	h.is("Enabled", 0, 0, 0, "show", "/srv")
	if _, err := h.run("publish", "/app.log", "/srv"); err == nil || err.Error() != "Cannot publish log file '/app.log' as it does not exist." {
		t.Errorf("a missing log: %v", err)
	}
	h.write("first\nsecond\n")
	h.is("Ready", 13, 0, 13, "show", "/srv")
	h.is("Published", 13, 13, 0, "publish", "/srv", nil, int64(8))
	h.write("first\nsecond\nand a long line\nrest")
	h.is("Partial", 33, 13, 20, "show", "/srv")
	h.is("Partial", 33, 29, 4, "publish", "/srv", nil, int64(8))
	want := map[string]string{
		"minion/app.log/log-2026-05-04T03:02:02.500000-0":  "first\n",
		"minion/app.log/log-2026-05-04T03:02:03.500000-6":  "second\n",
		"minion/app.log/log-2026-05-04T03:02:04.500000-13": "and a long line\n",
		"minion/app.log_metafile":                          `{"log_name":"app.log","log_type":"USER","log_file":"/app.log","log_size":29,"log_header_digest":"` + header + `"}`,
	}
	if d := cmp.Diff(want, h.files("/srv")); d != "" {
		t.Error(d)
	}
	h.is("Partial", 33, 29, 4, "publish", "/srv")
	h.write("first\nsecond\nand a long line\nrest\n")
	h.is("Published", 34, 34, 0, "publish", "/srv")
	want["minion/app.log/log-2026-05-04T03:02:05.500000-29"] = "rest\n"

	h.write("other\n")
	h.is("Rotated", 6, 34, 6, "show", "/srv")
	h.is("Published", 6, 6, 0, "publish", "/srv")
	delete(want, "minion/app.log_metafile")
	got := h.files("/srv")
	for name := range want {
		if _, ok := got[name]; ok {
			t.Errorf("%s is of the log before its rotation", name)
		}
	}
	h.is("Ready", 6, 0, 6, "discard", "/srv")
	if got := h.files("/srv"); len(got) > 0 {
		t.Errorf("after discard: %v", got)
	}
}

// header is the MD5 sum of the first line.
const header = "eb260e9ae827821beceeed4104f0ad89"

// TestMaster sends the parts to the master, and knows what is sent.
func TestMaster(t *testing.T) {
	h := newHost(t)
	s := &sender{got: map[string]string{}, refuse: true}
	h.env.Files = s
	h.write("first\n")
	if _, err := h.run("publish", "/app.log", "master"); err == nil || !strings.HasSuffix(err.Error(), "the master does not accept files (its option file_recv)") {
		t.Errorf("a master that refuses: %v", err)
	}
	h.is("Ready", 6, 0, 6, "show", "master")
	s.refuse = false
	h.is("Published", 6, 6, 0, "publish", "master")
	h.write("first\nsecond\n")
	h.is("Published", 13, 13, 0, "publish", "master")
	want := map[string]string{"minion/app.log/log-2026-05-04T03:02:03.500000-0": "first\n", "minion/app.log/log-2026-05-04T03:02:04.500000-6": "second\n"}
	if d := cmp.Diff(want, s.got); d != "" {
		t.Error(d)
	}
	if _, err := h.run("discard", "/app.log", "master"); err == nil || err.Error() != "cannot discard /app.log: a minion does not remove files of its master" {
		t.Errorf("discard: %v", err)
	}
	h.write("x\n")
	h.is("Published", 2, 2, 0, "publish", "master")
}

func TestArguments(t *testing.T) {
	h := newHost(t)
	h.write("x\n")
	for _, c := range []struct {
		args []any
		want string
	}{
		{[]any{"app.log", "/srv"}, "path must be an absolute path, not 'app.log'"},
		{[]any{"/app.log", "srv"}, "to must be a directory's absolute path or master, not 'srv'"},
		{[]any{"/app.log", "/srv", "../x"}, "name must be that of a file below the directory, not '../x'"},
		{[]any{"/app.log", "/srv", nil, int64(0)}, "limit must be 1 to 67108864 bytes, not 0"},
		{[]any{"/", "/srv", "dir"}, "cannot read the log dir: it is not a regular file"},
	} {
		if _, err := h.run("publish", c.args...); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, not %s", c.args, err, c.want)
		}
	}
	if v, err := h.run("publish", "/app.log", "/srv", "web/access"); err != nil || v.(map[string]any)["prefix"] != "minion/web/access/" {
		t.Errorf("another name: %v, %v", v, err)
	}
}

// TestLines: a line is divided only if it has more than 1 MiB, and the last one is published when it is complete.
func TestLines(t *testing.T) {
	h := newHost(t)
	const mib = 1 << 20
	long := strings.Repeat("x", 9000) + "\n"
	h.write("a\n" + long + "b\n" + long[:5000])
	h.is("Partial", 14005, 9005, 5000, "publish", "/srv", nil, int64(4000))
	h.write("a\n" + long + "b\n" + long)
	h.is("Published", 18006, 18006, 0, "publish", "/srv", nil, int64(4000))
	want := map[string]string{"0": "a\n", "2": long, "9003": "b\n", "9005": long}
	if d := cmp.Diff(want, h.parts()); d != "" {
		t.Error(d)
	}

	h.write(strings.Repeat("y", mib))
	h.is("Rotated", mib, 18006, mib, "show", "/srv")
	h.is("Ready", mib, 0, mib, "publish", "/srv")
	h.write(strings.Repeat("y", mib) + "\n")
	h.is("Published", mib+1, mib+1, 0, "publish", "/srv")
	want = map[string]string{"0": strings.Repeat("y", mib) + "\n"}
	if d := cmp.Diff(want, h.parts()); d != "" {
		t.Error(d)
	}

	h.write(strings.Repeat("x", mib+10))
	h.is("Partial", mib+10, mib+1, 9, "publish", "/srv")
	h.write(strings.Repeat("x", mib+10) + "z\n")
	h.is("Published", mib+12, mib+12, 0, "publish", "/srv")
	want = map[string]string{"0": strings.Repeat("x", mib+1), "1048577": strings.Repeat("x", 9) + "z\n"}
	if d := cmp.Diff(want, h.parts()); d != "" {
		t.Error(d)
	}
}

// TestLineInPieces: the end of a line that is being written is awaited. That of a line that was begun long ago is not.
func TestLineInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.write("a\n")
		h.append("\t12 Query\t")
		written := make(chan struct{})
		go func() {
			synctest.Wait() // until publish waits
			h.append("SELECT 1\n")
			close(written)
		}()
		h.is("Published", 21, 21, 0, "publish", "/srv")
		<-written
		if d := cmp.Diff(map[string]string{"0": "a\n\t12 Query\tSELECT 1\n"}, h.parts()); d != "" {
			t.Error(d)
		}

		h.append("\t13 Quit")
		for _, c := range []struct{ age, wait time.Duration }{
			{-time.Hour, 500 * time.Millisecond}, {200 * time.Millisecond, 310 * time.Millisecond}, {time.Second, 0},
		} {
			begin := time.Now()
			if err := os.Chtimes(h.log, time.Time{}, begin.Add(-c.age)); err != nil {
				t.Fatal(err)
			}
			h.is("Partial", 29, 21, 8, "publish", "/srv")
			if wait := time.Since(begin); wait != c.wait {
				t.Errorf("a line that is %s old was awaited for %s, not %s", c.age, wait, c.wait)
			}
		}
	})
}

// parts returns the published texts by their offsets.
func (h *host) parts() map[string]string {
	h.t.Helper()
	out := map[string]string{}
	for name, text := range h.files("/srv/minion/app.log") {
		out[name[strings.LastIndexByte(name, '-')+1:]] = text
	}
	return out
}

// TestFirstLine: a first line that is completed after it was published, as Trove's agent does it, is no rotation.
func TestFirstLine(t *testing.T) {
	h := newHost(t)
	h.write("fir")
	h.is("Ready", 3, 0, 3, "publish", "/srv")
	file := h.env.Path("/srv/minion/app.log_metafile")
	meta := `{"log_name":"app.log","log_type":"USER","log_file":"/app.log","log_size":3,"log_header_digest":"` + unfinished + `"}`
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(meta), 0o600)); err != nil {
		t.Fatal(err)
	}
	h.is("Published", 3, 3, 0, "show", "/srv")
	h.write("first\n")
	h.is("Partial", 6, 3, 3, "show", "/srv")
	h.is("Published", 6, 6, 0, "publish", "/srv")
	if d := cmp.Diff(map[string]string{"3": "st\n"}, h.parts()); d != "" {
		t.Error(d)
	}
	h.is("Published", 6, 6, 0, "show", "/srv")
	h.write("fix, and a longer line\n")
	h.is("Rotated", 23, 6, 23, "show", "/srv")
}

// unfinished is the MD5 sum of the first line before it is complete.
const unfinished = "1846c75923656922409346559bd15573"
