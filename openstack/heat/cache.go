package heat

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/python/pyjson"
)

// cache is the directory of collected metadata, in os-collect-config's format: <name>.json is the newest,
// <name>.json.orig the first, <name>.json.last the last one that was applied, and os_config_files.json the list of
// files.
type cache struct{ dir string }

func (c cache) path(name string) string { return filepath.Join(c.dir, name+".json") }

// writePrivate replaces a file that only its owner may read, and creates its directory.
func writePrivate(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.WriteFile(path, b, 0o600)
}

// store writes a document, and reports whether it differs from the one applied last.
func (c cache) store(d Document) (changed bool, err error) {
	text := pretty(d.Content)
	path := c.path(d.Name)
	old, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(old, text) { // write only changes
		if err := writePrivate(path, text); err != nil {
			return false, err
		}
	}
	if _, err := os.Stat(path + ".orig"); os.IsNotExist(err) {
		return true, writePrivate(path+".orig", text)
	}
	last, err := os.ReadFile(path + ".last")
	return err != nil || !sameJSON(last, text), nil
}

// sameJSON reports whether two texts contain the same JSON value.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	v, err := pyjson.Parse(a)
	w, err2 := pyjson.Parse(b)
	return err == nil && err2 == nil && bytes.Equal(pretty(v), pretty(w))
}

// commit records that a document was applied.
func (c cache) commit(name string) error {
	b, err := os.ReadFile(c.path(name))
	if err != nil {
		return err
	}
	return writePrivate(c.path(name)+".last", b)
}

// list writes the list of files for os-apply-config.
func (c cache) list(docs []Document) error {
	paths := make([]string, len(docs))
	for i, d := range docs {
		paths[i] = c.path(d.Name)
	}
	b, err := json.Marshal(paths)
	if err != nil {
		return err
	}
	return writePrivate(c.path("os_config_files"), b)
}

// load reads a cached document.
func (c cache) load(name string) (any, error) {
	b, err := readLimited(c.path(name), maxFile)
	if err != nil {
		return nil, err
	}
	return pyjson.Parse(b)
}

func (c cache) has(name string) bool {
	_, err := os.Stat(c.path(name))
	return err == nil
}
