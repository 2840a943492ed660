package gitfs

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/master/fileserver"
)

// Modes of git's trees.
const (
	modeFile    = "100644"
	modeProgram = "100755"
	modeLink    = "120000"
	modeDir     = "040000"
)

// maxEntries limits the files of one tree, maxLink a link's target, maxFollow how many links lead to a file.
const maxEntries, maxLink, maxFollow = 1 << 20, 4096, 100

// entry is one path of a tree.
type entry struct {
	path, mode, hash string
	size             int64
}

// tree is all paths of a commit, sorted.
type tree struct{ entries []entry }

// readTree lists a commit.
func (r *repo) readTree(ctx context.Context, commit string) (*tree, error) {
	out, err := r.runGit(ctx, "ls-tree", "-r", "-t", "-l", "-z", "--full-tree", commit)
	if err != nil {
		return nil, err
	}
	t := &tree{}
	for line := range strings.SplitSeq(string(out), "\x00") {
		about, path, ok := strings.Cut(line, "\t")
		f := strings.Fields(about)
		if !ok || len(f) != 4 {
			continue
		}
		if len(t.entries) == maxEntries {
			return nil, fmt.Errorf("commit %s has more than %d files", commit, maxEntries)
		}
		size, _ := strconv.ParseInt(f[3], 10, 64) // "-" for what is not a file
		t.entries = append(t.entries, entry{path, f[0], f[2], size})
	}
	slices.SortFunc(t.entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return t, nil
}

func (t *tree) get(path string) (entry, bool) {
	i, ok := slices.BinarySearchFunc(t.entries, path, func(e entry, p string) int { return strings.Compare(e.path, p) })
	if !ok {
		return entry{}, false
	}
	return t.entries[i], true
}

func (t *tree) isDir(path string) bool {
	e, ok := t.get(path)
	return ok && e.mode == modeDir
}

// findEntry finds a file, through links.
func (t *tree) findEntry(ctx context.Context, r *repo, path string) (entry, bool, error) {
	for range maxFollow {
		e, ok := t.get(path)
		if !ok {
			return entry{}, false, nil
		}
		switch e.mode {
		case modeFile, modeProgram:
			return e, true, nil
		case modeLink:
			to, err := r.readLink(ctx, e)
			if err != nil {
				return entry{}, false, err
			}
			if path, ok = followLink(path, to); !ok {
				return entry{}, false, nil
			}
		default:
			return entry{}, false, nil
		}
	}
	return entry{}, false, nil
}

// readLink returns the target of a link.
func (r *repo) readLink(ctx context.Context, e entry) (string, error) {
	if e.size > maxLink {
		return "", fmt.Errorf("the link %q has %d bytes", e.path, e.size)
	}
	h, err := r.openBlob(ctx, e)
	if err != nil {
		return "", err
	}
	defer h.Close()
	b := make([]byte, e.size)
	_, err = h.ReadAt(b, 0)
	if e.size == 0 {
		err = nil
	}
	return string(b), err
}

// blobLife is how long a file that was read out of a repository is kept after the last request when the repository
// changes.
const blobLife = 24 * time.Hour

// openBlob opens the content of a file. Contents are stored on disk under their hash, which no path in a repository
// can choose.
func (r *repo) openBlob(ctx context.Context, e entry) (fileserver.Handle, error) {
	name := filepath.Join(r.global.CacheDir, "blobs", e.hash[:2], e.hash)
	if f, err := os.Open(name); err == nil {
		now := time.Now()
		if info, err := f.Stat(); err == nil && info.Size() == e.size {
			if now.Sub(info.ModTime()) > blobLife/2 {
				_ = os.Chtimes(name, now, now) // it is in use
			}
			return f, nil
		}
		f.Close()
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".new-")
	if err != nil {
		return nil, err
	}
	if err = r.copyBlob(ctx, e, f); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, fmt.Errorf("cannot read %q: %w", e.path, err)
	}
	return f, nil
}

func (r *repo) copyBlob(ctx context.Context, e entry, f *os.File) error {
	cmd := exec.CommandContext(ctx, r.global.Program, "--git-dir", r.dir, "cat-file", "blob", e.hash)
	cmd.Stdout, cmd.WaitDelay = f, 5*time.Second
	if err := cmd.Run(); err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Size() != e.size {
		err = fmt.Errorf("it has %d bytes in place of %d", info.Size(), e.size)
	}
	return err
}

// dropBlobs deletes files that were not requested lately.
func (r *repo) dropBlobs() {
	_ = filepath.WalkDir(filepath.Join(r.global.CacheDir, "blobs"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil && time.Since(info.ModTime()) > blobLife {
			_ = os.Remove(name)
		}
		return nil
	})
}

// fileInfo describes an entry.
type fileInfo struct {
	e    entry
	name string
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.e.size }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return false }
func (i fileInfo) Sys() any           { return nil }
func (i fileInfo) Mode() fs.FileMode {
	if i.e.mode == modeProgram {
		return 0o755
	}
	return 0o644
}
