//go:build unix

package file

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

var cachedDef = states.Def{Name: "cached", Params: []modules.Param{
	{Name: "name"}, {Name: "source_hash", Default: ""}, {Name: "source_hash_name", Optional: true},
	{Name: "skip_verify", Default: false}, {Name: "saltenv", Default: "base"}, {Name: "use_etag", Default: false},
	{Name: "source_hash_sig", Optional: true}, {Name: "signed_by_any", Optional: true}, {Name: "signed_by_all", Optional: true},
	{Name: "keyring", Optional: true}, {Name: "gnupghome", Optional: true},
}, Run: func(ctx context.Context, c *states.Call) (*states.Result, error) { return cached(on(ctx, c)) }}

var notCachedDef = states.Def{Name: "not_cached", Params: []modules.Param{
	{Name: "name"}, {Name: "saltenv", Default: "base"},
}, Run: func(ctx context.Context, c *states.Call) (*states.Result, error) { return notCached(on(ctx, c)) }}

// remoteSchemes returns the schemes whose files need a hash.
func remoteSchemes() []string { return []string{"http", "https", "ftp", "swift", "s3"} }

// localPath returns the path on this host that a URL names. ok is false if it names none.
func (j *job) localPath(url string) (string, bool) {
	switch scheme(url) {
	case "":
	case "file":
		url = url[strings.IndexByte(url, ':')+1:]
	default:
		return "", false
	}
	if rest, ok := strings.CutPrefix(url, "//"); ok {
		_, path, _ := strings.Cut(rest, "/")
		url = "/" + path
	}
	url, _, _ = strings.Cut(url, "#")
	url, _, _ = strings.Cut(url, "?")
	path := j.expandUser(url)
	if !posixpath.IsAbs(path) {
		if cwd, err := os.Getwd(); err == nil {
			path = posixpath.Join(cwd, path)
		}
	}
	return posixpath.Real(path, func(p string) string {
		if !j.isLink(p) {
			return ""
		}
		target, _ := os.Readlink(j.Path(p))
		return target
	}), true
}

// caching is one run of file.cached.
type caching struct {
	*job
	ret  *states.Result
	name string
	sum  map[string]any
}

func cached(j *job) (*states.Result, error) {
	c := &caching{job: j, ret: j.Result(), name: j.Str("name")}
	if !c.Bool("skip_verify") && !c.Bool("source_hash") && !c.Bool("use_etag") && slices.Contains(remoteSchemes(), scheme(c.name)) {
		return fail(c.ret, "Unable to verify upstream hash of source file "+modules.RedactAuth(c.name)+
			", please set source_hash or set skip_verify or use_etag to True")
	}
	if c.Bool("source_hash") {
		kw := c.picked("source_hash", "source_hash_name", "saltenv", "source_hash_sig", "signed_by_any", "signed_by_all", "keyring", "gnupghome")
		kw["source"] = c.name
		v, err := c.execKw("file.get_source_sum", nil, kw)
		if isExec(err) {
			return fail(c.ret, states.ErrorText(err))
		} else if err != nil {
			return nil, err
		}
		if c.sum = mapOf(v); len(c.sum) == 0 {
			return fail(c.ret, "Failed to get source hash from "+c.Str("source_hash")+". This may be a bug. "+
				"If this error persists, please report it and set skip_verify to True to work around it.")
		}
	}
	if c.Test() {
		return c.predict()
	}
	if path, ok := c.localPath(c.name); ok {
		return c.local(path)
	}
	return c.fetch()
}

// isCached returns the path of the file in the cache, or "" if it is not cached.
func (j *job) isCached(name string) (string, error) {
	v, err := j.execKw("cp.is_cached", []any{name}, map[string]any{"saltenv": j.Value("saltenv")})
	s, _ := v.(string)
	return s, err
}

// hashOf returns the hash of a file. Its type is that of the expected hash, or that of the configuration.
func (c *caching) hashOf(path string) (any, error) {
	kind, ok := c.sum["hash_type"]
	if !ok {
		kind = c.Opt("hash_type")
	}
	return c.exec("file.get_hash", path, kind)
}

func (c *caching) predict() (*states.Result, error) {
	path, err := c.isCached(c.name)
	switch {
	case err != nil:
		return nil, err
	case path == "":
		return c.ret.As(states.None, "File will be cached: "+c.name)
	case c.sum == nil:
		return c.ret.As(states.None, "No hash found. File will be cached: "+c.name)
	}
	have, err := c.exec("file.get_hash", path, c.Opt("hash_type"))
	switch {
	case err != nil:
		return nil, err
	case have == c.sum["hsum"]:
		return c.ret.As(states.None, "File already cached: "+c.name)
	}
	return c.ret.As(states.None, "Hashes don't match.\nFile will be cached: "+c.name)
}

func (c *caching) local(path string) (*states.Result, error) {
	if !c.exists(path) {
		return fail(c.ret, "File "+path+" is not present on the minion")
	}
	if c.Bool("skip_verify") || c.sum == nil {
		return c.ret.As(states.True, "File "+path+" is present on the minion")
	}
	have, err := c.hashOf(path)
	switch {
	case err != nil:
		return nil, err
	case have == c.sum["hsum"]:
		return c.ret.As(states.True, "File "+path+" is present on the minion and has hash "+pytext.Str(have))
	}
	return fail(c.ret, "File "+path+" is present on the minion, but the hash ("+pytext.Str(have)+") does not match the specified hash ("+
		pytext.Str(c.sum["hsum"])+")")
}

func (c *caching) fetch() (*states.Result, error) {
	var before any
	path, err := c.isCached(c.name)
	if err == nil && path != "" {
		before, err = c.hashOf(path)
	}
	if err != nil {
		return nil, err
	}
	v, err := c.execKw("cp.cache_file", []any{c.name}, map[string]any{
		"saltenv": c.Value("saltenv"), "source_hash": c.sum["hsum"], "use_etag": c.Value("use_etag"),
	})
	if err != nil {
		if c.ctx.Err() != nil {
			return nil, context.Cause(c.ctx)
		}
		return fail(c.ret, modules.RedactAuth(states.ErrorText(err)))
	}
	if path, _ = v.(string); path == "" {
		return fail(c.ret, "Failed to cache "+modules.RedactAuth(c.name)+", check minion log for more information")
	}
	after, err := c.hashOf(path)
	if err != nil {
		return nil, err
	}
	if before != after {
		c.ret.Changes["hash"] = map[string]any{"old": before, "new": after}
	}
	switch {
	case c.Bool("skip_verify") || c.sum == nil:
		return c.ret.As(states.True, "File is cached to "+path)
	case after == c.sum["hsum"]:
		return c.ret.As(states.True, "File is already cached to "+path+" with hash "+pytext.Str(after))
	}
	return fail(c.ret, "File is cached to "+path+", but the hash ("+pytext.Str(after)+") does not match the specified hash ("+pytext.Str(c.sum["hsum"])+")")
}

func notCached(j *job) (*states.Result, error) {
	ret, name := j.Result(), j.Str("name")
	if path, ok := j.localPath(name); ok {
		return ret.As(states.True, "File "+path+" is a local path, no action taken")
	}
	path, err := j.isCached(name)
	switch {
	case err != nil:
		return nil, err
	case path == "":
		return ret.As(states.True, name+" is not cached")
	}
	if err := os.Remove(j.Path(path)); err != nil {
		return fail(ret, "Failed to delete "+path+": "+states.ErrorText(modules.OSError(err)))
	}
	ret.Changes["deleted"] = true
	return ret.As(states.True, path+" was deleted")
}
