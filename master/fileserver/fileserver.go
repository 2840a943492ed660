// Package fileserver serves the files that states, templates and cp functions of minions request. It has several
// environments, each made of directories that are searched in order, or of any fs.FS.
//
//	request ─▶ Split (path, environment) ─▶ Server ─▶ Backend 1, 2, … ─▶ roots, git, fs
//	                                          │ listings kept for 20 s, hashes until the file changes
//
// It only reads. A path of a minion is never joined to a directory unless it is plain, relative and without "..".
// Salt's sources: salt/fileserver/__init__.py, salt/fileserver/roots.py.
package fileserver

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/brine-salt/brine/protocol/crypt"
)

// ErrNotFound means that no backend has the requested file or environment, or may not serve it.
var ErrNotFound = errors.New("file not found")

// DefaultBufferSize is Salt's file_buffer_size on a master: bytes of a file per reply.
const DefaultBufferSize = 1 << 20

// A Backend is a source of files. Its methods must be safe for concurrent use. Paths are valid for fs.ValidPath
// and not ".".
type Backend interface {
	// Name returns Salt's name of the kind: "roots" for directories.
	Name() string
	// Envs returns the environments in any order.
	Envs() []string
	// HasEnv reports whether an environment is served, including those that Envs does not return (__env__).
	HasEnv(env string) bool
	// Find describes a regular file and follows links as far as the backend allows. It returns ErrNotFound if
	// the file is missing.
	Find(env, name string) (Found, error)
	// Open opens the file that Find found.
	Open(env, name string) (Handle, error)
	// List lists an environment. An unknown one has an empty listing.
	List(ctx context.Context, env string) (Listing, error)
}

// A Source is a backend that keeps copies of remote files.
type Source interface {
	Backend
	// Update updates the copies of all remotes, or of the named ones. It reports whether anything changed.
	Update(ctx context.Context, remotes ...string) (bool, error)
	// Clear deletes the copies.
	Clear() error
	// Lock keeps the remotes whose address matches a glob ("" means all) from being updated until Unlock. Both
	// return a line for each, and errors.
	Lock(glob string) (done, failed []string)
	Unlock(glob string) (done, failed []string)
}

// A Handle is an open file.
type Handle interface {
	io.ReaderAt
	io.Closer
	Stat() (fs.FileInfo, error)
}

// Found is a file that a backend has.
type Found struct {
	// Path is where the file is stored, for people and logs; Rel is the requested path.
	Path, Rel string
	// Back is the backend's name.
	Back string
	Info fs.FileInfo
}

// A Listing is the content of an environment, with paths relative to it.
type Listing struct {
	Files, Dirs, EmptyDirs []string
	// Links maps links to their targets.
	Links map[string]string
}

// Options of a Server. The zero value serves nothing.
type Options struct {
	// Backends are searched in this order.
	Backends []Backend
	// HashType is Salt's hash_type; empty means sha256.
	HashType string
	// BufferSize is how many bytes of a file one reply carries; 0 means DefaultBufferSize.
	BufferSize int
	// ListCache is how long listings are kept; 0 means 20 s, as Salt's fileserver_list_cache_time; below 0 not at
	// all.
	ListCache time.Duration
	// Ignore hides files from minions; see Ignore.
	Ignore *Ignore
}

// A Server answers file requests from its backends.
type Server struct {
	opts Options

	mu     sync.Mutex // guards lists and hashes
	lists  map[string]cachedList
	hashes map[hashKey]string
}

type cachedList struct {
	at   time.Time
	list Listing
}

// A hashKey identifies one state of a file; a changed file has another one.
type hashKey struct {
	back, path string
	size       int64
	mtime      time.Time
	inode      uint64
}

const maxHashes, maxLists = 8192, 64

// New returns a file server.
func New(o Options) (*Server, error) {
	if o.HashType == "" {
		o.HashType = "sha256"
	}
	if _, err := crypt.NewHash(o.HashType); err != nil {
		return nil, fmt.Errorf("cannot serve files: %w", err)
	}
	if o.BufferSize <= 0 {
		o.BufferSize = DefaultBufferSize
	}
	if o.ListCache == 0 {
		o.ListCache = 20 * time.Second
	}
	return &Server{opts: o, lists: make(map[string]cachedList), hashes: make(map[hashKey]string)},
		nil
}

// HashType returns the name of the hash that Hash uses.
func (s *Server) HashType() string { return s.opts.HashType }

// Of returns a server with the backends for which pick returns true, and with caches of its own.
func (s *Server) Of(pick func(Backend) bool) *Server {
	o := s.opts
	o.Backends, o.ListCache = nil, -1
	for _, b := range s.opts.Backends {
		if pick(b) {
			o.Backends = append(o.Backends, b)
		}
	}
	return &Server{opts: o, lists: make(map[string]cachedList), hashes: make(map[hashKey]string)}
}

// Backends returns the sources of files in the order in which they are searched.
func (s *Server) Backends() []Backend { return slices.Clone(s.opts.Backends) }

// Envs returns the environments of all backends, sorted.
func (s *Server) Envs() []string {
	var out []string
	for _, b := range s.opts.Backends {
		out = append(out, b.Envs()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Split splits a path as minions send it. A path that begins with "|" is literal; otherwise "?saltenv=x" after it
// selects another environment (salt/fileserver/__init__.py, find_file). ok is false for paths that no file can
// have.
func Split(name, env string) (cleanName, cleanEnv string, ok bool) {
	if rest, literal := strings.CutPrefix(name, "|"); literal {
		name = rest
	} else if before, query, found := strings.Cut(name, "?"); found {
		name = before
		for _, part := range strings.Split(query, "&") {
			if v, is := strings.CutPrefix(part, "saltenv="); is {
				env = v
			}
		}
	}
	if len(name) > 4096 || strings.IndexByte(name, 0) >= 0 || !utf8.ValidString(name) ||
		strings.HasPrefix(name, "/") {
		return "", "", false
	}
	for _, part := range strings.Split(name, "/") {
		// guard: CVE-2020-11652,CVE-2024-22232,CVE-2021-25282 @served-path TestT14Traversal
		if part == ".." {
			return "", "", false
		}
	}
	name = path.Clean(name)
	// guard: CVE-2020-11652,CVE-2024-22232,CVE-2021-25282 @served-path TestT14Traversal
	if name == "." || !fs.ValidPath(name) || !localName(name) {
		return "", "", false
	}
	return name, env, ValidEnv(env)
}

// ValidEnv reports whether a string can be an environment: a plain name, or several joined by slashes, as in names
// of branches.
func ValidEnv(env string) bool {
	// guard: CVE-2025-22240 @served-env master:TestCVE_2025_22240_NamesOfEnvironments instead: return true
	return env != "" && len(env) <= 255 && utf8.ValidString(env) &&
		!strings.ContainsAny(env, "\\\x00:") && fs.ValidPath(env) && env != "."
}

// Find looks a file up. The path may have a query; see Split. It returns ErrNotFound if the file is missing.
func (s *Server) Find(name, env string) (Found, error) {
	_, f, err := s.findFile(name, env)
	return f, err
}

type location struct {
	backend   Backend
	env, name string
}

func (s *Server) findFile(name, env string) (location, Found, error) {
	clean, env, ok := Split(name, env)
	if !ok {
		return location{}, Found{}, ErrNotFound
	}
	for _, b := range s.opts.Backends {
		if !b.HasEnv(env) {
			continue
		}
		f, err := b.Find(env, clean)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return location{}, Found{}, fmt.Errorf("cannot find file %q: %w", clean, err)
		}
		if s.opts.Ignore.Match(f.Path) || s.opts.Ignore.Match(clean) {
			continue
		}
		f.Rel, f.Back = clean, b.Name()
		return location{b, env, clean}, f, nil
	}
	return location{}, Found{}, ErrNotFound
}

// A Chunk is a part of a file.
type Chunk struct {
	Data []byte
	// Dest is the path of the file.
	Dest string
	// Gzip is the level that Data was compressed with; 0 means not compressed.
	Gzip int
}

// Read returns the part of a file that starts at an offset: at most BufferSize bytes, none at or after the end.
// With level 1 to 9 a part that is not empty is compressed, each part as a gzip file of its own.
func (s *Server) Read(name, env string, offset int64, level int) (Chunk, error) {
	at, f, err := s.findFile(name, env)
	if err != nil {
		return Chunk{}, err
	}
	h, err := at.backend.Open(at.env, at.name)
	if err != nil {
		return Chunk{}, err
	}
	defer h.Close()
	if offset < 0 {
		return Chunk{}, fmt.Errorf("cannot read file %q: offset %d", f.Rel, offset)
	}
	size := int64(s.opts.BufferSize)
	if info, err := h.Stat(); err == nil {
		size = max(0, min(size, info.Size()-offset))
		if size == 0 { // files of embed.FS refuse an offset after their end
			return Chunk{Dest: f.Rel}, nil
		}
	}
	data := make([]byte, size)
	n, err := h.ReadAt(data, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return Chunk{}, fmt.Errorf("cannot read file %q: %w", f.Rel, err)
	}
	c := Chunk{Data: data[:n], Dest: f.Rel}
	if level < 1 || n == 0 {
		return c, nil
	}
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, min(level, gzip.BestCompression))
	if err != nil {
		return Chunk{}, err
	}
	z.Write(c.Data)
	if err := z.Close(); err != nil {
		return Chunk{}, err
	}
	c.Data, c.Gzip = buf.Bytes(), level
	return c, nil
}

// Hash returns the hash of a file in lower-case hex, and its description. Hashes are kept until the file changes.
func (s *Server) Hash(name, env string) (string, Found, error) {
	at, f, err := s.findFile(name, env)
	if err != nil {
		return "", Found{}, err
	}
	h, err := at.backend.Open(at.env, at.name)
	if err != nil {
		return "", Found{}, err
	}
	defer h.Close()
	info, err := h.Stat()
	if err != nil {
		return "", Found{}, fmt.Errorf("cannot read file %q: %w", f.Rel, err)
	}
	f.Info = info
	key := hashKey{at.backend.Name(), f.Path, info.Size(), info.ModTime(), inodeOf(info)}
	s.mu.Lock()
	sum, ok := s.hashes[key]
	s.mu.Unlock()
	if ok {
		return sum, f, nil
	}
	hash, err := crypt.NewHash(s.opts.HashType)
	if err != nil {
		return "", Found{}, err
	}
	if _, err := io.Copy(hash, io.NewSectionReader(h, 0, 1<<62)); err != nil {
		return "", Found{}, fmt.Errorf("cannot read file %q: %w", f.Rel, err)
	}
	sum = hex.EncodeToString(hash.Sum(nil))
	after, err := h.Stat()
	if err == nil && after.Size() == info.Size() && after.ModTime().Equal(info.ModTime()) &&
		time.Since(info.ModTime()) > time.Second {
		s.mu.Lock()
		if len(s.hashes) >= maxHashes {
			clear(s.hashes)
		}
		s.hashes[key] = sum
		s.mu.Unlock()
	}
	return sum, f, nil
}

// List lists an environment over all backends, sorted. The result is shared and must not be changed.
func (s *Server) List(ctx context.Context, env string) (Listing, error) {
	if !ValidEnv(env) {
		return Listing{}, nil
	}
	s.mu.Lock()
	known, ok := s.lists[env]
	s.mu.Unlock()
	if ok && time.Since(known.at) < s.opts.ListCache {
		return known.list, nil
	}
	out := Listing{Links: make(map[string]string)}
	for _, b := range s.opts.Backends {
		if !b.HasEnv(env) {
			continue
		}
		l, err := b.List(ctx, env)
		if err != nil {
			return Listing{}, fmt.Errorf("cannot list environment %q: %w", env, err)
		}
		out.Files = append(out.Files, s.keepEnvironments(l.Files)...)
		out.Dirs = append(out.Dirs, s.keepEnvironments(l.Dirs)...)
		out.EmptyDirs = append(out.EmptyDirs, s.keepEnvironments(l.EmptyDirs)...)
		for k, v := range l.Links {
			if _, dup := out.Links[k]; !dup && !s.opts.Ignore.Match(k) {
				out.Links[k] = v
			}
		}
	}
	for _, list := range []*[]string{&out.Files, &out.Dirs, &out.EmptyDirs} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	if s.opts.ListCache > 0 {
		s.mu.Lock()
		if len(s.lists) >= maxLists {
			clear(s.lists)
		}
		s.lists[env] = cachedList{time.Now(), out}
		s.mu.Unlock()
	}
	return out, nil
}

func (s *Server) keepEnvironments(names []string) []string {
	if s.opts.Ignore == nil {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), s.opts.Ignore.Match)
}

// Forget drops cached listings, so that the next one is current.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.lists)
}
