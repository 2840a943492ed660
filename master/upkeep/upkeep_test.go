package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testlog"
)

// house is the rest of a master. It records the calls.
type house struct {
	began time.Time
	told  []string
	duty  time.Duration // how long from the start it has the duty
	err   error
}

func (h *house) note(format string, a ...any) {
	h.told = append(h.told, fmt.Sprint(time.Since(h.began), " ", fmt.Sprintf(format, a...)))
}

func (h *house) Maintain(_ context.Context,
	now time.Time) bool {
	return now.Sub(h.began) <= h.duty
}

func (h *house) Rotate(context.Context) error {
	h.note("key")
	return h.err
}

// chore is one of two.
type chore struct {
	*house
	name string
}

func (c chore) Tend(_ context.Context, _ time.Time, duty bool) { c.note("%s %v", c.name, duty) }

// start runs a Round of two chores until the test ends or stop is called.
func start(t *testing.T, h *house, dir string, interval time.Duration) (r *Round,
	log *testlog.Buffer, stop func()) {
	h.began, log = time.Now(), new(testlog.Buffer)
	r = New(Options{Interval: interval, Duties: h, Rotator: h, DropDir: dir,
		Chores: []Chore{chore{h, "one"}, chore{h, "two"}},
		Log:    slog.New(slog.NewTextHandler(log, nil))})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		r.Run(ctx)
		close(ended)
	}()
	return r, log, func() {
		cancel()
		<-ended
	}
}

// TestChores: chores run in order at every interval, and know whether this master has the duty.
func TestChores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{duty: time.Minute}
		_, _, stop := start(t, h, "", time.Minute)
		time.Sleep(2*time.Minute + time.Second)
		stop()
		want := []string{"1m0s one true", "1m0s two true", "2m0s one false", "2m0s two false"}
		if diff := cmp.Diff(want, h.told); diff != "" {
			t.Error(diff)
		}
	})
}

// TestKeysAreReplaced: several wishes in a row make one new key, and what fails is logged.
func TestKeysAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{err: errors.New("no database")}
		r, log, stop := start(t, h, "", time.Minute)
		for range 5 {
			r.AskForKey()
		}
		synctest.Wait()
		time.Sleep(time.Second)
		r.AskForKey()
		synctest.Wait()
		stop()
		if n := len(h.told); n < 2 || n > 3 { // the loop may take the first wish before the second
			t.Errorf("%d new keys: %q", n, h.told)
		}
		if last := h.told[len(h.told)-1]; last != "1s key" {
			t.Errorf("the last one: %s", last)
		}
		if !strings.Contains(log.String(), "no database") {
			t.Errorf("the log says nothing: %s", log)
		}
	})
}

// TestDropFile: a plain file of mode 0400 asks for a new key once; others are left where they are.
func TestDropFile(t *testing.T) {
	for name, c := range map[string]struct {
		mode os.FileMode
		dir  bool
		want int
	}{
		"as salt-key makes it": {mode: 0o400, want: 1},
		"that others made":     {mode: 0o644},
		"a directory":          {mode: 0o400, dir: true},
	} {
		if runtime.GOOS == "windows" && c.mode != 0o400 {
			continue // where files have no such modes
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, dropFile)
			err := os.WriteFile(path, nil, c.mode)
			if c.dir {
				err = errors.Join(os.Remove(path), os.Mkdir(path, c.mode))
			}
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				h := new(house)
				_, log, stop := start(t, h, dir, time.Minute)
				time.Sleep(3 * dropInterval)
				stop()
				if len(h.told) != c.want || c.want > 0 && h.told[0] != "2s key" {
					t.Errorf("new keys: %q", h.told)
				}
				if _, err := os.Lstat(path); (err == nil) != (c.want == 0) {
					t.Errorf("the file: %v", err)
				}
				if strings.Contains(log.String(), "Ignoring drop file") != (c.want == 0) {
					t.Errorf("log: %s", log)
				}
			})
		})
	}
}
