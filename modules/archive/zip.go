//go:build unix

package archive

import (
	"archive/zip"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func zipFiles(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	user, err := c.user()
	if err != nil {
		return nil, err
	}
	args, err := c.rendered("zip_file", "sources")
	if err != nil {
		return nil, err
	}
	sources, cwd := c.sources(args[1]), ""
	if !c.Bool("cwd") {
		for _, s := range sources {
			if !posixpath.IsAbs(s) {
				return nil, modules.Usagef("Relative paths require the 'cwd' parameter")
			}
		}
	} else {
		var ok bool
		if cwd, ok = c.Value("cwd").(string); !ok {
			return nil, &modules.TypeError{Msg: "expected str, bytes or os.PathLike object, not " + modules.TypeName(c.Value("cwd"))}
		}
		if !posixpath.IsAbs(cwd) {
			return nil, modules.Usagef("cwd must be absolute")
		}
	}
	p := &packing{call: c, cwd: cwd, names: []string{}}
	if err := p.collect(sources); err != nil {
		return nil, modules.Errorf("Exception encountered creating zipfile: %s", osText(err))
	}
	target := pytext.Str(args[0])
	if user != "" {
		err = p.writeAs(target)
	} else {
		err = p.write(target)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, modules.Errorf("Exception encountered creating zipfile: %s", osText(err))
	}
	return nested.Anys(p.names), nil
}

// packing is an archive to make. names are what the caller is told, members what goes in.
type packing struct {
	*call
	cwd     string
	names   []string
	members []member
}

// member is a file, by the path it has on the host and its name in the archive.
type member struct {
	path, name string
	dir        bool
}

func (p *packing) relative(path string) string {
	if p.cwd != "" && strings.HasPrefix(path, p.cwd) {
		return posixpath.Rel(path, p.cwd)
	}
	return posixpath.Rel(path, "/")
}

func (p *packing) add(path, name string, dir bool) {
	stored := strings.TrimLeft(posixpath.Norm(name), "/")
	if dir {
		name, stored = name+"/", stored+"/"
	}
	p.names = append(p.names, name)
	p.members = append(p.members, member{path, stored, dir})
}

func (p *packing) collect(sources []string) error {
	for _, s := range sources {
		if p.cwd != "" {
			s = posixpath.Join(p.cwd, s)
		}
		info, err := os.Stat(p.Path(s))
		if err != nil {
			continue
		}
		if !info.IsDir() {
			p.add(s, p.relative(s), false)
			continue
		}
		if err := p.walk(s); err != nil {
			return err
		}
	}
	return nil
}

// walk adds a directory and what is below it; links to directories are left out.
func (p *packing) walk(dir string) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	f, err := os.Open(p.Path(dir))
	if err != nil {
		return nil
	}
	entries, err := f.ReadDir(-1)
	f.Close()
	if err != nil {
		return nil
	}
	name := p.relative(dir)
	p.add(dir, name, true)
	var dirs []string
	for _, e := range entries {
		full := posixpath.Join(dir, e.Name())
		info, err := os.Stat(p.Path(full))
		switch {
		case e.IsDir():
			dirs = append(dirs, full)
		case err == nil && info.IsDir():
		default:
			p.add(full, posixpath.Join(name, e.Name()), false)
		}
	}
	for _, d := range dirs {
		if err := p.walk(d); err != nil {
			return err
		}
	}
	return nil
}

// write makes the archive; a failed one is removed.
func (p *packing) write(target string) (err error) {
	out, err := os.OpenFile(p.Path(target), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return named(err, target)
	}
	z := zip.NewWriter(out)
	defer func() {
		if err = errors.Join(err, z.Close(), out.Close()); err != nil {
			os.Remove(p.Path(target))
		}
	}()
	for _, m := range p.members {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		if err := p.store(z, m); err != nil {
			return named(err, m.path)
		}
	}
	return nil
}

func (p *packing) store(z *zip.Writer, m member) error {
	info, err := os.Stat(p.Path(m.path))
	if err != nil {
		return err
	}
	if info.ModTime().Year() < 1980 {
		return errors.New("ZIP does not support timestamps before 1980")
	}
	if !m.dir && !info.Mode().IsRegular() {
		return fmt.Errorf("%q is no regular file", m.path)
	}
	h, err := zip.FileInfoHeader(info)
	if err != nil {
		return err
	}
	h.Name = m.name
	if h.Method = zip.Deflate; m.dir {
		h.Method = zip.Store
	}
	w, err := z.CreateHeader(h)
	if err != nil || m.dir {
		return err
	}
	f, err := os.Open(p.Path(m.path))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// writeAs lets the program zip do the work, which alone can run as another user.
func (p *packing) writeAs(target string) error {
	if err := p.needs("zip"); err != nil {
		return err
	}
	cwd := p.cwd
	if cwd == "" {
		cwd = "/"
	}
	args := []any{"zip", "-q", target, "-@"}
	names := make([]string, len(p.members))
	for i, m := range p.members {
		names[i] = m.name
	}
	v, err := p.ExecKw(p.ctx, "cmd.run_all", []any{args}, map[string]any{
		"cwd": cwd, "runas": p.Value("runas"), "python_shell": false, "stdin": strings.Join(names, "\n") + "\n", "redirect_stderr": true,
	})
	if err != nil {
		return err
	}
	if res, _ := v.(map[string]any); res["retcode"] != any(int64(0)) {
		return errors.New(pytext.Str(res["stdout"]))
	}
	return nil
}

func unzip(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	user, err := c.user()
	if err != nil {
		return nil, err
	}
	args, err := c.rendered("zip_file", "dest")
	if err != nil {
		return nil, err
	}
	source, dest := pytext.Str(args[0]), pytext.Str(args[1])
	names, err := c.unpack(source, dest, user)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, modules.Errorf("Exception encountered unpacking zipfile: %s", osText(err))
	}
	return c.trimmed(names), nil
}

func (c *call) unpack(source, dest, user string) ([]string, error) {
	z, err := zip.OpenReader(c.Path(source))
	if errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return nil, errors.New("File is not a zip file") //nolint:staticcheck // Python's text
	} else if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, named(err, source)
	}
	defer z.Close()
	var excludes []string
	if c.Bool("excludes") {
		excludes = words(c.Value("excludes"))
	}
	names, members := []string{}, []*zip.File{}
	for _, f := range z.File {
		if !slices.Contains(excludes, f.Name) {
			names, members = append(names, f.Name), append(members, f)
		}
	}
	if user != "" {
		return names, c.unpackAs(source, dest, excludes)
	}
	if len(members) == 0 {
		return names, nil
	}
	if err := os.MkdirAll(c.Path(dest), 0o777); err != nil {
		return nil, named(err, dest)
	}
	// Nothing is written outside of the directory, neither by names nor through links.
	root, err := os.OpenRoot(c.Path(dest))
	if err != nil {
		return nil, named(err, dest)
	}
	defer root.Close()
	for _, f := range members {
		if err := c.ctx.Err(); err != nil {
			return nil, err
		}
		if err := c.extract(root, f); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// unpackAs lets the program unzip do the work, which alone can run as another user.
func (c *call) unpackAs(source, dest string, excludes []string) error {
	if err := c.needs("unzip"); err != nil {
		return err
	}
	args := []any{"unzip", "-q", "-o"}
	if c.Bool("password") {
		args = append(args, "-P", c.Str("password"))
	}
	args = append(args, source, "-d", dest)
	if len(excludes) > 0 {
		args = append(append(args, "-x"), nested.Anys(excludes)...)
	}
	v, err := c.ExecKw(c.ctx, "cmd.run_all", []any{args}, map[string]any{
		"runas": c.Value("runas"), "python_shell": false, "redirect_stderr": true, "output_loglevel": "quiet",
	})
	if err != nil {
		return err
	}
	if res, _ := v.(map[string]any); res["retcode"] != any(int64(0)) {
		return errors.New(pytext.Str(res["stdout"]))
	}
	return nil
}

// localName returns the name of a member without the parts that would lead out of the directory.
func localName(name string) string {
	var parts []string
	for _, p := range strings.Split(name, "/") {
		if p != "" && p != "." && p != ".." {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, "/")
}

func (c *call) extract(root *os.Root, f *zip.File) error {
	name := localName(f.Name)
	mode := f.ExternalAttrs >> 16
	switch {
	case name == "":
		return nil
	case mode&typeMask == typeLink:
		content, err := c.content(f)
		if err != nil {
			return err
		}
		target, err := io.ReadAll(io.LimitReader(content, 4096))
		if err != nil {
			return err
		}
		return root.Symlink(string(target), name)
	case strings.HasSuffix(f.Name, "/"):
		if err := root.MkdirAll(name, 0o777); err != nil {
			return err
		}
	default:
		if dir := posixpath.Dir(name); dir != "" {
			if err := root.MkdirAll(dir, 0o777); err != nil {
				return err
			}
		}
		if err := c.extractFile(root, f, name); err != nil {
			return err
		}
	}
	if !c.Bool("extract_perms") || mode == 0 {
		return nil // new files have the usual mode
	}
	return root.Chmod(name, os.FileMode(mode&0o777)|special(mode))
}

// special returns the set-user-ID, set-group-ID and sticky bits of a mode.
func special(mode uint32) os.FileMode {
	var m os.FileMode
	for _, b := range [...]struct {
		unix uint32
		mode os.FileMode
	}{{0o4000, os.ModeSetuid}, {0o2000, os.ModeSetgid}, {0o1000, os.ModeSticky}} {
		if mode&b.unix != 0 {
			m |= b.mode
		}
	}
	return m
}

func (c *call) extractFile(root *os.Root, f *zip.File, name string) error {
	content, err := c.content(f)
	if err != nil {
		return err
	}
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	sum := crc32.NewIEEE()
	n, err := io.Copy(io.MultiWriter(out, sum), ending{c.ctx, content})
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if uint64(n) != f.UncompressedSize64 || sum.Sum32() != f.CRC32 {
		return fmt.Errorf("Bad CRC-32 for file %s", pytext.Repr(f.Name)) //nolint:staticcheck // Python's text
	}
	return nil
}

// ending reads until a context ends.
type ending struct {
	ctx context.Context
	r   io.Reader
}

func (e ending) Read(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.r.Read(p)
}

// content returns the content of a member, decrypted if necessary.
func (c *call) content(f *zip.File) (io.Reader, error) {
	raw, err := f.OpenRaw()
	if err != nil {
		return nil, err
	}
	if f.Flags&1 != 0 {
		if !c.Bool("password") {
			return nil, fmt.Errorf("File %s is encrypted, password required for extraction", pytext.Repr(f.Name)) //nolint:staticcheck // Python's text
		}
		check := byte(f.CRC32 >> 24)
		if f.Flags&8 != 0 {
			check = byte(f.ModifiedTime >> 8)
		}
		if raw, err = decrypted(raw, c.Str("password"), check); err != nil {
			return nil, fmt.Errorf("%w for file %s", err, pytext.Repr(f.Name))
		}
	}
	switch f.Method {
	case zip.Store:
		return raw, nil
	case zip.Deflate:
		return flate.NewReader(raw), nil
	}
	return nil, errors.New("That compression method is not supported") //nolint:staticcheck // Python's text
}

// stream is the cipher of PKZIP, weak but what there is.
type stream struct {
	r    io.Reader
	keys [3]uint32
}

// decrypted takes the head off an encrypted member, whose last byte reports whether the password is right.
func decrypted(r io.Reader, password string, check byte) (io.Reader, error) {
	s := &stream{r: r, keys: [3]uint32{0x12345678, 0x23456789, 0x34567890}}
	for i := range len(password) {
		s.update(password[i])
	}
	head := make([]byte, 12)
	if _, err := io.ReadFull(s, head); err != nil {
		return nil, err
	}
	if head[11] != check {
		return nil, errors.New("Bad password") //nolint:staticcheck // Python's text
	}
	return s, nil
}

func (s *stream) update(b byte) {
	crc := func(c uint32, b byte) uint32 { return crc32.IEEETable[byte(c)^b] ^ c>>8 }
	s.keys[0] = crc(s.keys[0], b)
	s.keys[1] = (s.keys[1]+s.keys[0]&0xff)*134775813 + 1
	s.keys[2] = crc(s.keys[2], byte(s.keys[1]>>24))
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	for i := range p[:n] {
		k := s.keys[2] | 2
		p[i] ^= byte(k * (k ^ 1) >> 8)
		s.update(p[i])
	}
	return n, err
}
