package keys

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/target"
)

// autosignFolder holds stub files: an id with a file there is accepted once.
const autosignFolder = "minions_autosign"

// maxListBytes limits an autosign, autoreject or grain value file.
const maxListBytes = 8 << 20

// A Policy decides which unknown keys are accepted or rejected without an operator. The zero value leaves every key
// pending. Salt's source: salt/daemons/masterapi.py, class AutoKey.
type Policy struct {
	// AutoAccept accepts every new key.
	AutoAccept bool
	// OpenMode accepts every key, even over another one of the same id. It turns authentication off.
	OpenMode bool
	// AutosignFile and AutorejectFile name lists of ids: one shell pattern or full-match regular expression per
	// line, # comments. A file that other users may write is ignored.
	AutosignFile, AutorejectFile string
	// AutosignGrainsDir holds a file per grain with one value per line. A minion that sends an equal value is
	// accepted.
	AutosignGrainsDir string
	// AutosignTimeout is how long a stub file in minions_autosign is valid; 0 means 120 minutes, below 0 for ever.
	AutosignTimeout time.Duration
	// PermissivePKIAccess allows the lists above to be writable by their group.
	PermissivePKIAccess bool
	// Proven means that the minion has proved who it is: its key is accepted, and replaces another pending one.
	Proven bool
	// Hold means that its proof was bad or could not be checked: nothing here accepts its key, except OpenMode.
	Hold bool
	// Decide, if set, is called after all lists for ids that they do not contain. It returns true to accept.
	Decide func(id, pubText string, autosignGrains map[string]any) bool
	// Log receives ignored files; nil means no log.
	Log *slog.Logger
}

func (p *Policy) warn(msg string, args ...any) {
	if p.Log != nil {
		p.Log.Warn(msg, args...)
	}
}

// Rejects reports whether the policy rejects an id at first sight.
func (p *Policy) Rejects(id string) bool { return p.inList(id, p.AutorejectFile) }

// acceptsKey reports whether the policy accepts an id at first sight; stub is the stub file look-up of the store.
func (p *Policy) acceptsKey(id, pubText string, grains map[string]any, stub func(id string, timeout time.Duration) bool) bool {
	if p.Hold {
		return false
	}
	if p.AutoAccept || p.Proven || p.inList(id, p.AutosignFile) {
		return true
	}
	timeout := p.AutosignTimeout
	if timeout == 0 {
		timeout = 120 * time.Minute
	}
	if stub(id, timeout) || p.grainListed(grains) {
		return true
	}
	return p.Decide != nil && p.Decide(id, pubText, grains)
}

// inList reports whether a list file names an id.
func (p *Policy) inList(id, file string) bool {
	if file == "" {
		return false
	}
	b, err := p.readTrusted(file)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			p.warn("ignoring list of minion ids", "file", file, "err", err)
		}
		return false
	}
	found := false
	p.eachLine(b, func(line string) bool {
		found = exprMatch(id, line)
		return !found
	})
	return found
}

// exprMatch is salt.utils.stringutils.expr_match: a shell pattern, else a regular expression over the whole id.
func exprMatch(id, expr string) bool {
	if target.Glob(expr, id) {
		return true
	}
	ok, err := target.Match("pcre", `(?:`+expr+`)\Z`, "", target.Subject{ID: id})
	return err == nil && ok
}

func (p *Policy) grainListed(grains map[string]any) bool {
	if p.AutosignGrainsDir == "" {
		return false
	}
	for name, value := range grains {
		// The name comes from the minion, so it may only be a plain file name.
		if name == "" || !filepath.IsLocal(name) || strings.ContainsAny(name, "/\\\x00:") || strings.HasPrefix(name, ".") {
			continue
		}
		file := filepath.Join(p.AutosignGrainsDir, name)
		b, err := p.readTrusted(file)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				p.warn("ignoring list of grain values", "file", file, "err", err)
			}
			continue
		}
		want, found := pytext.Str(value), false
		p.eachLine(b, func(line string) bool {
			found = line == want
			return !found
		})
		if found {
			return true
		}
	}
	return false
}

// eachLine calls f with every line that is neither empty nor a comment, until f returns false.
func (p *Policy) eachLine(b []byte, f func(string) bool) {
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, maxListBytes)
	for sc.Scan() {
		line := strings.TrimSpace(sc.Text())
		if line != "" && !strings.HasPrefix(line, "#") && !f(line) {
			return
		}
	}
}

// readTrusted reads a file that only trusted users can have written.
func (p *Policy) readTrusted(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, confined.ErrNotRegular
	}
	if runtime.GOOS != "windows" {
		mode := info.Mode().Perm()
		if mode&0o002 != 0 || mode&0o020 != 0 && !p.PermissivePKIAccess {
			return nil, fmt.Errorf("others can write to it (mode %v)", mode)
		}
	}
	if info.Size() > maxListBytes {
		return nil, fmt.Errorf("%d bytes are more than %d", info.Size(), maxListBytes)
	}
	return io.ReadAll(io.LimitReader(f, maxListBytes))
}

// useStub removes stub files older than timeout, and reports whether one existed for id, which is then used up.
func (s *Store) useStub(id string, timeout time.Duration) bool {
	d, ok := s.back.(*disk)
	if !ok || protocol.ValidID(id) != nil {
		return false
	}
	entries, err := d.dir.List(autosignFolder)
	if err != nil {
		s.log.Warn("Cannot list stub files", "err", err)
		return false
	}
	found := false
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		expired := timeout > 0 && time.Since(info.ModTime()) > timeout
		if expired {
			s.log.Warn("Stub file expired", "minion", e.Name())
		}
		if !expired && e.Name() != id {
			continue
		}
		if err := d.dir.Remove(autosignFolder + "/" + e.Name()); err != nil {
			s.log.Warn("Cannot remove stub file", "minion", e.Name(), "err", err)
			continue // one that cannot be removed must not accept for ever
		}
		found = found || !expired
	}
	return found
}
