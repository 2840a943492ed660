package update

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/brine-salt/brine/cmd/internal/repository"
	"github.com/brine-salt/brine/cmd/internal/update/layout"
)

// fakeProgram returns the header of a program for a processor, followed by a text.
func fakeProgram(machine elf.Machine, text string) []byte {
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: 1, Ehsize: 64}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, h)
	b.WriteString(text)
	return b.Bytes()
}

// lab is a repository, a web server for it, and a host with an updater.
type lab struct {
	t      *testing.T
	repo   *repository.Repository
	keys   string
	server *httptest.Server
	client *Repository
	now    time.Time
	// answer, if set, may respond instead of the server; it returns false to let the server respond with its file.
	answer func(w http.ResponseWriter, r *http.Request) bool
}

const testPlatform = "linux-amd64"

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, keys: t.TempDir(), now: time.Now()}
	for _, name := range []string{"root.1", "root.2", "root.3", "targets", "snapshot", "timestamp", "stable", "edge"} {
		l.key(l.keys, name)
	}
	l.repo = &repository.Repository{Dir: filepath.Join(t.TempDir(), "repo"), Keys: l.keys, Threshold: 2,
		Life: repository.DefaultLifetimes, Now: func() time.Time { return l.now }}
	l.must(l.repo.Init())
	files := http.FileServer(http.Dir(l.repo.Dir))
	l.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.answer == nil || !l.answer(w, r) {
			files.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(l.server.Close)
	root := filepath.Join(t.TempDir(), RootFile)
	l.must(os.WriteFile(root, l.read("metadata/1.root.json"), 0o600))
	l.client = &Repository{Root: root, StateDir: t.TempDir(), Channel: "stable", Platform: testPlatform,
		Download: time.Minute, Now: func() time.Time { return l.now }}
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) key(dir, name string) {
	l.t.Helper()
	l.must(repository.NewKey(filepath.Join(dir, name+".pem")))
}

func (l *lab) read(name string) []byte {
	l.t.Helper()
	b, err := os.ReadFile(filepath.Join(l.repo.Dir, name))
	l.must(err)
	return b
}

// add adds a program for this platform to the channel stable.
func (l *lab) add(version string, data []byte) {
	l.t.Helper()
	file := filepath.Join(l.t.TempDir(), "program")
	l.must(os.WriteFile(file, data, 0o600))
	l.must(l.repo.Add("stable", version, map[string]string{testPlatform: file}))
}

func (l *lab) fetch(version, have string) (string, *Program, error) {
	return l.client.Fetch(l.t.Context(), l.server.URL, version, func(v string) bool { return v != have })
}

// files returns the contents below the state directory.
func (l *lab) files() map[string]string {
	l.t.Helper()
	all := map[string]string{}
	l.must(filepath.WalkDir(l.client.StateDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == l.client.StateDir {
			return err
		}
		rel, _ := filepath.Rel(l.client.StateDir, path)
		all[rel] = d.Type().String()
		if d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			all[rel] = string(b)
			return err
		}
		return nil
	}))
	return all
}

// tree returns the modes, link targets and contents of everything below a directory, by relative path.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		all[rel] = info.Mode().String()
		var b []byte
		switch {
		case info.Mode().IsRegular():
			b, err = os.ReadFile(path)
			all[rel] += " " + string(b)
		case info.Mode().Type() == fs.ModeSymlink:
			to, err := os.Readlink(path)
			all[rel] += " " + to
			return err
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// quietHost creates a host whose minion is in slot a, with the previous version in slot b. Its programs cannot run. The
// lab's client uses its state directory.
func (l *lab) quietHost() *Updater {
	l.t.Helper()
	dir := l.t.TempDir()
	u := updaterOf(&Config{Dir: dir, Enabled: true, Sources: []string{l.server.URL}, Channel: "stable", Root: l.client.Root,
		Program: filepath.Join(dir, "bin", layout.Program), StateDir: filepath.Join(dir, "state"), Health: time.Second, Download: time.Minute})
	u.Now = func() time.Time { return l.now }
	l.client.StateDir = u.StateDir
	for _, slot := range slotNames {
		l.must(os.MkdirAll(filepath.Dir(u.slotProgram(slot)), 0o755))
		l.must(os.WriteFile(u.slotProgram(slot), []byte("in slot "+slot), 0o644))
	}
	l.must(os.Mkdir(filepath.Dir(u.Program), 0o755))
	l.must(os.Symlink(u.slotProgram("a"), u.Program))
	l.must(u.set(func(s *State) { s.Slots = map[string]string{"a": "1.0.0", "b": "0.9.0"} }))
	return u
}

// trustedOf returns the metadata that a host trusts.
func trustedOf(t *testing.T, files map[string]string) (had trusted) {
	t.Helper()
	if text := files[trustedFile]; text != "" {
		if err := json.Unmarshal([]byte(text), &had); err != nil {
			t.Fatal(err)
		}
	}
	return had
}

// verified checks the signatures of all metadata that the host stored since before.
func verified(t *testing.T, before, files map[string]string) {
	t.Helper()
	old, had := trustedOf(t, before), trustedOf(t, files)
	if len(had.Roles) == 0 {
		return
	}
	root, err := metadata.Root().FromBytes([]byte(had.Roles[metadata.ROOT]))
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]*metadata.Metadata[metadata.TargetsType]{}
	for role, text := range had.Roles {
		if role != metadata.ROOT && role != metadata.TIMESTAMP && role != metadata.SNAPSHOT {
			if targets[role], err = metadata.Targets().FromBytes([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for role, text := range had.Roles {
		if text == old.Roles[role] {
			continue // it may have been signed with a key that is revoked now
		}
		var err error
		switch channel, _, platform := strings.Cut(role, "-"); {
		case role == metadata.ROOT:
			err = root.VerifyDelegate(role, root)
		case role == metadata.TIMESTAMP:
			m, e := metadata.Timestamp().FromBytes([]byte(text))
			err = errors.Join(e, root.VerifyDelegate(role, m))
		case role == metadata.SNAPSHOT:
			m, e := metadata.Snapshot().FromBytes([]byte(text))
			err = errors.Join(e, root.VerifyDelegate(role, m))
		case role == metadata.TARGETS:
			err = root.VerifyDelegate(role, targets[role])
		case platform:
			err = targets[channel].VerifyDelegate(role, targets[role])
		default:
			err = targets[metadata.TARGETS].VerifyDelegate(role, targets[role])
		}
		if err != nil {
			t.Errorf("the host trusts %s: %v", role, err)
		}
	}
}

// versions returns the versions of the metadata that the host trusts.
func versions(t *testing.T, files map[string]string) map[string]int64 {
	t.Helper()
	had := trustedOf(t, files)
	if len(had.Roles) == 0 {
		return nil
	}
	out := map[string]int64{}
	for role, text := range had.Roles {
		var m struct {
			Signed struct {
				Version int64 `json:"version"`
			} `json:"signed"`
		}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		out[role] = m.Signed.Version
	}
	return out
}

func TestFetch(t *testing.T) {
	l := newLab(t)
	if _, _, err := l.fetch("", ""); err == nil || !strings.Contains(err.Error(), "the channel stable has no program for linux-amd64") {
		t.Fatalf("an empty repository: %v", err)
	}
	one, two := fakeProgram(elf.EM_X86_64, "one"), fakeProgram(elf.EM_X86_64, "two")
	l.add("1.9.0", one)
	l.add("1.10.0", two)
	l.add("1.10.0-rc.1", one)
	for _, c := range []struct {
		version, have, want string
		data                []byte
	}{{"", "", "1.10.0", two}, {"1.9.0", "1.10.0", "1.9.0", one}, {"", "1.10.0", "1.10.0", nil}, {"", "", "1.10.0", two}} {
		v, p, err := l.fetch(c.version, c.have)
		if err != nil || v != c.want || (p == nil) != (c.data == nil) {
			t.Fatalf("%+v: %s %v %v", c, v, p, err)
		}
		if p != nil && !bytes.Equal(p.Data, c.data) {
			t.Errorf("%+v: other bytes", c)
		}
	}
	files := l.files()
	if d := cmp.Diff([]string{trustedFile}, slices.Sorted(maps.Keys(files))); d != "" {
		t.Errorf("the state directory has other files:\n%s", d)
	}
	// Rotation: new keys for all roles. Hosts follow from the root that they trust.
	fresh := t.TempDir()
	for _, name := range []string{"root.1", "root.2", "targets", "snapshot", "timestamp", "stable", "edge"} {
		l.key(fresh, name)
	}
	l.repo.Keys = fresh
	l.must(l.repo.Rotate(l.keys))
	l.add("2.0.0", two)
	if v, _, err := l.fetch("", ""); err != nil || v != "2.0.0" {
		t.Fatalf("after a rotation: %s %v", v, err)
	}
	if got := versions(t, l.files())["root"]; got != 2 {
		t.Errorf("the host trusts root %d", got)
	}
	// A removed version is not found.
	l.must(l.repo.Remove("stable", "2.0.0"))
	if v, _, err := l.fetch("", ""); err != nil || v != "1.10.0" {
		t.Errorf("after a removal: %s %v", v, err)
	}
	if _, _, err := l.fetch("2.0.0", ""); err == nil || !strings.Contains(err.Error(), "target stable/linux-amd64/2.0.0/brine-minion not found") {
		t.Errorf("a version that was removed: %v", err)
	}
}

// TestRefusals tests what an updater refuses. A refusal leaves every file of the host as it was, and no temporary file. Only the
// state records the check, and verified metadata is stored (keeps).
func TestRefusals(t *testing.T) {
	program := fakeProgram(elf.EM_X86_64, "program")
	sum := sha256.Sum256(program)
	targetFile := "targets/stable/linux-amd64/1.1.0/" + hex.EncodeToString(sum[:]) + ".brine-minion"
	// serve replaces the content of one file.
	serve := func(l *lab, name string, data []byte) {
		l.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, name) {
				return false
			}
			_, _ = w.Write(data)
			return true
		}
	}
	type table struct {
		name  string
		want  string           // part of the error
		keeps map[string]int64 // versions of verified metadata that differ from those before
		run   func(l *lab)
	}
	for _, c := range []table{
		{"rollback of the timestamp", "new timestamp version 2 must be >= 3", nil, func(l *lab) {
			l.add("1.1.0", program)
			old := l.read("metadata/timestamp.json")
			l.add("1.2.0", program)
			if _, _, err := l.fetch("", ""); err != nil {
				l.t.Fatal(err)
			}
			serve(l, "/timestamp.json", old)
		}},
		{"rollback of the snapshot", "new snapshot version 2 must be >= 3", nil, func(l *lab) {
			l.add("1.1.0", program)
			old := l.read("metadata/2.snapshot.json")
			l.add("1.2.0", program)
			if _, _, err := l.fetch("", ""); err != nil {
				l.t.Fatal(err)
			}
			l.stamp(9, 2, old)
		}},
		{"rollback of a role", "version 2, got 3", map[string]int64{"timestamp": 4}, func(l *lab) {
			l.add("1.1.0", program)
			l.add("1.2.0", program)
			if _, _, err := l.fetch("", ""); err != nil {
				l.t.Fatal(err)
			}
			l.rollBack("stable-linux-amd64")
		}},
		{"freeze: an expired timestamp", "timestamp.json is expired", nil, func(l *lab) {
			l.add("1.1.0", program)
			if _, _, err := l.fetch("", ""); err != nil {
				l.t.Fatal(err)
			}
			l.now = l.now.Add(8 * 24 * time.Hour)
		}},
		{"freeze: a clock that was set back", "timestamp.json is expired", nil, func(l *lab) {
			l.add("1.1.0", program)
			begin := l.now
			l.now = l.now.Add(8 * 24 * time.Hour)
			if _, _, err := l.fetch("", ""); err == nil {
				l.t.Fatal("expired metadata is taken")
			}
			l.now = begin
		}},
		{"mix and match: metadata of two states", "stable-linux-amd64 version 3, got 2", map[string]int64{"timestamp": 4, "snapshot": 4}, func(l *lab) {
			l.add("1.1.0", program)
			old := l.read("metadata/2.stable-linux-amd64.json")
			l.add("1.2.0", program)
			l.unhashed()
			serve(l, "/3.stable-linux-amd64.json", old)
		}},
		{"mix and match: a snapshot of another state", "hash verification failed", map[string]int64{"timestamp": 3}, func(l *lab) {
			l.add("1.1.0", program)
			old := l.read("metadata/2.snapshot.json")
			l.add("1.2.0", program)
			serve(l, "/3.snapshot.json", old)
		}},
		{"wrong length: a program that is too short", "length verification failed", nil, func(l *lab) {
			l.add("1.1.0", program)
			l.change("stable-linux-amd64", "stable", func(s *metadata.TargetsType) {
				s.Targets["stable/linux-amd64/1.1.0/brine-minion"].Length += 10
			})
		}},
		{"wrong length: a program that is too long", "has more than 71 bytes", nil, func(l *lab) {
			l.add("1.1.0", program)
			serve(l, targetFile, append(slices.Clone(program), 0))
		}},
		{"wrong length: larger than any program", "more than 67108864", nil, func(l *lab) {
			l.add("1.1.0", program)
			l.change("stable-linux-amd64", "stable", func(s *metadata.TargetsType) {
				s.Targets["stable/linux-amd64/1.1.0/brine-minion"].Length = 1 << 40
			})
		}},
		{"endless data: a timestamp", "has more than 16384 bytes", nil, func(l *lab) {
			l.add("1.1.0", program)
			l.answer = endless("/timestamp.json")
		}},
		{"endless data: a root", "has more than 65536 bytes", nil, func(l *lab) {
			l.add("1.1.0", program)
			l.answer = endless("/2.root.json")
		}},
		{"endless data: a program", "has more than 71 bytes", nil, func(l *lab) {
			l.add("1.1.0", program)
			l.answer = endless(targetFile)
		}},
		{"wrong hash", "hash verification failed", nil, func(l *lab) {
			l.add("1.1.0", program)
			other := slices.Clone(program)
			other[len(other)-1] ^= 1
			serve(l, targetFile, other)
		}},
		{"a flipped bit in metadata", "not enough signatures", map[string]int64{}, func(l *lab) {
			l.add("1.1.0", program)
			text := l.read("metadata/timestamp.json")
			serve(l, "/timestamp.json", bytes.Replace(text, []byte(`"length": `), []byte(`"length": 1`), 1))
		}},
		{"one key below the threshold", "got 1, want 2", nil, func(l *lab) {
			l.add("1.1.0", program)
			if _, _, err := l.fetch("", ""); err != nil {
				l.t.Fatal(err)
			}
			l.forgeRoot()
		}},
		{"revoked key after root rotation", "Verifying timestamp failed, not enough signatures, got 0, want 1", map[string]int64{"root": 2}, func(l *lab) {
			l.add("1.1.0", program)
			if _, _, err := l.fetch("", ""); err != nil {
				l.t.Fatal(err)
			}
			fresh := l.t.TempDir()
			l.must(os.CopyFS(fresh, os.DirFS(l.keys)))
			l.must(os.Remove(filepath.Join(fresh, "timestamp.pem")))
			l.key(fresh, "timestamp")
			l.repo.Keys = fresh
			l.must(l.repo.Rotate(l.keys))
			l.repo.Keys = l.keys // the thief of the old key continues
			l.must(l.repo.Refresh())
		}},
		{"a channel's key for the other channel", "Verifying stable-linux-amd64 failed", nil, func(l *lab) {
			l.add("1.1.0", program)
			l.change("stable-linux-amd64", "edge", func(*metadata.TargetsType) {})
		}},
		{"target of another platform", `the role stable-linux-amd64 may not have the target "stable/linux-arm64/1.1.0/brine-minion"`, nil, func(l *lab) {
			l.change("stable-linux-amd64", "stable", func(s *metadata.TargetsType) {
				s.Targets["stable/linux-arm64/1.1.0/brine-minion"] = &metadata.TargetFiles{Length: 1, Hashes: metadata.Hashes{"sha256": sum[:]}}
			})
		}},
		{"program of another platform", "the file is a program for EM_AARCH64, not for linux-amd64", nil, func(l *lab) {
			l.add("1.1.0", fakeProgram(elf.EM_AARCH64, "program"))
		}},
		{"a file that is no program", "the file is not a program for linux-amd64", nil, func(l *lab) {
			l.add("1.1.0", []byte("#!/bin/sh\n"))
		}},
		{"a target without SHA-256", `the target "stable/linux-amd64/1.1.0/brine-minion" has no length or no SHA-256`, nil, func(l *lab) {
			l.change("stable-linux-amd64", "stable", func(s *metadata.TargetsType) {
				s.Targets["stable/linux-amd64/1.1.0/brine-minion"] = &metadata.TargetFiles{Length: 1, Hashes: metadata.Hashes{"sha512": make([]byte, 64)}}
			})
		}},
		{"a path in a target's name", `the target "stable/linux-amd64/../../../../etc/cron.d/x/brine-minion" is not`, nil, func(l *lab) {
			l.change("stable-linux-amd64", "stable", func(s *metadata.TargetsType) {
				s.Targets["stable/linux-amd64/../../../../etc/cron.d/x/brine-minion"] = &metadata.TargetFiles{Length: 1, Hashes: metadata.Hashes{"sha256": sum[:]}}
			})
		}},
		{"a version that is a path", `the target "stable/linux-amd64/../brine-minion" is not`, nil, func(l *lab) {
			l.change("stable-linux-amd64", "stable", func(s *metadata.TargetsType) {
				s.Targets["stable/linux-amd64/../brine-minion"] = &metadata.TargetFiles{Length: 1, Hashes: metadata.Hashes{"sha256": sum[:]}}
			})
		}},
		{"a name with a link's custom data", `the target "stable/linux-amd64/1.1.0/link" is not`, nil, func(l *lab) {
			custom := json.RawMessage(`{"link":"/etc/shadow"}`)
			l.change("stable-linux-amd64", "stable", func(s *metadata.TargetsType) {
				s.Targets["stable/linux-amd64/1.1.0/link"] = &metadata.TargetFiles{Length: 1, Hashes: metadata.Hashes{"sha256": sum[:]}, Custom: &custom}
			})
		}},
		{"a repository that answers slowly for ever", "the repository did not answer within 300ms", nil, func(l *lab) {
			l.add("1.1.0", program)
			l.client.Download = 300 * time.Millisecond
			l.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, targetFile) {
					return false
				}
				for {
					if _, err := w.Write([]byte{0}); err != nil || r.Context().Err() != nil {
						return true
					}
					_ = http.NewResponseController(w).Flush()
					select {
					case <-r.Context().Done():
					case <-time.After(50 * time.Millisecond):
					}
				}
			}
		}},
		{"a repository that does not answer", "the repository did not answer within 300ms", map[string]int64{}, func(l *lab) {
			l.client.Download = 300 * time.Millisecond
			l.answer = func(_ http.ResponseWriter, r *http.Request) bool {
				<-r.Context().Done()
				return true
			}
		}},
		{"metadata that is not JSON", "invalid character", map[string]int64{}, func(l *lab) {
			serve(l, "/timestamp.json", []byte("<html>"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // the test mostly waits for fsync
			l := newLab(t)
			u := l.quietHost()
			c.run(l)
			u.Download = l.client.Download
			before, old := tree(t, u.Dir), l.files()
			had := versions(t, old)
			_, err := u.Run(t.Context(), Request{})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "cannot take an update from http://") {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			t.Log(err)
			after, files := tree(t, u.Dir), l.files()
			for _, name := range []string{stateFile, trustedFile} { // compared below
				delete(before, filepath.Join("state", name))
				delete(after, filepath.Join("state", name))
			}
			if d := cmp.Diff(before, after); d != "" {
				t.Errorf("the host has other files than before:\n%s", d)
			}
			s, stateErr := u.readState()
			l.must(stateErr)
			if d := cmp.Diff(&State{Slots: map[string]string{"a": "1.0.0", "b": "0.9.0"}, Checked: l.now.Unix(), Result: err.Error()}, s); d != "" {
				t.Errorf("state:\n%s", d)
			}
			if strings.Contains(files[trustedFile], "program") {
				t.Error("the program is on the disk")
			}
			verified(t, old, files)
			if had == nil {
				return // the first check
			}
			maps.Copy(had, c.keeps)
			if d := cmp.Diff(had, versions(t, files)); d != "" {
				t.Errorf("trusted metadata:\n%s", d)
			}
		})
	}
}

// endless responds to requests for a file without end.
func endless(name string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, name) {
			return false
		}
		for {
			if _, err := io.WriteString(w, strings.Repeat(" ", 4096)); err != nil {
				return true
			}
		}
	}
}

func TestCompareVersions(t *testing.T) {
	order := []string{"0.9.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.2.0", "1.10.0", "2.0.0"}
	for i, a := range order {
		for j, b := range order {
			if got, want := CompareVersions(a, b), compareInts(i, j); got != want {
				t.Errorf("%s %s: %d, want %d", a, b, got, want)
			}
		}
	}
}

func compareInts(a, b int) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// TestDamagedFiles: a damaged file of the host is an error with its name and line, and nothing changes.
func TestDamagedFiles(t *testing.T) {
	const pinned, state, seen = "the pinned keys", stateFile, trustedFile
	for _, c := range []struct{ file, text, want string }{
		{pinned, "{\n\"signed\": [\n", "cannot read the pinned keys: FILE:3: unexpected end of JSON input"},
		{pinned, "<html>", "cannot read the pinned keys: FILE:1: invalid character '<'"},
		{pinned, "{\n}\n", "the pinned keys FILE cannot be used: "},
		{pinned, strings.Repeat(" ", maxRoot+1), "FILE has more than 65536 bytes"},
		{state, "{\n\"slots\": 1}\n", "cannot read the state of updates: FILE:2: json: cannot unmarshal number"},
		{state, "{\"slots\": {},\n", "cannot read the state of updates: FILE:2: unexpected end of JSON input"},
		{state, `{"trial": {"slot": "/etc", "back": "a"}}`, "cannot read the state of updates: FILE: the record of the trial has no slot"},
		{seen, "{\n\n]", "cannot read what was verified before: FILE:3: invalid character ']'"},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel() // most of it waits for fsync
			l := newLab(t)
			u := l.quietHost()
			l.add("1.1.0", fakeProgram(elf.EM_X86_64, "program"))
			file := u.path(c.file)
			if c.file == pinned {
				file = u.Root
			}
			l.must(os.WriteFile(file, []byte(c.text), 0o600))
			before := tree(t, u.Dir)
			_, err := u.Run(t.Context(), Request{})
			if want := strings.ReplaceAll(c.want, "FILE", file); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			after := tree(t, u.Dir)
			if c.file != state { // it notes the check
				delete(before, "state/"+stateFile)
				delete(after, "state/"+stateFile)
			}
			if d := cmp.Diff(before, after); d != "" {
				t.Errorf("%s %q: the host has other files than before:\n%s", c.file, c.text, d)
			}
		})
	}
}
