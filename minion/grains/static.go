package grains

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/payload"
)

// grainsFile returns the path of the static grains, or "" if it is unknown (salt/grains/extra.py: config).
func (o Options) grainsFile() string {
	if o.GrainsFile != "" {
		return o.GrainsFile
	}
	conf, ok := o.Opts["conf_file"].(string)
	if !ok || conf == "" {
		return ""
	}
	if i, err := os.Stat(conf); err == nil && i.IsDir() {
		return filepath.Join(conf, "grains")
	}
	return filepath.Join(filepath.Dir(conf), "grains")
}

// static reads the grains file and its drop-in directory. A file that is not a YAML map is logged and skipped.
func static(_ context.Context, h *host) (map[string]any, error) {
	file := h.o.grainsFile()
	if file == "" {
		return nil, nil
	}
	names := []string{file}
	dropIns, err := filepath.Glob(file + ".d/*.conf")
	if err == nil {
		sort.Strings(dropIns)
		names = append(names, dropIns...)
	}
	all := &pyobj.Dict{}
	var errs []error
	for _, name := range names {
		found, err := readGrains(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		deep := h.o.Opts["grains_deep_merge"] == any(true)
		for k, v := range found.All() {
			if deep {
				v = deepMerge(all.Value(k), v)
			}
			_ = all.Set(k, v) // cannot fail: k is a string
		}
	}
	grains := make(map[string]any, all.Len())
	for k, v := range all.All() {
		grains[k.(string)] = v
	}
	return grains, errors.Join(errs...)
}

func readGrains(name string) (*pyobj.Dict, error) {
	i, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !i.Mode().IsRegular() {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read grains file %q: %w", name, err)
	}
	if i.Size() > maxFile {
		return nil, fmt.Errorf("cannot read grains file %q: %d bytes are more than %d", name,
			i.Size(), maxFile)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read grains file %q: %w", name, err)
	}
	v, err := yaml.ParseObject(b, name, false)
	if err != nil {
		// The first part is Salt's message; the rest adds the reason.
		return nil, fmt.Errorf("Bad syntax in grains file! Skipping. %w", err) //nolint:staticcheck // Salt's words
	}
	switch m := v.(type) {
	case nil:
		return nil, nil
	case *pyobj.Dict:
		return textKeys(m), nil
	}
	return nil, fmt.Errorf("cannot use grains file %q: it holds a %s, not a map", name,
		pyobj.TypeName(v))
}

// textKeys returns the grains with a scalar name, as text. Salt keeps others too, but no query can name them.
func textKeys(d *pyobj.Dict) *pyobj.Dict {
	out := &pyobj.Dict{}
	for k, v := range d.All() {
		switch k := k.(type) {
		case string:
			_ = out.Set(k, v)
		case int64, float64, bool, nil:
			_ = out.Set(strings.TrimSpace(fmt.Sprint(k)), v)
		}
	}
	return out
}

// cacheFile returns the path of grains.cache.p in the cache directory.
func (o Options) cacheFile() (string, error) {
	dir, ok := o.Opts["cachedir"].(string)
	if !ok || dir == "" {
		return "", errors.New("option cachedir is not set")
	}
	return filepath.Join(dir, "grains.cache.p"), nil
}

// loadCache returns cached grains if they are younger than the option grains_cache_expiration (in seconds, 300
// by default).
func loadCache(o Options) (*pyobj.Dict, bool) {
	name, err := o.cacheFile()
	if err != nil || truth(o.Opts["refresh_grains_cache"]) {
		return nil, false
	}
	i, err := os.Stat(name)
	if err != nil || !i.Mode().IsRegular() || i.Size() > maxFile {
		return nil, false
	}
	limit := 300 * time.Second
	if n, ok := payload.Int(o.Opts["grains_cache_expiration"]); ok {
		limit = time.Duration(n) * time.Second
	}
	if age := time.Since(i.ModTime()).Truncate(time.Second); age > limit {
		return nil, false
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, false
	}
	v, err := payload.UnmarshalOrdered(b, payload.Limits{})
	if err != nil {
		return nil, false
	}
	d, ok := pyobj.From(v).(*pyobj.Dict)
	return d, ok && d.Len() > 0
}

// saveCache writes the cache in Salt's format, readable by the owner only.
func saveCache(o Options, grains *pyobj.Dict) error {
	name, err := o.cacheFile()
	if err != nil {
		return err
	}
	b, err := payload.MarshalBin(ordered.ToWire(grains))
	if err != nil {
		return fmt.Errorf("cannot encode the grains: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".grains.cache.*")
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	defer os.Remove(f.Name())
	if _, err = f.Write(b); err == nil {
		err = f.Close()
	} else {
		f.Close()
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	return nil
}
