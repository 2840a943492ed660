//go:build unix

package archive

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/archivetype"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules"
)

// contents are the names in an archive; those of directories end with a slash.
type contents struct{ dirs, files, links []string }

// maxMembers bounds how many names are listed.
const maxMembers = 5 << 20

var errMembers = errors.New("the archive has too many members")

func (c *contents) all() []*[]string { return []*[]string{&c.dirs, &c.files, &c.links} }

func listArchive(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	name, path, err := c.cached()
	if err != nil {
		return nil, err
	}
	v, err := c.list(name, path)
	var exec *modules.ExecError
	if errors.As(err, &exec) {
		info := map[string]any{"archive location": path}
		if had, ok := exec.Info.(map[string]any); ok {
			maps.Copy(info, had)
			return nil, saltcmd.Problem(exec.Brief, info)
		}
		return nil, saltcmd.Problem(exec.Msg, info)
	}
	return v, err
}

func (c *call) list(name, path string) (any, error) {
	strip := int64(0)
	if c.Bool("strip_components") {
		n, err := c.Int("strip_components")
		if p, ok := err.(*modules.PythonError); ok && p.Type == "ValueError" {
			n = -1
		} else if err != nil {
			return nil, err
		}
		if n <= 0 {
			return nil, modules.Errorf("'strip_components' must be a positive integer")
		}
		strip = n
	}
	format := c.Str("archive_format")
	if format == "" {
		if format = archivetype.Guess(urlPath(name)); format == "" {
			return nil, modules.Errorf("Unable to guess archive format, please pass an 'archive_format' argument.")
		}
	}
	var found contents
	var err error
	switch format {
	case "tar":
		found, err = c.listTar(name, path)
	case "zip":
		found, err = c.listZip(name, path)
	case "rar":
		found, err = c.listRar(name)
	default:
		return nil, modules.Errorf("Unsupported archive format '%s'", format)
	}
	switch text, _ := modules.OSErrorText(err); {
	case c.ctx.Err() != nil:
		return nil, context.Cause(c.ctx)
	case text != "":
		return nil, modules.Errorf("Failed to list contents of %s: %s", name, text)
	case err != nil && !modules.IsExecError(err):
		return nil, modules.Errorf("Uncaught exception '%s' when listing contents of %s", err, name)
	case err != nil:
		return nil, err
	}
	c.clean(path)
	for _, l := range found.all() {
		if strip > 0 {
			for i, s := range *l {
				(*l)[i] = ""
				if parts := strings.SplitN(s, "/", int(min(strip, 1<<16))+1); int64(len(parts)) > strip {
					(*l)[i] = parts[strip]
				}
			}
			*l = slices.DeleteFunc(*l, func(s string) bool { return s == "" })
		}
		slices.Sort(*l)
	}
	if c.Bool("verbose") {
		return found.verbose(), nil
	}
	all := slices.Concat(found.dirs, found.files, found.links)
	slices.Sort(all)
	return nested.Anys(all), nil
}

// urlPath returns the path of a URL.
func urlPath(name string) string {
	if _, rest, ok := strings.Cut(name, "://"); ok {
		name = rest
		if _, path, ok := strings.Cut(rest, "/"); ok && path != "" {
			name = path
		}
	}
	name, _, _ = strings.Cut(name, "?")
	name, _, _ = strings.Cut(name, "#")
	return name
}

func (c *contents) verbose() map[string]any {
	depth := func(list []string, slashes int) []string {
		out := []string{}
		for _, s := range list {
			if strings.Count(s, "/") == slashes {
				out = append(out, s)
			}
		}
		return out
	}
	top := depth(c.dirs, 1)
	if prefix, _, ok := strings.Cut(commonPrefix(slices.Concat(c.dirs, c.files, c.links)), "/"); ok {
		if prefix += "/"; !slices.Contains(top, prefix) {
			top = append(top, prefix)
		}
	}
	return map[string]any{
		"dirs": nested.Anys(c.dirs), "files": nested.Anys(c.files), "links": nested.Anys(c.links), "top_level_dirs": nested.Anys(top),
		"top_level_files": nested.Anys(depth(c.files, 0)), "top_level_links": nested.Anys(depth(c.links, 0)),
	}
}

// errNoTar means that a file is not an archive that can be read without another program.
var errNoTar = errors.New("not a tar archive")

func (c *call) listTar(name, path string) (contents, error) {
	f, err := os.Open(c.Path(path))
	if err != nil {
		return contents{}, named(err, path)
	}
	defer f.Close()
	found, err := c.readTar(f)
	if !errors.Is(err, errNoTar) {
		return found, err
	}
	if err := c.tarIsThere(); err != nil {
		return contents{}, err
	}
	var command []string
	if options := c.Str("options"); options != "" {
		if command, err = shlex.Split(options); err != nil {
			return contents{}, err
		}
	} else if c.xz(path) {
		command = []string{"xz", "--decompress", "--stdout"}
	}
	if len(command) == 0 {
		return contents{}, cannotList(name)
	}
	return c.listStream(name, append(command, c.Path(path)))
}

func (c *call) tarIsThere() error {
	if c.Which("tar") == "" {
		return modules.Errorf("'tar' command not available")
	}
	return nil
}

func cannotList(name string) error {
	return modules.Errorf("Unable to list contents of %s. If this is an XZ-compressed tar archive, install XZ Utils to enable listing "+
		"its contents. If it is compressed using something other than XZ, it may be necessary to specify CLI options to decompress the "+
		"archive. See the documentation for details.", name)
}

// xz reports whether a file begins as one of xz or lzma.
func (c *call) xz(path string) bool {
	f, err := os.Open(c.Path(path))
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 6)
	if _, err := io.ReadFull(f, head); err != nil {
		return false
	}
	return string(head) == "\xfd7zXZ\x00" || bytes.HasPrefix(head, []byte("]\x00\x00"))
}

// listStream lists what a program prints.
func (c *call) listStream(name string, args []string) (contents, error) {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	in, out := io.Pipe()
	var stderr bytes.Buffer
	status := make(chan error, 1)
	go func() {
		res, err := c.Cmd(ctx, modules.Command{Args: args, Stdout: out, Stderr: &limited{&stderr, 1 << 16}})
		if err == nil && res.ExitCode != 0 {
			err = errors.New("exit status")
		}
		out.CloseWithError(io.EOF)
		status <- err
	}()
	found, err := c.readTar(in)
	_, _ = io.Copy(io.Discard, in) // what is behind the end of the archive
	in.CloseWithError(io.ErrClosedPipe)
	failed := <-status
	if errors.Is(err, errNoTar) {
		if failed != nil {
			return contents{}, saltcmd.Problem("Failed to decompress "+name, map[string]any{"error": stderr.String()})
		}
		return contents{}, cannotList(name)
	}
	return found, err
}

// limited keeps the first bytes that it is given.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	_, err := l.w.Write(p[:n])
	return len(p), err
}

// readTar lists an archive, compressed with gzip, bzip2 or not at all.
func (c *call) readTar(r io.Reader) (contents, error) {
	var found contents
	b := bufio.NewReader(r)
	head, _ := b.Peek(3)
	var archive io.Reader = b
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		z, err := gzip.NewReader(b)
		if err != nil {
			return found, errNoTar
		}
		archive = z
	case bytes.HasPrefix(head, []byte("BZh")):
		archive = bzip2.NewReader(b)
	}
	t := tar.NewReader(archive)
	for n := 0; ; n++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			if n == 0 && len(head) == 0 {
				return found, errNoTar
			}
			return found, nil
		}
		if err := c.ctx.Err(); err != nil {
			return found, err
		}
		if err != nil {
			if n == 0 {
				return found, errNoTar
			}
			return found, fmt.Errorf("unexpected end of data: %w", err)
		}
		if n > maxMembers {
			return found, errMembers
		}
		switch name := strings.TrimRight(h.Name, "/"); h.Typeflag {
		case tar.TypeSymlink:
			found.links = append(found.links, name)
		case tar.TypeDir:
			found.dirs = append(found.dirs, name+"/")
		default:
			found.files = append(found.files, name)
		}
	}
}

// The types of files in the modes of Unix.
const (
	typeMask = 0o170000
	typeLink = 0o120000
	typeDir  = 0o040000
)

func (c *call) listZip(name, path string) (contents, error) {
	var found contents
	z, err := zip.OpenReader(c.Path(path))
	if errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return found, modules.Errorf("%s is not a ZIP file", name)
	} else if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return found, named(err, path)
	}
	defer z.Close()
	dirs := map[string]bool{}
	var files []string
	for _, f := range z.File {
		switch f.ExternalAttrs >> 16 & typeMask {
		case typeLink:
			found.links = append(found.links, f.Name)
		case typeDir:
			dirs[f.Name] = true
		default:
			files = append(files, f.Name)
		}
	}
	implied := map[string]bool{}
	for _, f := range files {
		if i := strings.LastIndexByte(f, '/'); i >= 0 {
			implied[f[:i+1]], dirs[f[:i+1]] = true, true
		}
	}
	for _, f := range files {
		if implied[f] {
			implied[f] = false // Salt takes one of the name away
			continue
		}
		found.files = append(found.files, f)
	}
	for d := range dirs {
		found.dirs = append(found.dirs, d)
	}
	return found, nil
}

// listRar asks the program rar.
func (c *call) listRar(name string) (contents, error) {
	var found contents
	if c.Which("rar") == "" {
		return found, modules.Errorf("rar command not available, is it installed?")
	}
	v, err := c.ExecKw(c.ctx, "cmd.run", []any{[]any{"rar", "lt", name}}, map[string]any{"python_shell": false, "ignore_retcode": false})
	if err != nil {
		return found, err
	}
	out := pytext.Str(v)
	re, err := pyre.Compile(`Name:\s*([^\n]+)\s*Type:\s*([^\n]+)`, 0)
	if err != nil {
		return found, err
	}
	all, err := re.All(out, 0)
	if err != nil {
		return found, err
	}
	for _, m := range all {
		if path := out[m[2]:m[3]]; out[m[4]:m[5]] == "Directory" {
			found.dirs = append(found.dirs, path+"/")
		} else {
			found.files = append(found.files, path)
		}
	}
	if all == nil {
		return found, saltcmd.Problem(fmt.Sprintf("Failed to list %s, is it a rar file? If so, the installed version of rar may be too old to list data in "+
			"a parsable format. Installing the rarfile Python module may be an easier workaround if newer rar is not readily available.", name), map[string]any{"error": out})
	}
	return found, nil
}

func isEncrypted(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	name, path, err := c.cached()
	if err != nil {
		return nil, err
	}
	z, err := zip.OpenReader(c.Path(path))
	switch text, _ := modules.OSErrorText(err); {
	case text != "":
		return nil, saltcmd.Problem(osText(named(err, path)), map[string]any{"archive location": path})
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return nil, saltcmd.Problem(name+" is not a ZIP file", map[string]any{"archive location": path})
	}
	defer z.Close()
	encrypted := slices.ContainsFunc(z.File, func(f *zip.File) bool { return f.Flags&1 != 0 })
	c.clean(path)
	return encrypted, nil
}
