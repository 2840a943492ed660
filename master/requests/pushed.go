package requests

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strings"
	"sync"
	"unicode"

	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// Pushed receives files that minions push (cp.push).
type Pushed struct {
	// Dir is the directory for the files; nil refuses every file.
	Dir *confined.Dir
	// MaxSize limits one file, Quota all files of one minion, in bytes.
	MaxSize, Quota int64
	Log            *slog.Logger

	mu   sync.Mutex // guards used and writes
	used map[string]int64
}

// Receive answers _file_recv: it stores a piece of a pushed file in minions/<id>/files below Dir, and nowhere
// else (CVE-2024-38824).
func (p *Pushed) Receive(_ context.Context, v protocol.Verified) (any, error) {
	load := v.Load()
	parts, ok := payload.List(load["path"])
	data, isBytes := payload.Bytes(load["data"])
	offset, isInt := payload.Int(load["loc"])
	// guard: CVE-2024-38824 master:TestCVE_2024_38824_PushTraversal
	if p.Dir == nil || !ok || !isBytes || !isInt || offset < 0 {
		return false, nil
	}
	name, err := pushName(parts)
	if err != nil {
		p.Log.Warn("Pushed file refused", "minion", v.ID(), "err", err)
		return false, nil
	}
	// guard: CVE-2024-38824 master:TestCVE_2024_38824_PushTraversal
	if int64(len(data)) > p.MaxSize || offset > p.MaxSize-int64(len(data)) {
		p.Log.Warn("Pushed file refused: too large", "minion", v.ID(), "file", name,
			"limit", p.MaxSize)
		return false, nil
	}
	if err := p.push(v.ID(), name, data, offset); err != nil {
		p.Log.Warn("Pushed file refused", "minion", v.ID(), "file", name, "err", err)
		return false, nil
	}
	return true, nil
}

// pushName joins the parts of a pushed path. An absolute path on the minion has an empty first part; a drive
// becomes a name.
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
		return "", fmt.Errorf("%.80q is not a valid path", name)
	}
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return "", fmt.Errorf("path %.80q leads out of the directory of pushed files", name)
		}
	}
	for _, r := range name {
		// guard: names-of-pushed-files master:TestNamesOfPushedFiles
		if !unicode.IsGraphic(r) { // operators list the names on terminals
			return "", fmt.Errorf("path %.80q contains %q", name, r)
		}
	}
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if name == "" || !fs.ValidPath(name) {
		return "", fmt.Errorf("%.80q is not a valid path", name)
	}
	return name, nil
}

// fileBlock is the minimum that a pushed file, or a directory for it, counts against the quota, because even an
// empty one takes an inode and a name.
const fileBlock = 4 << 10

// blocks returns how much a pushed file of n bytes counts.
func blocks(n int64) int64 { return max(n, fileBlock) }

// push writes a piece within the minion's quota.
func (p *Pushed) push(id, name string, data []byte, offset int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	base := "minions/" + id + "/files"
	full := base + "/" + name
	var have, dirs int64 // current size of the file, and size of the directories to create
	if info, err := p.Dir.Stat(full); err == nil {
		have = blocks(info.Size())
	} else {
		for dir := path.Dir(full); dir != base && dir != "."; dir = path.Dir(dir) {
			if _, err := p.Dir.Stat(dir); err == nil {
				break
			}
			// guard: empty-pushed-files master:TestEmptyPushedFilesCount
			dirs += fileBlock
		}
	}
	used, ok := p.used[id]
	if !ok {
		var err error
		if used, err = p.Dir.Size(base, fileBlock); err != nil {
			return err
		}
	}
	after := used + dirs - have + max(have, blocks(offset+int64(len(data))))
	if offset == 0 {
		after = used + dirs - have + blocks(int64(len(data)))
	}
	// guard: CVE-2024-38824 master:TestCVE_2024_38824_PushTraversal
	if after > p.Quota {
		return fmt.Errorf("quota of %d bytes is used up", p.Quota)
	}
	if offset == 0 {
		if err := p.Dir.Mkdir(path.Dir(full), 0o700); err != nil {
			return err
		}
	}
	if err := p.Dir.WriteAt(full, data, offset, offset == 0, 0o600); err != nil {
		return err
	}
	if p.used == nil {
		p.used = make(map[string]int64)
	}
	p.used[id] = after
	return nil
}
