package data

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/master/runner/host"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/payload"
)

// bank is the directory of a bank (salt/cache/localfs.py), which must not lead out of the cache.
func (f funcs) bank(c *modules.Call) (string, error) {
	dir := host.Text(c, "cachedir")
	if dir == "" {
		dir = f.CacheDir
	}
	if dir == "" {
		return "", host.Needs("cache directory")
	}
	bank := filepath.FromSlash(c.Str("bank"))
	if bank == "" || !filepath.IsLocal(bank) {
		return "", modules.Errorf("cannot use the bank %q: it is not below the cache directory",
			c.Str("bank"))
	}
	return filepath.Join(dir, bank), nil
}

// bankKey is the file of a key.
func (f funcs) bankKey(c *modules.Call) (string, error) {
	dir, err := f.bank(c)
	if err != nil {
		return "", err
	}
	key := c.Str("key")
	if key == "" || key != filepath.Base(key) || !filepath.IsLocal(key) ||
		strings.ContainsRune(key, 0) {
		return "", modules.Errorf("cannot use the key %q: it is no name", key)
	}
	return filepath.Join(dir, key+".p"), nil
}

// bankStore is cache.store, which writes one value of a bank in the format of salt/cache/localfs.py, msgpack. The
// directories are for the master's user alone, since pillar data may be in them.
func (f funcs) bankStore(_ context.Context, c *modules.Call) (any, error) {
	file, err := f.bankKey(c)
	if err != nil {
		return nil, err
	}
	b, err := payload.Marshal(c.Value("data"))
	if err != nil {
		return nil, modules.Errorf("cannot store %s: %s", c.Str("key"), err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, modules.OSError(err)
	}
	if err := atomicfile.WriteFile(file, b, 0o600); err != nil {
		return nil, modules.OSError(err)
	}
	return nil, nil
}

// bankList is cache.list, which returns the keys of a bank, an empty list for a bank that does not exist.
func (f funcs) bankList(_ context.Context, c *modules.Call) (any, error) {
	dir, err := f.bank(c)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return []any{}, nil
	}
	if err != nil {
		return nil, modules.OSError(err)
	}
	out := []any{}
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".p"))
	}
	return out, nil
}

// maxBank bounds one value of a bank.
const maxBank = 64 << 20

// bankFetch is cache.fetch, which returns one value of a bank, and as in Salt an empty dictionary if it is missing.
func (f funcs) bankFetch(_ context.Context, c *modules.Call) (any, error) {
	file, err := f.bankKey(c)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]any{}, nil
	}
	if err == nil && info.Size() > maxBank {
		return nil, modules.Errorf("cannot fetch %s: it has more than %d bytes", c.Str("key"),
			maxBank)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, modules.OSError(err)
	}
	v, err := payload.UnmarshalDisk(b, payload.Limits{Bytes: maxBank})
	if err != nil {
		return nil, modules.Errorf("cannot fetch %s: %s", c.Str("key"), err)
	}
	return v, nil
}

// bankFlush is cache.flush, which deletes one key, or without a key the whole bank. It reports whether there was
// anything to delete.
func (f funcs) bankFlush(_ context.Context, c *modules.Call) (any, error) {
	if c.Value("key") == nil {
		dir, err := f.bank(c)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(dir); err != nil {
			return false, nil
		}
		if err := os.RemoveAll(dir); err != nil {
			return nil, modules.OSError(err)
		}
		return true, nil
	}
	file, err := f.bankKey(c)
	if err != nil {
		return nil, err
	}
	err = os.Remove(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return nil, modules.OSError(err)
	}
	return true, nil
}
