package fileclient

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/hashname"
	"github.com/brine-salt/brine/modules"
)

// Options of [New]. Either Request or Roots is the source of salt:// files.
type Options struct {
	// Request sends a request to the master; with raw every string of the reply stays bytes. nil makes a local client
	// (file_client: local). It must be safe for concurrent use, because a download has several requests in flight.
	Request func(ctx context.Context, load map[string]any, raw bool) (any, error)
	// Roots are the directories of each environment of a local client (file_roots).
	Roots map[string][]string
	// CacheDir is the minion's cachedir. Cached files are written only below its directories files and extrn_files,
	// entity tags below etags.
	CacheDir string
	// HashType is the hash of local files; "" means sha256. For the master's files the master chooses the hash.
	HashType string
	// Fetch copies the content of an http, https or ftp address and returns its entity tag, or "". A nil Fetch refuses
	// such addresses.
	Fetch func(ctx context.Context, r WebRequest, w io.Writer) (etag string, err error)
	Log   *slog.Logger
}

// A WebRequest describes what to fetch from a web server.
type WebRequest struct {
	URL string
	// AnyCertificate accepts any certificate of the server.
	AnyCertificate bool
	// ETag is the entity tag of the cached version, or "". If the server's version has the same tag, the error is
	// ErrNotModified.
	ETag string
}

// ErrNotModified means that the server has the same version as the cache.
var ErrNotModified = errors.New("not modified")

// A Client is a file client. It is safe for concurrent use.
type Client struct {
	o   Options
	log *slog.Logger
}

var _ modules.Files = (*Client)(nil)

// New returns a client. It does not access any file yet.
func New(o Options) *Client {
	if o.HashType == "" {
		o.HashType = "sha256"
	}
	c := &Client{o: o, log: o.Log}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Local implements modules.Files.
func (c *Client) Local(roots map[string][]string) modules.Files {
	o := c.o
	o.Request, o.Roots = nil, roots
	return New(o)
}

// A place is a parsed salt:// address.
type place struct{ path, env string }

// parsePlace splits an address of the file server. It returns false for another scheme.
func parsePlace(address, saltenv string) (place, bool) {
	rest, ok := strings.CutPrefix(address, "salt://")
	if !ok {
		return place{}, false
	}
	p := place{path: rest, env: saltenv}
	if before, _, found := strings.Cut(rest, "?env="); found {
		p.path = before // Salt ignores env, the former name of saltenv
	} else if before, env, found := strings.Cut(rest, "?saltenv="); found {
		p.path, p.env = before, env
	}
	if p.env == "" {
		p.env = "base"
	}
	return p, true
}

// localName returns the path of a file in the cache. It checks that the path cannot leave the environment's
// directory.
func (p place) localName() (string, error) {
	name := strings.TrimLeft(p.path, "|/")
	if !filepath.IsLocal(filepath.FromSlash(name)) || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("cannot cache file %q: not a path below the file roots", p.path)
	}
	if p.env != filepath.Base(p.env) || !filepath.IsLocal(p.env) || p.env == "." {
		return "", fmt.Errorf("cannot cache file %q: %q is not an environment", p.path, p.env)
	}
	return filepath.Join("files", p.env, filepath.FromSlash(name)), nil
}

// CacheRoot implements modules.Files.
func (c *Client) CacheRoot() string { return c.o.CacheDir }

// CachePath implements modules.Files (salt/fileclient.py: cache_dest).
func (c *Client) CachePath(address, saltenv string) string {
	if p, ok := parsePlace(address, saltenv); ok {
		name, err := p.localName()
		if err != nil {
			return ""
		}
		return filepath.Join(c.o.CacheDir, name)
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return address
	}
	name, err := externalName(u, saltenv)
	if err != nil {
		return ""
	}
	return filepath.Join(c.o.CacheDir, name)
}

// maxName is the longest name in bytes; a longer one is replaced by its hash.
const maxName = 255

// externalName returns the path in the cache of a web server's file. The name contains the whole path and query, or
// the hash of both if it is too long, so two addresses never share a file.
func externalName(u *url.URL, saltenv string) (string, error) {
	if saltenv == "" {
		saltenv = "base"
	}
	host := strings.ReplaceAll(u.Host, ":", "")
	name := strings.TrimLeft(u.Path, "/")
	// guard: CVE-2021-21996 TestT17_ExternalNamesDoNotCollide
	if u.RawQuery != "" {
		name += "-" + u.RawQuery
	}
	// guard: CVE-2021-21996 TestT17_ExternalNamesDoNotCollide
	if slices.Contains(strings.Split(name, "/"), "..") || name == "" || strings.ContainsRune(name, 0) {
		return "", modules.Errorf("cannot cache %s: invalid path", u.Redacted())
	}
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:])
	}
	for _, part := range []string{saltenv, host} {
		if part != filepath.Base(part) || !filepath.IsLocal(part) {
			return "", modules.Errorf("cannot cache %s: invalid host or environment", u.Redacted())
		}
	}
	return filepath.Join("extrn_files", saltenv, host, filepath.FromSlash(path.Clean(name))), nil
}

// Cache implements modules.Files.
func (c *Client) Cache(ctx context.Context, address, saltenv string) (string, error) {
	if p, ok := parsePlace(address, saltenv); ok {
		if c.o.Request == nil {
			return c.copyLocal(p)
		}
		return c.download(ctx, p)
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", modules.Errorf("cannot read address %q: %v", address, err)
	}
	switch u.Scheme {
	case "", "file":
		if !filepath.IsAbs(u.Path) {
			return "", modules.Errorf("Path '%s' is not absolute", u.Path)
		}
		if _, err := os.Stat(u.Path); err != nil {
			return "", nil
		}
		return u.Path, nil
	}
	return c.fetchWeb(ctx, u, saltenv, modules.WebFile{})
}

// CacheWeb implements modules.Files.
func (c *Client) CacheWeb(ctx context.Context, address, saltenv string, o modules.WebFile) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" || u.Scheme == "file" || u.Scheme == "salt" {
		return c.Cache(ctx, address, saltenv)
	}
	return c.fetchWeb(ctx, u, saltenv, o)
}

// fetchWeb copies a file of a web server into the cache.
func (c *Client) fetchWeb(ctx context.Context, u *url.URL, saltenv string, o modules.WebFile) (string, error) {
	if c.o.Fetch == nil {
		return "", modules.Errorf("cannot fetch %s: this program was built without web access (build tag fileclient.web)", u.Redacted())
	}
	name, err := externalName(u, saltenv)
	if err != nil {
		return "", err
	}
	w, err := c.createFile(name)
	if err != nil {
		return "", err
	}
	defer w.discard()
	r := WebRequest{URL: u.String(), AnyCertificate: o.AnyCertificate}
	if _, err := os.Stat(filepath.Join(c.o.CacheDir, name)); err == nil && o.ETag {
		r.ETag = c.readETag(name)
	}
	etag, err := c.o.Fetch(ctx, r, w.file)
	switch {
	case errors.Is(err, ErrNotModified) && r.ETag != "":
		return filepath.Join(c.o.CacheDir, name), nil
	case err != nil:
		return "", &modules.PythonError{Type: "MinionError", Msg: fmt.Sprintf("Error: %v reading %s", err, u.Path)}
	}
	full, err := w.commit()
	if err == nil && o.ETag {
		err = c.keepETag(name, etag)
	}
	return full, err
}

// etagPath returns the path of a cached file's entity tag. Tags are stored apart from the files, so that no address
// can name another file's tag.
func etagPath(name string) string { return filepath.Join("etags", name) }

// readETag returns the entity tag of a cached file, or "".
func (c *Client) readETag(name string) string {
	b, err := os.ReadFile(filepath.Join(c.o.CacheDir, etagPath(name)))
	if err != nil || len(b) > maxETag {
		return ""
	}
	return string(b)
}

// maxETag is the longest entity tag that is stored.
const maxETag = 4096

// keepETag stores an entity tag. If etag is empty it removes the old tag, which belongs to other content.
func (c *Client) keepETag(name, etag string) error {
	if etag == "" || len(etag) > maxETag {
		if err := os.Remove(filepath.Join(c.o.CacheDir, etagPath(name))); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	w, err := c.createFile(etagPath(name))
	if err != nil {
		return err
	}
	defer w.discard()
	if _, err := io.WriteString(w.file, etag); err != nil {
		return err
	}
	_, err = w.commit()
	return err
}

// Clear implements modules.Files.
func (c *Client) Clear() error {
	for _, dir := range []string{"files", "extrn_files", "localfiles", "etags"} {
		if err := os.RemoveAll(filepath.Join(c.o.CacheDir, dir)); err != nil {
			return fmt.Errorf("cannot clear the file cache: %w", err)
		}
	}
	return nil
}

// hashFile returns the hex digest of a file.
func hashFile(name, kind string) (string, error) {
	h := hashname.New(kind)
	if h == nil {
		return "", fmt.Errorf("cannot hash %q: unknown hash type %q", name, kind)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return hashname.Digest(h, f)
}
