package pages

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/master/restapi/internal/exchange"
)

// Server serves Files.
type Server struct {
	Files
	static *os.Root
}

// plainPaths never serve the App, because stock does not have them, so no App expects to be served there.
var plainPaths = []string{"/openapi.json", "/healthz", "/readyz", "/metrics"}

func Open(o Files) (*Server, error) {
	p := &Server{Files: o}
	p.AppPath, p.StaticPath = pagePath(o.AppPath, "/app"), pagePath(o.StaticPath, "/static")
	for _, file := range []string{o.App, o.Favicon} {
		if info, err := os.Stat(file); file != "" && (err != nil || !info.Mode().IsRegular()) {
			return nil, fmt.Errorf("cannot serve the page %q: %w", file,
				causeOr(err, "it is no file"))
		}
	}
	if o.Static != "" {
		var err error
		if p.static, err = os.OpenRoot(o.Static); err != nil {
			return nil, fmt.Errorf("cannot serve static pages: %w", err)
		}
	}
	return p, nil
}

// causeOr returns err, or an error with the text if err is nil.
func causeOr(err error, text string) error {
	if err != nil {
		return err
	}
	return errors.New(text)
}

// pagePath returns a configured path with one leading slash and no trailing one.
func pagePath(path, usual string) string {
	if path = strings.Trim(path, "/"); path == "" {
		return usual
	}
	return "/" + path
}

func (p *Server) Close() {
	if p.static != nil {
		_ = p.static.Close()
	}
}

// Serve answers a request for a page. It returns false if the request is for the interface.
func (p *Server) Serve(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	name, below := strings.CutPrefix(r.URL.Path, p.StaticPath+"/")
	switch {
	case p.static != nil && below:
		f, err := p.openStatic(name)
		p.sendFile(w, r, f, err)
	case p.Favicon != "" && r.URL.Path == "/favicon.ico":
		f, err := os.Open(p.Favicon)
		p.sendFile(w, r, f, err)
	case p.App != "" && p.isApp(r):
		w.Header().Set("X-Frame-Options", "SAMEORIGIN")
		w.Header().Set("Cache-Control", "no-cache")
		f, err := os.Open(p.App)
		p.sendFile(w, r, f, err)
	default:
		return false
	}
	return true
}

func (p *Server) isApp(r *http.Request) bool {
	if r.URL.Path == p.AppPath || strings.HasPrefix(r.URL.Path, p.AppPath+"/") {
		return true
	}
	return exchange.Accepts(r.Header.Get("Accept"), "text/html") &&
		!slices.Contains(plainPaths, r.URL.Path)
}

// openStatic opens a file of the static directory. It does not block on a pipe or device.
func (p *Server) openStatic(name string) (*os.File, error) {
	name = filepath.FromSlash(name)
	if !filepath.IsLocal(name) {
		return nil, os.ErrNotExist
	}
	info, err := p.static.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, os.ErrNotExist
	}
	return p.static.Open(name)
}

// sendFile answers with a file, or with an error if it is missing.
func (p *Server) sendFile(w http.ResponseWriter, r *http.Request, f *os.File, err error) {
	if err == nil {
		defer f.Close()
		info, serr := f.Stat()
		if serr == nil && info.Mode().IsRegular() {
			http.ServeContent(w, r, info.Name(), info.ModTime(), f)
			return
		}
	}
	exchange.Fail(w, r, exchange.NewError(http.StatusNotFound,
		fmt.Sprintf("The path '%s' was not found.", r.URL.Path)))
}
