package fileserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Limits of a listing. A tree beyond them is a mistake (a link to /), not a state tree.
const (
	maxEntries = 1 << 20
	maxDepth   = 128
)

// A tree is a directory tree below one point, with slash-separated names relative to it.
type tree interface {
	readDir(name string) ([]fs.DirEntry, error)
	statFile(name string) (fs.FileInfo, error) // follows links
	readLink(name string) (string, error)
	open(name string) (Handle, error)
	pathOf(name string) string       // for people
	inside(link, target string) bool // whether a link leads to something in the tree
	// whether a link that stat does not follow leads to a directory
	dirOutside(link string) bool
	followsLinks() bool // whether to walk into links to directories
	close() error
}

// confinedTree never leaves its directory, whatever links say: os.Root resolves every part beneath it.
type confinedTree struct {
	root *os.Root
	dir  string
}

func openConfined(dir string) (tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &confinedTree{root, dir}, nil
}

func (t *confinedTree) readDir(name string) ([]fs.DirEntry, error) {
	f, err := t.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

func (t *confinedTree) statFile(name string) (fs.FileInfo, error) { return t.root.Stat(name) }
func (t *confinedTree) readLink(name string) (string, error)      { return t.root.Readlink(name) }
func (t *confinedTree) pathOf(name string) string {
	return filepath.Join(t.dir, filepath.FromSlash(name))
}

// Salt lists every link if it follows none
func (t *confinedTree) inside(string, string) bool { return true }
func (t *confinedTree) followsLinks() bool         { return false }

// dirOutside looks at the link's target, which is neither opened nor served. Stock lists such a link as a
// directory. Its minions make a link of what is listed as a directory, but a file of what is not.
func (t *confinedTree) dirOutside(link string) bool {
	info, err := os.Stat(t.pathOf(link))
	return err == nil && info.IsDir()
}
func (t *confinedTree) close() error { return t.root.Close() }
func (t *confinedTree) open(name string) (Handle, error) {
	return openRegular(t.root.OpenFile(name, os.O_RDONLY|nonblock, 0))
}

// followingTree follows links wherever they lead, as Salt does by default: the users who can write to file_roots
// decide what is served. Names of minions were checked for "..", so only links lead out.
type followingTree struct{ dir string }

func openFollowing(dir string) (tree, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%q is not a directory", dir)
	}
	return &followingTree{dir}, nil
}

func (t *followingTree) pathOf(name string) string {
	return filepath.Join(t.dir, filepath.FromSlash(name))
}
func (t *followingTree) readDir(name string) ([]fs.DirEntry,
	error) {
	return os.ReadDir(t.pathOf(name))
}
func (t *followingTree) statFile(name string) (fs.FileInfo,
	error) {
	return os.Stat(t.pathOf(name))
}
func (t *followingTree) readLink(name string) (string,
	error) {
	return os.Readlink(t.pathOf(name))
}
func (t *followingTree) dirOutside(string) bool { return false }
func (t *followingTree) followsLinks() bool     { return true }
func (t *followingTree) close() error           { return nil }
func (t *followingTree) open(name string) (Handle, error) {
	return openRegular(os.OpenFile(t.pathOf(name), os.O_RDONLY|nonblock, 0))
}

func (t *followingTree) inside(link, target string) bool {
	switch {
	// Salt then takes the link for a directory, so that one more step stays inside
	case strings.HasPrefix(target, ".."):
		target = filepath.Join(t.pathOf(link), target)
	case !filepath.IsAbs(target):
		target = filepath.Join(filepath.Dir(t.pathOf(link)), target)
	}
	root, err := filepath.EvalSymlinks(t.dir)
	if err != nil {
		return false
	}
	if real, err := filepath.EvalSymlinks(target); err == nil {
		target = real
	}
	rel, err := filepath.Rel(root, target)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// openRegular refuses what is not a regular file, without waiting for the other end of a pipe.
func openRegular(f *os.File, err error) (Handle, error) {
	if err != nil {
		return nil, err
	}
	if err := checkRegular(f); err != nil {
		return nil, err
	}
	return f, nil
}

// checkRegular closes what is not a regular file and returns the error.
func checkRegular(f fs.File) error {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotFound
	}
	if err != nil {
		f.Close()
	}
	return err
}

// fsTree is any fs.FS.
type fsTree struct {
	fsys fs.FS
	name string
}

func (t *fsTree) readDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(t.fsys, name) }
func (t *fsTree) statFile(name string) (fs.FileInfo, error)  { return fs.Stat(t.fsys, name) }
func (t *fsTree) readLink(name string) (string, error)       { return fs.ReadLink(t.fsys, name) }
func (t *fsTree) pathOf(name string) string                  { return path.Join(t.name, name) }
func (t *fsTree) inside(string, string) bool                 { return true }
func (t *fsTree) dirOutside(string) bool                     { return false }
func (t *fsTree) followsLinks() bool                         { return false }
func (t *fsTree) close() error                               { return nil }
func (t *fsTree) open(name string) (Handle, error) {
	f, err := t.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	if err := checkRegular(f); err != nil {
		return nil, err
	}
	if h, ok := f.(Handle); ok {
		return h, nil
	}
	return &readerHandle{f}, nil
}

// readerHandle reads at an offset from files that can only be read forwards.
type readerHandle struct{ fs.File }

func (h *readerHandle) ReadAt(b []byte, offset int64) (int, error) {
	if s, ok := h.File.(io.Seeker); ok {
		if _, err := s.Seek(offset, io.SeekStart); err != nil {
			return 0, err
		}
	} else if n, err := io.CopyN(io.Discard, h.File, offset); err != nil {
		return 0, fmt.Errorf("file ends at %d: %w", n, err)
	}
	n, err := io.ReadFull(h.File, b)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// A walker lists a tree as salt/fileserver/roots.py does.
type walker struct {
	ctx       context.Context
	tree      tree
	skipLinks bool // fileserver_ignoresymlinks
	out       *Listing
	entries   int
}

// walkDir lists one directory. above are the directories that lead to it, to detect a link into one of them.
func (w *walker) walkDir(dir string, above []fs.FileInfo) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	entries, err := w.tree.readDir(dir)
	if err != nil {
		if dir == "." && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil // unreadable or gone: Salt leaves it out too
	}
	for _, e := range entries {
		if w.entries++; w.entries > maxEntries {
			return fmt.Errorf("more than %d entries below %q", maxEntries, w.tree.pathOf("."))
		}
		name := path.Join(dir, e.Name())
		link := e.Type()&fs.ModeSymlink != 0
		isDir := e.IsDir()
		var info fs.FileInfo
		if link && w.skipLinks {
			// Where it follows links, Salt leaves out the link and lists what is behind it.
			if info, err = w.tree.statFile(name); err == nil && info.IsDir() &&
				w.tree.followsLinks() {
				if err := w.enterDir(name, true, info, above, false); err != nil {
					return err
				}
			}
			continue
		}
		if link {
			if info, err = w.tree.statFile(name); err == nil {
				isDir = info.IsDir()
			} else {
				isDir = w.tree.dirOutside(name)
			}
			if dest, err := w.tree.readLink(name); err == nil && w.tree.inside(name, dest) {
				w.out.Links[name] = dest
			}
		}
		if !isDir {
			w.out.Files = append(w.out.Files, name)
			continue
		}
		w.out.Dirs = append(w.out.Dirs, name)
		if err := w.enterDir(name, link, info, above, true); err != nil {
			return err
		}
	}
	return nil
}

// enterDir continues in a directory, which is listed if it is empty.
func (w *walker) enterDir(name string, link bool, info fs.FileInfo, above []fs.FileInfo,
	listed bool) error {
	if sub, err := w.tree.readDir(name); listed && err == nil && len(sub) == 0 {
		w.out.EmptyDirs = append(w.out.EmptyDirs, name)
		return nil
	}
	if link && !w.tree.followsLinks() || len(above) >= maxDepth {
		return nil
	}
	if w.tree.followsLinks() {
		if info == nil {
			var err error
			if info, err = w.tree.statFile(name); err != nil {
				return nil
			}
		}
		for _, a := range above {
			if a != nil && os.SameFile(a, info) {
				return nil
			}
		}
	}
	return w.walkDir(name, append(above, info))
}

// listTree lists a tree into out.
func listTree(ctx context.Context, t tree, skipLinks bool, out *Listing) error {
	if out.Links == nil {
		out.Links = make(map[string]string)
	}
	w := walker{ctx: ctx, tree: t, skipLinks: skipLinks, out: out}
	top, err := t.statFile(".")
	if err != nil {
		return nil
	}
	return w.walkDir(".", []fs.FileInfo{top})
}

// findRegular describes a regular file of a tree.
func findRegular(t tree, name string) (Found, error) {
	info, err := t.statFile(name)
	if err != nil || !info.Mode().IsRegular() {
		// Missing, unreadable, or a link that leads out: the minion sees no difference.
		return Found{}, ErrNotFound
	}
	return Found{Path: t.pathOf(name), Rel: name, Info: info}, nil
}
