package state

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// maxFile bounds files that are read whole, in bytes.
const maxFile = 64 << 20

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = errors.New("the file is too large")
	}
	return b, err
}

func requestFile(c *modules.Call) string {
	return c.Path(filepath.Join(cacheDir(c), "req_state.p"))
}

// requests returns the pending requests by name.
func requests(c *modules.Call) map[string]any {
	v, err := states.Load(requestFile(c))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Logger().Error("Cannot read the state requests", "err", err)
	}
	m, _ := v.(map[string]any)
	if m == nil {
		m = map[string]any{}
	}
	return m
}

func saveRequests(c *modules.Call, req map[string]any) {
	if err := states.Save(requestFile(c), req); err != nil {
		c.Logger().Error("Unable to write state request file "+requestFile(c)+". Check permission.", "err", err)
	}
}

func request(ctx context.Context, c *modules.Call) (any, error) {
	kwargs := keywords(c, map[string]any{"test": true})
	ret, err := applyMods(ctx, c, c.Value("mods"), kwargs)
	if err != nil {
		return nil, err
	}
	name := "default"
	if v, ok := kwargs["name"]; ok {
		name = pytext.Str(v)
	}
	req := requests(c)
	req[name] = map[string]any{"test_run": ret, "mods": c.Value("mods"), "kwargs": kwargs}
	saveRequests(c, req)
	return ret, nil
}

func checkRequest(_ context.Context, c *modules.Call) (any, error) {
	req := requests(c)
	name := c.Value("name")
	if !pytext.Truth(name) || len(req) == 0 {
		return req, nil
	}
	v, ok := req[pytext.Str(name)]
	if !ok {
		return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(name)}
	}
	return v, nil
}

func clearRequest(_ context.Context, c *modules.Call) (any, error) {
	if _, err := os.Stat(requestFile(c)); err != nil {
		return true, nil
	}
	name := c.Value("name")
	if !pytext.Truth(name) {
		if err := os.Remove(requestFile(c)); err != nil {
			c.Logger().Warn("Cannot remove the state requests", "err", err)
		}
		return true, nil
	}
	req := requests(c)
	if _, ok := req[pytext.Str(name)]; !ok {
		return false, nil
	}
	delete(req, pytext.Str(name))
	saveRequests(c, req)
	return true, nil
}

func runRequest(ctx context.Context, c *modules.Call) (any, error) {
	none := map[string]any{}
	one, ok := requests(c)[c.Str("name")].(map[string]any)
	if !ok {
		return none, nil
	}
	kwargs, ok := one["kwargs"].(map[string]any)
	mods, has := one["mods"]
	if !ok || !has {
		return none, nil
	}
	for k := range kwargs {
		if strings.HasPrefix(k, "__pub_") {
			delete(kwargs, k) // those of the job that asked
		}
	}
	for k, v := range c.Keywords {
		kwargs[k] = v
	}
	delete(kwargs, "test")
	ret, err := applyMods(ctx, c, mods, kwargs)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(requestFile(c)); err != nil {
		c.Logger().Warn("Cannot remove the state requests", "err", err)
	}
	return ret, nil
}

func clearCache(_ context.Context, c *modules.Call) (any, error) {
	dir := c.Path(cacheDir(c))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, modules.OSError(err)
	}
	list := []any{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".cache.p") || !e.Type().IsRegular() {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return nil, modules.OSError(err)
		}
		list = append(list, e.Name())
	}
	return list, nil
}
