package keys

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/protocol"
)

// disk stores keys as files, in Salt's layout.
type disk struct {
	dir *confined.Dir

	mu      sync.Mutex // guards the fields below
	lists   map[string]listing
	folders map[string]openFolder
}

// openFolder is a folder that is kept open, since every request of a minion looks into two.
type openFolder struct {
	dir     *confined.Dir
	checked time.Time // when it was the one with this name
}

// folderTrust is how long an open folder is assumed to be the one with its name. Only a restored backup replaces a
// folder.
const folderTrust = time.Second

// listing is a folder's content, valid as long as the folder's time does not change. File systems count time in
// ticks of some milliseconds, so a listing taken right after a change could miss another one in the same tick: it
// is not kept.
type listing struct {
	mtime time.Time
	ids   []string
}

const mtimeTick = 100 * time.Millisecond

func openDisk(path string) (*disk, error) {
	dir, err := confined.Open(path, 0o700)
	if err != nil {
		return nil, err
	}
	for _, folder := range keyFolders() {
		if err := dir.Mkdir(folder, 0o700); err != nil {
			dir.Close()
			return nil, err
		}
	}
	return &disk{dir: dir, lists: make(map[string]listing), folders: make(map[string]openFolder)}, nil
}

// keyFolders returns the folders of the pki directory.
func keyFolders() []string {
	folders := []string{autosignFolder}
	for _, st := range States() {
		folders = append(folders, st.Folder())
	}
	return folders
}

// removeUnfinished removes the keys, also the master's own, that a crash of the host left half written.
func (d *disk) removeUnfinished() error {
	var errs []error
	for _, folder := range append(keyFolders(), ".") {
		errs = append(errs, d.dir.RemoveUnfinished(folder))
	}
	return errors.Join(errs...)
}

func (d *disk) close() error {
	d.mu.Lock()
	for _, f := range d.folders {
		f.dir.Close()
	}
	clear(d.folders)
	d.mu.Unlock()
	return d.dir.Close()
}

// folderOf opens a folder, or returns the open one.
func (d *disk) folderOf(name string) (*confined.Dir, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, ok := d.folders[name]
	now := time.Now()
	if ok && now.Sub(f.checked) < folderTrust {
		return f.dir, nil
	}
	dir, err := d.dir.Sub(name)
	if err != nil {
		return nil, err
	}
	if ok && f.dir.Same(dir) {
		dir.Close()
		dir = f.dir
	}
	// A replaced folder may be in use; it is closed when no caller has it any more.
	d.folders[name] = openFolder{dir, now}
	return dir, nil
}

func (d *disk) read(folder, id string) ([]byte, stamp, error) {
	b, info, err := d.dir.Read(folder+"/"+id, maxKeyBytes)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, confined.ErrNotRegular) {
		return nil, stamp{}, ErrNotFound
	}
	if err != nil {
		return nil, stamp{}, err
	}
	return b, stampOf(info), nil
}

func (d *disk) stat(folder, id string) (stamp, error) {
	dir, err := d.folderOf(folder)
	var info fs.FileInfo
	if err == nil {
		info, err = dir.Stat(id)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return stamp{}, ErrNotFound
	}
	if err != nil {
		return stamp{}, err
	}
	if !info.Mode().IsRegular() {
		return stamp{}, ErrNotFound // Salt 3008 ignores links in key folders too
	}
	return stampOf(info), nil
}

func stampOf(info fs.FileInfo) stamp {
	return stamp{info.ModTime(), info.Size(), confined.Inode(info)}
}

func (d *disk) write(folder, id string, text []byte) error {
	return d.dir.Write(folder+"/"+id, text, 0o644, true)
}

func (d *disk) remove(folder, id string) error { return d.dir.Remove(folder + "/" + id) }

func (d *disk) list(folder string) ([]string, error) {
	info, err := os.Stat(d.dir.Path() + "/" + folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	known, ok := d.lists[folder]
	d.mu.Unlock()
	if ok && known.mtime.Equal(info.ModTime()) {
		return slices.Clone(known.ids), nil
	}
	entries, err := d.dir.List(folder)
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.Type().IsRegular() && protocol.ValidID(e.Name()) == nil {
			ids = append(ids, e.Name())
		}
	}
	slices.Sort(ids)
	if time.Since(info.ModTime()) > mtimeTick {
		d.mu.Lock()
		d.lists[folder] = listing{info.ModTime(), ids}
		d.mu.Unlock()
	}
	return slices.Clone(ids), nil
}

func (d *disk) count(folder string) (int, error) {
	ids, err := d.list(folder)
	return len(ids), err
}

// memory stores keys for masters without a directory.
type memory struct {
	mu   sync.Mutex // guards keys and next
	keys map[string]memoryKey
	next uint64
}

type memoryKey struct {
	text  []byte
	stamp stamp
}

func newMemory() *memory {
	return &memory{keys: make(map[string]memoryKey)}
}

func (m *memory) close() error { return nil }

func (m *memory) read(folder, id string) ([]byte, stamp, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.keys[folder+"/"+id]
	if !ok {
		return nil, stamp{}, ErrNotFound
	}
	return slices.Clone(k.text), k.stamp, nil
}

func (m *memory) stat(folder, id string) (stamp, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.keys[folder+"/"+id]
	if !ok {
		return stamp{}, ErrNotFound
	}
	return k.stamp, nil
}

func (m *memory) write(folder, id string, text []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next++
	m.keys[folder+"/"+id] = memoryKey{slices.Clone(text), stamp{time.Now(), int64(len(text)), m.next}}
	return nil
}

func (m *memory) remove(folder, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.keys, folder+"/"+id)
	return nil
}

func (m *memory) list(folder string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []string
	for k := range m.keys {
		if id, ok := strings.CutPrefix(k, folder+"/"); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

func (m *memory) count(folder string) (int, error) {
	ids, err := m.list(folder)
	return len(ids), err
}
