//go:build unix

package file

import (
	"errors"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pycodec"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// diffing holds the options of a comparison of two files.
type diffing struct {
	names, changes, template bool
}

func getDiff(h *host) (any, error) {
	var paths []string
	var failed []any
	for _, f := range [...]struct{ name, hash string }{{"file1", "source_hash_file1"}, {"file2", "source_hash_file2"}} {
		v, err := h.ExecKw(h.ctx, "cp.cache_file", []any{h.Value(f.name), h.Value("saltenv")}, map[string]any{"source_hash": h.Value(f.hash)})
		var python *modules.PythonError
		switch {
		case errors.As(err, &python) && python.Type == "MinionError":
			failed = append(failed, python.Msg)
			continue
		case err != nil:
			return nil, err
		case v == any(false):
			failed = append(failed, "File "+h.Str(f.name)+" not found")
			continue
		}
		paths = append(paths, str(v))
	}
	if failed != nil {
		return nil, saltcmd.Problem("Failed to cache one or more files", failed)
	}
	diff, err := h.diffFiles(paths[0], paths[1], diffing{h.Bool("show_filenames"), h.Bool("show_changes"), h.Bool("template")})
	t := tolerate(h.Value)
	if err != nil || !t.on || diff != "" && !strings.HasPrefix(diff, "--- ") {
		return diff, err
	}
	return []any{t.counts(diff), diff}, nil
}

// diffFiles returns the difference between two files of this host, or "" if they are equal. Errors have Salt's texts.
func (h *host) diffFiles(a, b string, d diffing) (string, error) {
	var contents [2][]byte
	for i, path := range [...]string{a, b} {
		var err error
		if contents[i], err = h.read(path); isOS(err) {
			return "", modules.Errorf("Failed to read %s: %s", path, strerror(err))
		} else if err != nil {
			return "", err
		}
	}
	from, to := "", ""
	if d.names {
		from, to = a, b
	}
	return h.diffContents(contents[0], contents[1], from, to, d), nil
}

// diffContent returns the difference between a file and its new content.
func (h *host) diffContent(path string, content []byte, d diffing) (string, error) {
	have, err := h.read(path)
	if isOS(err) {
		return "", modules.Errorf("Failed to read %s: %s", path, strerror(err))
	} else if err != nil {
		return "", err
	}
	return h.diffContents(have, content, "", "", d), nil
}

func (h *host) diffContents(a, b []byte, from, to string, d diffing) string {
	switch {
	case string(a) == string(b):
		return ""
	case d.template && pytext.Truth(h.option("obfuscate_templates")):
		return "<Obfuscated Template>"
	case !d.changes:
		return "<show_changes=False>"
	}
	old, fresh := pycodec.Binary(a[:min(len(a), 512)]), pycodec.Binary(b[:min(len(b), 512)])
	switch {
	case old && fresh:
		return "Replace binary file"
	case old:
		return "Replace binary file with text file"
	case fresh:
		return "Replace text file with binary file"
	}
	return diffNamed(byteLines(string(a)), byteLines(string(b)), from, to)
}
