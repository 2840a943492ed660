package aptpkg

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/aptsource"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/modules"
)

// source is a line of a one-line-style file of repositories, or a repository of the newer form.
type source struct {
	aptsource.Line
	stanza *stanza // that it comes from, nil for a line
}

// parseSource reads a line.
func parseSource(line, file string) (*source, error) {
	l, err := aptsource.Parse(line, file)
	if err != nil {
		return nil, err
	}
	return &source{Line: *l}, nil
}

// plain returns the repository in the form of list_repos.
func (s *source) plain() map[string]any {
	m := map[string]any{
		"file": s.File, "comps": nested.Anys(s.Comps), "disabled": s.Disabled, "dist": s.Dist, "type": s.Kind, "uri": s.URI,
		"line": strings.TrimSpace(s.Text), "architectures": nested.Anys(s.Architectures), "signedby": s.SignedBy,
	}
	if s.stanza != nil {
		m["enabled"] = !s.Disabled
		for name, key := range map[string]string{"suites": "Suites", "types": "Types", "uris": "URIs"} {
			m[name] = nested.Anys(s.stanza.words(key))
		}
	}
	return m
}

// sources are the lines of all files.
type sources struct {
	c     *modules.Call
	list  []*source
	files []string // those that were read
	// stanzas are those of the files in the newer form.
	stanzas []*stanza
}

func readSources(c *modules.Call) (*sources, error) {
	all := &sources{c: c}
	paths := []string{aptsource.MainFile}
	found, err := filepath.Glob(c.Path(aptsource.MainFile+".d") + "/*.list")
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		paths = append(paths, aptsource.MainFile+".d/"+filepath.Base(f))
	}
	for _, path := range paths {
		info, err := os.Stat(c.Path(path))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if info.Size() > 16<<20 {
			return nil, modules.Errorf("cannot read %s: it is larger than 16 MiB", path)
		}
		b, err := os.ReadFile(c.Path(path))
		if err != nil {
			return nil, modules.OSError(err)
		}
		all.files = append(all.files, path)
		for line := range strings.Lines(string(b)) {
			s, err := parseSource(line, path)
			if err != nil {
				return nil, err
			}
			all.list = append(all.list, s)
		}
	}
	found, err = filepath.Glob(c.Path(aptsource.MainFile+".d") + "/*.sources")
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		if err := all.readStanzas(aptsource.MainFile + ".d/" + filepath.Base(f)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// save writes all files of the older form, and those of the newer form in which something changed.
func (a *sources) save() error {
	text := map[string]*strings.Builder{}
	order := slices.Clone(a.files)
	for _, f := range a.files {
		text[f] = &strings.Builder{}
	}
	for _, s := range a.list {
		if text[s.File] == nil {
			text[s.File] = &strings.Builder{}
			order = append(order, s.File)
		}
		text[s.File].WriteString(s.String())
	}
	for _, f := range order {
		if err := a.write(f, text[f].String()); err != nil {
			return err
		}
	}
	var done []string
	for _, s := range a.stanzas {
		if slices.Contains(done, s.File) {
			continue
		}
		done = append(done, s.File)
		if text, changed := a.stanzaFile(s.File); changed {
			if err := a.write(s.File, text); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *sources) write(path, text string) error {
	mode := os.FileMode(0o644)
	if info, err := os.Stat(a.c.Path(path)); err == nil {
		mode = info.Mode().Perm()
	}
	err := atomicfile.WriteFile(a.c.Path(path), []byte(text), mode)
	if errors.Is(err, fs.ErrNotExist) {
		err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return modules.OSError(err)
	}
	return nil
}
