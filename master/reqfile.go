package master

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/fileserver"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// where reads path and saltenv of a file request. ok is false when a part is missing or the minion may not see the file.
func (m *Master) where(ctx context.Context, v protocol.Verified) (name, env string, ok bool) {
	load := v.Load()
	name, a := payload.Text(load["path"])
	env, b := saltenv(load)
	if !a || !b {
		return "", "", false
	}
	return name, env, m.mayRead(ctx, v.ID(), name, env)
}

// saltenv reads the environment of a request; as in Salt, numbers are taken for their text.
func saltenv(load map[string]any) (string, bool) {
	switch e := load["saltenv"].(type) {
	case string:
		return e, true
	case int64:
		return fmt.Sprint(e), true
	}
	return "", false
}

// ofOrder reports whether a request is for a file that an order brings along. Roots have no part in these paths.
func (m *Master) ofOrder(v protocol.Verified) (name string, ok bool) {
	name, a := payload.Text(v.Load()["path"])
	env, b := saltenv(v.Load())
	name, env, c := fileserver.Split(name, env)
	return name, a && b && c && m.carried != nil && content.Owns(name, env)
}

func (m *Master) mayRead(ctx context.Context, id, name, env string) bool {
	if m.opts.FileAccess == nil {
		return true
	}
	of, err := m.tenants(ctx)
	if err != nil {
		m.log.Error("cannot find out whose a minion is", "minion", id, "err", err)
		return false
	}
	clean, env, ok := fileserver.Split(name, env)
	return ok && m.opts.FileAccess(FileRequest{ID: id, Tenant: of[id], Env: env, Path: clean})
}

// notFound turns "no such file" into Salt's answer for it; other errors stay.
func notFound(err error, answer any) (any, error) {
	if errors.Is(err, fileserver.ErrNotFound) {
		return answer, nil
	}
	return nil, err
}

// emptyFound is Salt's answer for a file that is not there. It differs from a missing one by nothing.
func emptyFound() map[string]any { return map[string]any{"path": "", "rel": ""} }

// findFile describes the file of a request; fileserver.ErrNotFound if there is none that the minion may see.
func (m *Master) findFile(ctx context.Context, v protocol.Verified) (fileserver.Found, error) {
	if name, ok := m.ofOrder(v); ok {
		return m.carried.Files.Find(ctx, v.ID(), name)
	}
	name, env, ok := m.where(ctx, v)
	if !ok {
		return fileserver.Found{}, fileserver.ErrNotFound
	}
	return m.files.Find(name, env)
}

// hashFile is findFile with the file's hash.
func (m *Master) hashFile(ctx context.Context, v protocol.Verified) (string, fileserver.Found, error) {
	if name, ok := m.ofOrder(v); ok {
		return m.carried.Files.Hash(ctx, v.ID(), name)
	}
	name, env, ok := m.where(ctx, v)
	if !ok {
		return "", fileserver.Found{}, fileserver.ErrNotFound
	}
	return m.files.Hash(name, env)
}

// readFile returns the part of a file that a request is for.
func (m *Master) readFile(ctx context.Context, v protocol.Verified) (fileserver.Chunk, error) {
	offset, isInt := payload.Int(v.Load()["loc"])
	gzip, _ := payload.Int(v.Load()["gzip"])
	level := int(min(max(gzip, 0), 9))
	if !isInt {
		return fileserver.Chunk{}, fileserver.ErrNotFound
	}
	if name, ok := m.ofOrder(v); ok {
		return m.carried.Files.Read(ctx, v.ID(), name, offset, level)
	}
	name, env, ok := m.where(ctx, v)
	if !ok {
		return fileserver.Chunk{}, fileserver.ErrNotFound
	}
	return m.files.Read(name, env, offset, level)
}

func (m *Master) reqFileFind(ctx context.Context, v protocol.Verified) (any, error) {
	f, err := m.findFile(ctx, v)
	if err != nil {
		return notFound(err, emptyFound())
	}
	return map[string]any{"path": f.Path, "rel": f.Rel, "back": f.Back, "stat": f.Stat()}, nil
}

func (m *Master) reqFileHash(ctx context.Context, v protocol.Verified) (any, error) {
	sum, _, err := m.hashFile(ctx, v)
	if err != nil {
		return notFound(err, "")
	}
	return map[string]any{"hash_type": m.files.HashType(), "hsum": sum}, nil
}

func (m *Master) reqFileHashAndStat(ctx context.Context, v protocol.Verified) (any, error) {
	sum, f, err := m.hashFile(ctx, v)
	if err != nil {
		return notFound(err, []any{"", nil})
	}
	return []any{map[string]any{"hash_type": m.files.HashType(), "hsum": sum}, f.Stat()}, nil
}

func (m *Master) reqServeFile(ctx context.Context, v protocol.Verified) (any, error) {
	c, err := m.readFile(ctx, v)
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
func (m *Master) listing(ctx context.Context, v protocol.Verified) (fileserver.Listing, string, func(string) bool, error) {
	env, ok := saltenv(v.Load())
	if !ok {
		return fileserver.Listing{}, "", func(string) bool { return false }, nil
	}
	prefix := strings.Trim(fields.Text(v.Load(), "prefix"), "/")
	l, err := m.files.List(ctx, env)
	if err == nil && env == content.Env && m.carried != nil {
		l, err = m.carried.List(ctx, v.ID(), l)
	}
	return l, env, func(name string) bool {
		if m.carried != nil && content.Owns(name, env) {
			return strings.HasPrefix(name, prefix)
		}
		return strings.HasPrefix(name, prefix) && m.mayRead(ctx, v.ID(), "|"+name, env)
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

func (m *Master) reqFileList(ctx context.Context, v protocol.Verified) (any, error) {
	l, _, keep, err := m.listing(ctx, v)
	return filtered(l.Files, keep), err
}

func (m *Master) reqFileListEmptyDirs(ctx context.Context, v protocol.Verified) (any, error) {
	l, _, keep, err := m.listing(ctx, v)
	return filtered(l.EmptyDirs, keep), err
}

func (m *Master) reqDirList(ctx context.Context, v protocol.Verified) (any, error) {
	l, _, keep, err := m.listing(ctx, v)
	return filtered(l.Dirs, keep), err
}

func (m *Master) reqSymlinkList(ctx context.Context, v protocol.Verified) (any, error) {
	l, _, keep, err := m.listing(ctx, v)
	out := make(map[string]any)
	for name, dest := range l.Links {
		if keep(name) {
			out[name] = dest
		}
	}
	return out, err
}

func (m *Master) reqFileEnvs(ctx context.Context, v protocol.Verified) (any, error) {
	envs := m.files.Envs()
	if m.carried == nil || slices.Contains(envs, content.Env) {
		return nested.Anys(envs), nil
	}
	files, _, err := m.carried.Files.List(ctx, v.ID())
	if len(files) > 0 {
		envs = append(envs, content.Env)
		slices.Sort(envs)
	}
	return nested.Anys(envs), err
}

// reqFileRecv takes a piece of a file that a minion pushes (cp.push), into CacheDir/minions/<id>/files and nowhere else
// (CVE-2024-38824). It is off unless Options.FileRecv says otherwise.
func (m *Master) reqFileRecv(_ context.Context, v protocol.Verified) (any, error) {
	load := v.Load()
	parts, ok := payload.List(load["path"])
	data, isBytes := payload.Bytes(load["data"])
	offset, isInt := payload.Int(load["loc"])
	// guard: CVE-2024-38824 TestCVE_2024_38824_PushTraversal
	if !m.opts.FileRecv || !ok || !isBytes || !isInt || offset < 0 || m.pushed == nil {
		return false, nil
	}
	name, err := pushName(parts)
	if err != nil {
		m.log.Warn("pushed file refused", "minion", v.ID(), "err", err)
		return false, nil
	}
	// guard: CVE-2024-38824 TestCVE_2024_38824_PushTraversal
	if int64(len(data)) > m.opts.FileRecvMaxSize || offset > m.opts.FileRecvMaxSize-int64(len(data)) {
		m.log.Warn("pushed file refused: too large", "minion", v.ID(), "file", name, "limit", m.opts.FileRecvMaxSize)
		return false, nil
	}
	if err := m.push(v.ID(), name, data, offset); err != nil {
		m.log.Warn("pushed file refused", "minion", v.ID(), "file", name, "err", err)
		return false, nil
	}
	return true, nil
}

// pushName joins the parts of a pushed path. An absolute path of the minion has an empty first part; a drive is kept as a
// name.
func pushName(parts []any) (string, error) {
	var names []string
	for _, p := range parts {
		s, ok := payload.Text(p)
		if !ok {
			return "", fmt.Errorf("path has a part of type %T", p)
		}
		names = append(names, s)
	}
	name := strings.Join(names, "/")
	if len(name) > 4096 || strings.ContainsAny(name, "\x00\\") {
		return "", fmt.Errorf("path %.80q is not one", name)
	}
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return "", fmt.Errorf("path %.80q leads out", name)
		}
	}
	for _, r := range name {
		// guard: names-of-pushed-files TestNamesOfPushedFiles
		if !unicode.IsGraphic(r) { // operators see the names in their terminals
			return "", fmt.Errorf("path %.80q contains %q", name, r)
		}
	}
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if name == "" || !fs.ValidPath(name) {
		return "", fmt.Errorf("path %.80q is not one", name)
	}
	return name, nil
}

// fileBlock is what a pushed file, and a directory for one, counts at least: an empty one takes an inode and a name.
const fileBlock = 4 << 10

// blocks is what a pushed file of n bytes counts.
func blocks(n int64) int64 { return max(n, fileBlock) }

// push writes a piece within the minion's quota.
func (m *Master) push(id, name string, data []byte, offset int64) error {
	m.pushMu.Lock()
	defer m.pushMu.Unlock()
	base := "minions/" + id + "/files"
	full := base + "/" + name
	var have, dirs int64 // what the file takes already, and what the directories take that it needs
	if info, err := m.pushed.Stat(full); err == nil {
		have = blocks(info.Size())
	} else {
		for dir := path.Dir(full); dir != base && dir != "."; dir = path.Dir(dir) {
			if _, err := m.pushed.Stat(dir); err == nil {
				break
			}
			// guard: empty-pushed-files TestEmptyPushedFilesCount
			dirs += fileBlock
		}
	}
	used, ok := m.pushUsed[id]
	if !ok {
		var err error
		if used, err = m.pushed.Size(base, fileBlock); err != nil {
			return err
		}
	}
	after := used + dirs - have + max(have, blocks(offset+int64(len(data))))
	if offset == 0 {
		after = used + dirs - have + blocks(int64(len(data)))
	}
	// guard: CVE-2024-38824 TestCVE_2024_38824_PushTraversal
	if after > m.opts.FileRecvQuota {
		return fmt.Errorf("quota of %d bytes is used up", m.opts.FileRecvQuota)
	}
	if offset == 0 {
		if err := m.pushed.Mkdir(path.Dir(full), 0o700); err != nil {
			return err
		}
	}
	if err := m.pushed.WriteAt(full, data, offset, offset == 0, 0o600); err != nil {
		return err
	}
	m.pushUsed[id] = after
	return nil
}
