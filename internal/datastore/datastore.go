// Package datastore is the minion's small key-value store: one map in the file "datastore" of the cache directory, in
// the format of Salt's execution module data. The whole file is read and written each time.
package datastore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/protocol/payload"
)

// maxFile limits the size of the file, in bytes.
const maxFile = 64 << 20

// mu serialises changes, because jobs run in one process.
var mu sync.Mutex

// Path returns the store's file below a cache directory.
func Path(cacheDir string) string { return filepath.Join(cacheDir, "datastore") }

// Load reads the store. A missing or unreadable file counts as empty, as in Salt. Content that is not a map is an
// error.
func Load(path string) (map[string]any, error) {
	info, err := os.Stat(path)
	if err != nil {
		return map[string]any{}, nil
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("cannot read datastore %q: more than %d bytes", path, maxFile)
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return map[string]any{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read datastore: %w", err)
	}
	v, err := payload.UnmarshalDisk(b, payload.Limits{})
	if err != nil {
		return nil, fmt.Errorf("cannot read datastore %q: %w", path, err)
	}
	switch m := v.(type) {
	case map[string]any:
		return m, nil
	case map[any]any: // a key is not text
		text := make(map[string]any, len(m))
		for k, x := range m {
			text[pytext.Str(k)] = x
		}
		return text, nil
	}
	return nil, fmt.Errorf("cannot read datastore %q: it holds no map", path)
}

// Save replaces the store.
func Save(path string, store map[string]any) error {
	b, err := payload.MarshalBin(store)
	if err != nil {
		return fmt.Errorf("cannot write datastore: %w", err)
	}
	return atomicfile.WriteFile(path, b, 0o600)
}

// Change reads the store, calls change, and writes the store if change returns true.
func Change(path string, change func(store map[string]any) bool) error {
	mu.Lock()
	defer mu.Unlock()
	store, err := Load(path)
	if err != nil || !change(store) {
		return err
	}
	return Save(path, store)
}
