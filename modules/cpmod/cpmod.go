// Package cpmod is Salt's execution module "cp": copying files from the master, from web servers and to the master. Salt's
// sources: salt/modules/cp.py, salt/fileclient.py.
//
// Bringing files is the file client's work (modules.Files); this package decides what is brought where and what Salt would
// answer. Content is written to its destination only after the file client has it whole and has verified it.
package cpmod

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pathpick"
	"github.com/brine-salt/brine/modules"
)

// files is the file client and the environment of a call.
type files struct {
	modules.Files
	c   *modules.Call
	env string
}

// client returns the file client. Its environment is the caller's, or otherwise the configuration's.
func client(c *modules.Call) (*files, error) {
	if c.Files == nil {
		return nil, modules.Errorf("cannot run %s: this program has no file server to ask", c.Fun)
	}
	f := &files{Files: c.Files, c: c, env: c.Str("saltenv")}
	if f.env == "" {
		f.env, _ = c.Opt("saltenv").(string)
	}
	if f.env == "" {
		f.env = "base"
	}
	return f, nil
}

// named takes the environment off a salt:// address and goes on in it.
func (f *files) named(url string) string {
	path, env := splitEnv(url)
	if env != "" {
		f.env = env
	}
	return path
}

// missing is stock's result for a missing file.
const missing = false

func cacheFile(ctx context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	return f.cacheOnce(ctx, c.Str("path"), c.Str("source_hash"), modules.WebFile{AnyCertificate: !c.Bool("verify_ssl"), ETag: c.Bool("use_etag")})
}

// cacheOnce is like cache, but fetches a web address only once per job: the master knows the hashes of its own files
// only.
func (f *files) cacheOnce(ctx context.Context, path, sourceHash string, web modules.WebFile) (any, error) {
	key := "cp.cache_file_|-" + path + "_|-" + f.env
	remote := isRemote(path)
	if have, ok := f.c.Context().Get(key); ok && remote {
		if name, _ := have.(string); isFile(name) {
			return name, nil
		}
	}
	v, err := f.cache(ctx, path, sourceHash, web)
	if err != nil {
		return nil, err
	}
	if v == any(missing) || v == "" {
		f.c.Logger().Error("Cannot cache file", "file", redact(path), "saltenv", f.env)
	}
	if remote {
		f.c.Context().Set(key, v)
	}
	return v, nil
}

// cache brings a file into the cache: its path, or false for a file that the master does not have.
func (f *files) cache(ctx context.Context, path, sourceHash string, web modules.WebFile) (any, error) {
	a := parse(path)
	switch {
	case a.local():
		return a.localPath()
	case a.scheme == "salt" && !strings.HasPrefix(path, "salt://"):
		return nil, unsupported(path)
	case a.scheme == "salt":
		name, err := f.Cache(ctx, path, f.env)
		if err != nil {
			return nil, err
		}
		return orFalse(name), nil
	}
	if name := f.CachePath(path, f.env); sourceHash != "" && hashMatches(name, sourceHash) {
		return name, nil
	}
	return f.CacheWeb(ctx, path, f.env, web)
}

func orFalse(name string) any {
	if name == "" {
		return missing
	}
	return name
}

func cacheFiles(ctx context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	var paths []string
	if text, ok := c.Value("paths").(string); ok {
		paths = strings.Split(text, ",")
	} else {
		paths = c.Strings("paths")
	}
	return f.cacheAll(ctx, paths)
}

func (f *files) cacheAll(ctx context.Context, paths []string) (any, error) {
	list := []any{}
	for _, p := range paths {
		v, err := f.cache(ctx, p, "", modules.WebFile{})
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func cacheMaster(ctx context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	names, err := f.List(ctx, f.env, "")
	if err != nil {
		return nil, err
	}
	for i := range names {
		names[i] = address(names[i])
	}
	return f.cacheAll(ctx, names)
}

func cacheDir(ctx context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	dir, err := saltPath(c.Str("path"))
	if err != nil {
		return nil, err
	}
	dir = strings.TrimSuffix(dir, "/") + "/"
	names, err := f.List(ctx, f.env, "")
	if err != nil {
		return nil, err
	}
	list := []any{}
	for _, name := range names {
		if !strings.HasPrefix(name, dir) || strings.TrimSpace(name) == "" {
			continue
		}
		if ok, err := pathpick.Wanted(name, c.Value("include_pat"), c.Value("exclude_pat")); err != nil {
			return nil, modules.Errorf("%v", err)
		} else if !ok {
			continue
		}
		v, err := f.cache(ctx, address(name), "", modules.WebFile{})
		if err != nil {
			return nil, err
		}
		if v != any(missing) {
			list = append(list, v)
		}
	}
	if c.Bool("include_empty") {
		return f.emptyDirs(ctx, dir, filepath.Join(f.CacheRoot(), "files", f.env), "", list)
	}
	return list, nil
}

// emptyDirs makes the file server's empty directories below dir in the directory dest, without the prefix of their names.
func (f *files) emptyDirs(ctx context.Context, dir, dest, prefix string, list []any) (any, error) {
	names, err := f.EmptyDirs(ctx, f.env, strings.TrimSuffix(dir, "/"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, dir) {
			continue
		}
		rel := strings.TrimLeft(name[len(prefix):], "/")
		if !filepath.IsLocal(filepath.FromSlash(rel)) {
			return nil, modules.Errorf("cannot make directory %q: not below the file roots", name)
		}
		full := dest + "/" + rel
		if err := makeDirs(full); err != nil {
			return nil, modules.OSError(err)
		}
		list = append(list, full)
	}
	return list, nil
}

func cacheDest(_ context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	url := c.Str("url")
	if parse(url).scheme == "" {
		return url, nil
	}
	if name := f.CachePath(url, f.env); name != "" {
		return name, nil
	}
	return "Invalid path", nil
}

func cacheLocalFile(ctx context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	path := c.Str("path")
	source := c.Path(path)
	if _, err := os.Stat(source); err != nil || path == "" {
		return "", nil
	}
	if have := f.cached(path); have != "" {
		a, err1 := f.Hash(ctx, source, f.env)
		b, err2 := f.Hash(ctx, have, f.env)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		if a != nil && b != nil && a["hsum"] == b["hsum"] {
			return have, nil
		}
	}
	root := filepath.Join(f.CacheRoot(), "localfiles")
	dest := root + "/" + strings.TrimLeft(path, "/")
	if rel, err := filepath.Rel(root, dest); err != nil || !filepath.IsLocal(rel) {
		return nil, modules.Errorf("cannot cache %q: the path leads out of the cache", path)
	}
	if err := makeDirs(filepath.Dir(dest)); err != nil {
		return nil, modules.OSError(err)
	}
	if err := copyFile(source, dest); err != nil {
		return nil, modules.OSError(err)
	}
	return dest, nil
}

func isCached(_ context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	path := f.named(c.Str("path"))
	return f.cached(path), nil
}

// cached returns the path of a cached file, or "" if the file is not cached.
func (f *files) cached(url string) string {
	path := url
	if a, ok := strings.CutPrefix(url, "salt://"); ok {
		path = a
	}
	escape := ""
	if strings.HasPrefix(path, "|") {
		escape = "|"
	}
	name := strings.TrimLeft(path, "|/")
	for _, full := range [...]string{
		f.CacheRoot() + "/files/" + f.env + "/" + name, f.CacheRoot() + "/localfiles/" + name,
	} {
		if _, err := os.Stat(full); err == nil && strings.IndexByte(full, 0) < 0 {
			return escape + full
		}
	}
	if a := parse(url); a.scheme != "" && a.scheme != "salt" {
		if full := f.CachePath(url, f.env); full != "" {
			if _, err := os.Stat(full); err == nil {
				return full
			}
		}
	}
	return ""
}

func hashFile(ctx context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	path := f.named(c.Str("path"))
	onMaster := strings.HasPrefix(path, "salt://")
	if !onMaster {
		path = c.Path(path)
	}
	sum, err := f.Hash(ctx, path, f.env)
	if err != nil {
		return nil, err
	}
	switch {
	case sum != nil:
		return sum, nil
	case onMaster:
		return "", nil
	}
	return []any{map[string]any{}, nil}, nil
}

func statFile(ctx context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	path := f.named(c.Str("path"))
	if !strings.HasPrefix(path, "salt://") {
		path = c.Path(path)
	}
	_, stat, err := f.HashAndStat(ctx, path, f.env)
	if err != nil || len(stat) == 0 {
		return nil, err
	}
	mode, ok := stat[0].(int64)
	if !ok || c.Value("octal") != any(true) {
		return stat[0], nil
	}
	return lastOctal(mode), nil
}

func envs(ctx context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	return modules.AnswerList(f.Envs(ctx))
}

func listMaster(ctx context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	return modules.AnswerList(f.List(ctx, f.env, c.Str("prefix")))
}

func listMasterDirs(ctx context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	return modules.AnswerList(f.Dirs(ctx, f.env, c.Str("prefix")))
}

func listMasterSymlinks(ctx context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	links, err := f.Symlinks(ctx, f.env, c.Str("prefix"))
	if err != nil {
		return nil, err
	}
	m := make(map[string]any, len(links))
	for k, v := range links {
		m[k] = v
	}
	return m, nil
}

func listStates(ctx context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	names, err := f.List(ctx, f.env, "")
	if err != nil {
		return nil, err
	}
	states := map[string]bool{}
	for _, n := range names {
		if base, ok := strings.CutSuffix(n, ".sls"); ok {
			if dir, ok := strings.CutSuffix(base, "/init"); ok {
				base = dir
			}
			states[strings.ReplaceAll(base, "/", ".")] = true
		}
	}
	return modules.AnswerList(sorted(states), nil)
}

func listMinion(_ context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, dir := range [...]string{filepath.Join(f.CacheRoot(), "files", f.env), filepath.Join(f.CacheRoot(), "localfiles")} {
		if err := walkFiles(dir, func(name string) { found[name] = true }); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, modules.OSError(err)
		}
	}
	return modules.AnswerList(sorted(found), nil)
}
