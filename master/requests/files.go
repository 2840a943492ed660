package requests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/fileserver"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// FileAccess decides which files a minion may see.
type FileAccess interface {
	// MayRead reports whether a minion may see a file, under the name it requests, in an environment.
	MayRead(ctx context.Context, id, name, env string) bool
}

// Files answers minions' requests to the file server.
type Files struct {
	Server *fileserver.Server
	// Orders provides the files of orders; nil if the store cannot keep them.
	Orders *content.Carrier
	// Access restricts the files of Server; nil allows all.
	Access FileAccess
}

// where returns the path and saltenv of a file request. ok is false if one is missing or the minion may not see
// the file.
func (f *Files) where(ctx context.Context, v protocol.Verified) (name, env string, ok bool) {
	load := v.Load()
	name, a := payload.Text(load["path"])
	env, b := saltenv(load)
	if !a || !b {
		return "", "", false
	}
	return name, env, f.mayRead(ctx, v.ID(), name, env)
}

// saltenv returns the environment of a request. As in Salt, numbers count as their text.
func saltenv(load map[string]any) (string, bool) {
	switch e := load["saltenv"].(type) {
	case string:
		return e, true
	case int64:
		return fmt.Sprint(e), true
	}
	return "", false
}

// ofOrder reports whether a request is for a file of an order, and returns its name. Roots never serve these
// paths.
func (f *Files) ofOrder(v protocol.Verified) (name string, ok bool) {
	name, a := payload.Text(v.Load()["path"])
	env, b := saltenv(v.Load())
	name, env, c := fileserver.Split(name, env)
	return name, a && b && c && f.Orders != nil && content.Owns(name, env)
}

func (f *Files) mayRead(ctx context.Context, id, name, env string) bool {
	return f.Access == nil || f.Access.MayRead(ctx, id, name, env)
}

// notFound replaces fileserver.ErrNotFound by Salt's answer for it. Other errors stay.
func notFound(err error, answer any) (any, error) {
	if errors.Is(err, fileserver.ErrNotFound) {
		return answer, nil
	}
	return nil, err
}

// emptyFound returns Salt's answer for a missing file. A hidden file has the same answer.
func emptyFound() map[string]any { return map[string]any{"path": "", "rel": ""} }

// findFile describes the requested file. It returns fileserver.ErrNotFound if the minion may not see it.
func (f *Files) findFile(ctx context.Context, v protocol.Verified) (fileserver.Found, error) {
	if name, ok := f.ofOrder(v); ok {
		return f.Orders.Files.Find(ctx, v.ID(), name)
	}
	name, env, ok := f.where(ctx, v)
	if !ok {
		return fileserver.Found{}, fileserver.ErrNotFound
	}
	return f.Server.Find(name, env)
}

// hashFile is findFile plus the file's hash.
func (f *Files) hashFile(ctx context.Context,
	v protocol.Verified) (string, fileserver.Found, error) {
	if name, ok := f.ofOrder(v); ok {
		return f.Orders.Files.Hash(ctx, v.ID(), name)
	}
	name, env, ok := f.where(ctx, v)
	if !ok {
		return "", fileserver.Found{}, fileserver.ErrNotFound
	}
	return f.Server.Hash(name, env)
}

// readFile returns the requested part of a file.
func (f *Files) readFile(ctx context.Context, v protocol.Verified) (fileserver.Chunk, error) {
	offset, isInt := payload.Int(v.Load()["loc"])
	gzip, _ := payload.Int(v.Load()["gzip"])
	level := int(min(max(gzip, 0), 9))
	if !isInt {
		return fileserver.Chunk{}, fileserver.ErrNotFound
	}
	if name, ok := f.ofOrder(v); ok {
		return f.Orders.Files.Read(ctx, v.ID(), name, offset, level)
	}
	name, env, ok := f.where(ctx, v)
	if !ok {
		return fileserver.Chunk{}, fileserver.ErrNotFound
	}
	return f.Server.Read(name, env, offset, level)
}

// Find answers _file_find: a file's location and properties.
func (f *Files) Find(ctx context.Context, v protocol.Verified) (any, error) {
	found, err := f.findFile(ctx, v)
	if err != nil {
		return notFound(err, emptyFound())
	}
	return map[string]any{"path": found.Path, "rel": found.Rel, "back": found.Back,
		"stat": found.Stat()}, nil
}

// Hash answers _file_hash: the hash of a file.
func (f *Files) Hash(ctx context.Context, v protocol.Verified) (any, error) {
	sum, _, err := f.hashFile(ctx, v)
	if err != nil {
		return notFound(err, "")
	}
	return map[string]any{"hash_type": f.Server.HashType(), "hsum": sum}, nil
}

// HashAndStat answers _file_hash_and_stat: the hash and the properties of a file.
func (f *Files) HashAndStat(ctx context.Context, v protocol.Verified) (any, error) {
	sum, found, err := f.hashFile(ctx, v)
	if err != nil {
		return notFound(err, []any{"", nil})
	}
	return []any{map[string]any{"hash_type": f.Server.HashType(), "hsum": sum}, found.Stat()}, nil
}

// Serve answers _serve_file with a part of a file.
func (f *Files) Serve(ctx context.Context, v protocol.Verified) (any, error) {
	c, err := f.readFile(ctx, v)
	if err != nil {
		return notFound(err, map[string]any{"data": "", "dest": ""})
	}
	reply := map[string]any{"data": c.Data, "dest": c.Dest}
	if c.Gzip > 0 {
		reply["gzip"] = c.Gzip
	}
	return reply, nil
}

// listing answers the four list requests.
func (f *Files) listing(ctx context.Context,
	v protocol.Verified) (fileserver.Listing, string, func(string) bool, error) {
	env, ok := saltenv(v.Load())
	if !ok {
		return fileserver.Listing{}, "", func(string) bool { return false }, nil
	}
	prefix := strings.Trim(fields.Text(v.Load(), "prefix"), "/")
	l, err := f.Server.List(ctx, env)
	if err == nil && env == content.Env && f.Orders != nil {
		l, err = f.Orders.List(ctx, v.ID(), l)
	}
	return l, env, func(name string) bool {
		if f.Orders != nil && content.Owns(name, env) {
			return strings.HasPrefix(name, prefix)
		}
		return strings.HasPrefix(name, prefix) && f.mayRead(ctx, v.ID(), "|"+name, env)
	}, err
}

func filtered(names []string, keep func(string) bool) []any {
	out := make([]any, 0, len(names))
	for _, n := range names {
		if keep(n) {
			out = append(out, n)
		}
	}
	return out
}

// List answers _file_list: the files of an environment.
func (f *Files) List(ctx context.Context, v protocol.Verified) (any, error) {
	l, _, keep, err := f.listing(ctx, v)
	return filtered(l.Files, keep), err
}

// ListEmptyDirs answers _file_list_emptydirs: the empty directories of an environment.
func (f *Files) ListEmptyDirs(ctx context.Context, v protocol.Verified) (any, error) {
	l, _, keep, err := f.listing(ctx, v)
	return filtered(l.EmptyDirs, keep), err
}

// ListDirs answers _dir_list: the directories of an environment.
func (f *Files) ListDirs(ctx context.Context, v protocol.Verified) (any, error) {
	l, _, keep, err := f.listing(ctx, v)
	return filtered(l.Dirs, keep), err
}

// ListSymlinks answers _symlink_list: the links of an environment and their targets.
func (f *Files) ListSymlinks(ctx context.Context, v protocol.Verified) (any, error) {
	l, _, keep, err := f.listing(ctx, v)
	out := make(map[string]any)
	for name, dest := range l.Links {
		if keep(name) {
			out[name] = dest
		}
	}
	return out, err
}

// Envs answers _file_envs: the environments with files for the minion.
func (f *Files) Envs(ctx context.Context, v protocol.Verified) (any, error) {
	envs := f.Server.Envs()
	if f.Orders == nil || slices.Contains(envs, content.Env) {
		return nested.Anys(envs), nil
	}
	files, _, err := f.Orders.Files.List(ctx, v.ID())
	if len(files) > 0 {
		envs = append(envs, content.Env)
		slices.Sort(envs)
	}
	return nested.Anys(envs), err
}
