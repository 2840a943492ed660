package cfn

import (
	"net/url"
	"path"
	"strings"

	"github.com/brine-salt/brine/internal/python/shlex"
)

// archiveKind describes how to unpack a source.
type archiveKind struct {
	// format is the archive_format of archive.extracted, or "" for a single compressed file.
	format string
	// unpack is the program that decompresses a single file.
	unpack string
}

// kindOfSource determines the kind of a source from its name.
func kindOfSource(place string) (archiveKind, string, bool) {
	u, err := url.Parse(place)
	if err != nil {
		return archiveKind{}, "", false
	}
	base := path.Base(u.Path)
	lower := strings.ToLower(base)
	for _, k := range [...]struct{ suffix, format, unpack string }{
		{".tar.gz", "tar", ""}, {".tgz", "tar", ""}, {".tar.bz2", "tar", ""}, {".tbz2", "tar", ""}, {".tar.xz", "tar", ""},
		{".txz", "tar", ""}, {".tar", "tar", ""}, {".zip", "zip", ""}, {".gz", "", "gunzip"}, {".bz2", "", "bunzip2"},
	} {
		if strings.HasSuffix(lower, k.suffix) {
			return archiveKind{k.format, k.unpack}, base, true
		}
	}
	parts := strings.Split(strings.TrimSuffix(u.Path, "/"), "/")
	if strings.HasSuffix(u.Host, "github.com") && len(parts) > 1 {
		switch parts[len(parts)-2] {
		case "zipball":
			return archiveKind{"zip", ""}, base, true
		case "tarball":
			return archiveKind{"tar", ""}, base, true
		}
	}
	return archiveKind{}, "", false
}

func (c *compiler) sources(n node) {
	list, err := n.entries()
	if c.fail(err) {
		return
	}
	for _, e := range list {
		c.fail(c.source(e))
	}
}

func (c *compiler) source(e entry) error {
	if !path.IsAbs(e.key) {
		return e.wrong("must be an absolute path")
	}
	place, err := e.text()
	if err != nil {
		return err
	}
	kind, base, ok := kindOfSource(place)
	if !ok {
		return e.wrong("must be a tar, tar+gzip, tar+bzip2, tar+xz or zip archive or a .gz or .bz2 file, by its name %q", place)
	}
	if kind.format != "" {
		c.add(e.key, "archive", "extracted", arg{"name", e.key}, arg{"source", place}, arg{"archive_format", kind.format},
			arg{"skip_verify", true}, arg{"enforce_toplevel", false}, arg{"overwrite", true})
		return nil
	}
	packed := path.Join(e.key, base)
	c.parent(packed)
	c.add(e.key, "file", "managed", arg{"name", packed}, arg{"source", place}, arg{"skip_verify", true}, arg{"show_changes", false})
	c.add(e.key, "cmd", "run", arg{"name", shlex.Join([]string{kind.unpack, "-f", packed})}, arg{"shell", "/bin/sh"})
	return nil
}
