package sqlite_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/sqlite"
	"github.com/brine-salt/brine/master/store/sqlstore"
	"github.com/brine-salt/brine/master/store/storetest"
)

func open(t testing.TB, path string) *sqlstore.Store {
	t.Helper()
	s, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSuite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, filepath.Join(t.TempDir(), "odd name?&#%.db")) })
}

func TestSurvivesReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := open(t, path)
	want := store.Job{JID: "20260101000000000000", Fun: "test.ping", Tgt: "*", TgtType: "glob", Created: time.Unix(1767225600, 0).UTC()}
	if err := s.SaveJob(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SaveReturn(t.Context(), store.Return{JID: want.JID, ID: "m", Load: map[string]any{"return": true}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveJob(t.Context(), want); err == nil {
		t.Fatal("a closed store takes jobs")
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v", info.Mode())
	}
	s = open(t, path)
	defer s.Close()
	if got, err := s.Job(t.Context(), want.JID); err != nil || got.Fun != "test.ping" {
		t.Fatal(got, err)
	}
	if got, err := s.Returns(t.Context(), want.JID); err != nil || len(got) != 1 || got[0].Load["return"] != true {
		t.Fatal(got, err)
	}
}

func TestNotADatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	if err := os.WriteFile(path, []byte("this is not a database, however long it may be: "+fmt.Sprint(make([]int, 600))), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := sqlite.Open(path); err == nil {
		s.Close()
		t.Fatal("text was opened as a database")
	}
}

func BenchmarkReturns(b *testing.B) {
	for name, value := range map[string]any{"ping": true, "10 KB": strings.Repeat("x", 10<<10)} {
		b.Run(name, func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "jobs.db"))
			defer s.Close()
			load := map[string]any{"return": value, "retcode": 0, "success": true, "fun": "test.ping", "fun_args": []any{}}
			var wg sync.WaitGroup
			sem := make(chan struct{}, 1000)
			for i := range b.N {
				sem <- struct{}{}
				wg.Go(func() {
					defer func() { <-sem }()
					if _, err := s.SaveReturn(b.Context(), store.Return{JID: fmt.Sprint(i / 1000), ID: fmt.Sprint(i % 1000), Load: load, Received: time.Now()}); err != nil {
						b.Error(err)
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestShared(t *testing.T) {
	storetest.RunShared(t, func(t *testing.T) (out [2]store.Shared) {
		path := filepath.Join(t.TempDir(), "jobs")
		for i := range out {
			s, err := sqlite.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			out[i] = s
		}
		return out
	})
}

// TestMigration: a file of the version before is brought up to date, one of a later version is used as it is, and one that
// a later version forbids is left alone.
func TestMigration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs")
	exec := func(statement string) error {
		db, err := sql.Open("sqlite", path)
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = db.Exec(statement)
		return err
	}
	storetest.RunMigration(t, func(t *testing.T) store.Shared { return open(t, path) }, exec,
		"PRAGMA user_version = 1", "PRAGMA user_version = 99")
	const want = "its version is 99, newer than 3, and only brine of version 99 or later can use it"
	if s, err := sqlite.Open(path); err == nil {
		s.Close()
		t.Error("a later version that forbids it was opened")
	} else if !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func BenchmarkKeys(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "jobs"))
	defer s.Close()
	storetest.BenchKeys(b, s)
}

// TestOpenedBySeveral: masters that start at the same time make the file together.
func TestOpenedBySeveral(t *testing.T) {
	const masters, rounds = 4, 8
	for range rounds {
		path := filepath.Join(t.TempDir(), "jobs")
		var wg sync.WaitGroup
		for range masters {
			wg.Go(func() {
				s, err := sqlite.Open(path)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}
