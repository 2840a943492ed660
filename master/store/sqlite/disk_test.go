package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/master/store"
)

// TestLogOfSmallDisk stores jobs on a disk that a log of the usual size would fill.
func TestLogOfSmallDisk(t *testing.T) {
	const disk = 64 << 20
	path := filepath.Join(t.TempDir(), "jobs.sqlite")
	s, err := openSized(path, disk)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 200 { // 18 MiB of log, if all of it stayed
		if err := s.SaveJob(t.Context(), store.Job{JID: fmt.Sprintf("2026010100%010d", i), Fun: "test.ping", Tgt: "*", TgtType: "glob"}); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if most := int64(disk/logShare + 16*pageSize); info.Size() == 0 || info.Size() > most {
		t.Errorf("the log has %d bytes, want at most %d", info.Size(), most)
	}
	for disk, want := range map[int64]int64{0: maxLog, 1 << 20: minLog, 64 << 20: 2 << 20, 1 << 40: maxLog} {
		if got := logSize(disk); got != want {
			t.Errorf("the log of a disk of %d bytes is %d bytes, want %d", disk, got, want)
		}
	}
}

// TestExplain has SQLite refuse to write, and the directory too.
func TestExplain(t *testing.T) {
	dir := t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, "db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.Exec("PRAGMA query_only = 1; CREATE TABLE t (a)")
	if err == nil {
		t.Fatal("SQLite wrote")
	}
	if got := explain(dir, err); got != err {
		t.Errorf("with a directory that can be written: %v, want %v", got, err)
	}
	if left, err := filepath.Glob(dir + "/.disk-*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	if got := explain(dir+"/gone", err); !errors.Is(got, err) || !errors.Is(got, fs.ErrNotExist) {
		t.Errorf("without the directory: %v", got)
	}
	if got := explain(dir+"/gone", fs.ErrPermission); got != fs.ErrPermission {
		t.Errorf("another error became %v", got)
	}
}
