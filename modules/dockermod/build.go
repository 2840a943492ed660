package dockermod

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/dockerargs"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func (d *client) build() (any, error) {
	repository, tag := d.Value("repository"), d.Value("tag")
	if pytext.Truth(tag) && !pytext.Truth(repository) {
		return nil, modules.Usagef("If tagging, both a repository and tag are required")
	}
	image := any(nil)
	if pytext.Truth(repository) || pytext.Truth(tag) {
		image = pytext.Str(repository) + ":" + pytext.Str(tag) // as in stock, also of one alone
	}
	if d.Value("fileobj") != nil {
		return nil, unable("build", "fileobj is not supported, only path is")
	}
	dir, ok := d.Value("path").(string)
	if !ok {
		return nil, unable("build", "Either path or fileobj needs to be provided.")
	}
	query := dict{"t": image, "q": false, "nocache": !d.Bool("cache"), "rm": d.Bool("rm"), "forcerm": false, "pull": false, "dockerfile": d.Value("dockerfile")}
	args := d.proxies()
	for _, p := range dockerargs.Pairs(d.Value("buildargs")) {
		args[pytext.Str(p.Key)] = p.Value
	}
	if len(args) > 0 {
		query["buildargs"] = jsonText(args)
	}
	r := request{query: query}
	if known := d.credentials(); len(known) > 0 {
		var err error
		if r.header, err = encoded("X-Registry-Config", known); err != nil {
			return nil, err
		}
	}
	begin := d.Now()
	var events []any
	var err error
	if remote(dir) {
		query["remote"] = dir
		events, err = d.events("build", r)
	} else {
		events, err = d.buildHere(dir, r)
	}
	if err != nil {
		return nil, err
	}
	ret := dict{"Time_Elapsed": d.elapsed(begin)}
	var errs []any
	for _, e := range events {
		status(ret, "build", e, &errs)
	}
	if ret["Id"] == nil {
		return nil, failed("Build failed for "+dir, errs)
	}
	m, err := d.inspectImage(ret["Id"])
	if err != nil {
		return nil, err
	}
	if ret["Image"], ok = m["RepoTags"].([]any); !ok || len(ret["Image"].([]any)) == 0 {
		ret["Image"] = []any{m["Id"]}
	}
	if d.Bool("api_response") {
		ret["API_Response"] = events
	}
	if d.Bool("rm") {
		delete(ret, "Intermediate_Containers")
	}
	return ret, nil
}

// remote reports whether the daemon itself fetches a path.
func remote(p string) bool {
	for _, prefix := range [...]string{"http://", "https://", "git://", "github.com/", "git@"} {
		if strings.HasPrefix(p, prefix) {
			return true
		}
	}
	return false
}

// buildHere sends a directory of this host to build it.
func (d *client) buildHere(dir string, r request) ([]any, error) {
	root := d.Path(dir)
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return nil, unable("build", "You must specify a directory to build in path")
	}
	file := d.Str("dockerfile")
	if path.IsAbs(file) {
		rel, err := filepath.Rel(dir, file)
		if err != nil {
			rel = ".."
		}
		file = rel
	}
	if file = path.Clean("./" + file); !filepath.IsLocal(file) {
		return nil, unable("build", fmt.Sprintf("the dockerfile %s is outside of %s, which is not supported", d.Str("dockerfile"), dir))
	}
	if file == "." {
		file = "Dockerfile"
	} else {
		r.query["dockerfile"] = file
	}
	ignored, err := ignorePatterns(root, file)
	if err != nil {
		return nil, unable("build", err.Error())
	}
	if r.header == nil {
		r.header = map[string]string{}
	}
	r.header["Content-Type"] = "application/tar"
	pr, pw := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := pack(pw, root, ignored)
		pw.CloseWithError(err)
		packed <- err
	}()
	r.body = pr
	events, err := d.events("build", r)
	pr.CloseWithError(io.ErrClosedPipe)
	if wrong := <-packed; wrong != nil && !errors.Is(wrong, io.ErrClosedPipe) {
		return nil, unable("build", wrong.Error())
	}
	return events, err
}

// pattern is a line of .dockerignore.
type pattern struct {
	text  string
	keeps bool // it begins with "!"
}

// ignorePatterns reads .dockerignore. The Dockerfile and .dockerignore itself are never left out.
func ignorePatterns(root, dockerfile string) ([]pattern, error) {
	b, err := readSmall(filepath.Join(root, ".dockerignore"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var list []pattern
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		text, keeps := strings.CutPrefix(line, "!")
		if text = strings.TrimPrefix(path.Clean("/"+text), "/"); text != "" {
			list = append(list, pattern{strings.ToLower(text), keeps})
		}
	}
	return append(list, pattern{strings.ToLower(dockerfile), true}, pattern{".dockerignore", true}), nil
}

// ignores reports whether a file is left out. The last pattern that matches the file, or a directory above it,
// decides.
func ignores(list []pattern, name string) bool {
	name = strings.ToLower(name)
	out := false
	for _, p := range list {
		fits := fitsPattern(p.text, name)
		if parts := strings.Split(path.Dir(name), "/"); !fits && parts[0] != "." {
			if n := strings.Count(p.text, "/") + 1; n <= len(parts) {
				fits = fitsPattern(p.text, strings.Join(parts[:n], "/"))
			}
		}
		if fits {
			out = !p.keeps
		}
	}
	return out
}

// fitsPattern matches a path as Docker does: ** stands for any directories, other signs for parts of one name.
func fitsPattern(p, name string) bool {
	for p != "" {
		switch {
		case strings.HasPrefix(p, "**"):
			rest := strings.TrimPrefix(p[2:], "/")
			if rest == "" || fitsPattern(rest, name) {
				return true
			}
			for i := range len(name) {
				if name[i] == '/' && fitsPattern(rest, name[i+1:]) {
					return true
				}
			}
			return false
		case strings.Contains(p, "**"):
			head, rest, _ := strings.Cut(p, "**")
			n := strings.Count(head, "/")
			parts := strings.SplitAfterN(name, "/", n+1)
			if len(parts) <= n {
				return false
			}
			front := strings.Join(parts[:n], "")
			if ok, _ := path.Match(strings.TrimSuffix(head, "/"), strings.TrimSuffix(front, "/")); !ok {
				return false
			}
			p, name = "**"+rest, parts[n]
		default:
			ok, _ := path.Match(p, name)
			return ok
		}
	}
	return name == ""
}

// pack writes the files below root to a tar archive, without those that are ignored.
func pack(w io.Writer, root string, ignored []pattern) error {
	err := filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		if err != nil || file == root {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(file, root), string(filepath.Separator)))
		if ignores(ignored, name) {
			if e.IsDir() && !keepsBelow(ignored, name) {
				return fs.SkipDir
			}
			return nil
		}
		return add(w, file, name, e)
	})
	if err == nil {
		_, err = w.Write(make([]byte, 2*tarBlock))
	}
	return err
}

// keepsBelow reports whether a pattern keeps a file in a directory that is otherwise left out.
func keepsBelow(list []pattern, dir string) bool {
	for _, p := range list {
		if p.keeps && strings.HasPrefix(p.text, strings.ToLower(dir)) {
			return true
		}
	}
	return false
}

// add writes a file to a tar archive.
func add(w io.Writer, file, name string, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	head := entry{name: name, mode: int64(info.Mode().Perm()), time: info.ModTime().Unix(), kind: '0'}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		head.size = info.Size()
		for i, bit := range [...]fs.FileMode{fs.ModeSticky, fs.ModeSetgid, fs.ModeSetuid} {
			if mode&bit != 0 {
				head.mode |= 0o1000 << i
			}
		}
	case mode.IsDir():
		head.kind, head.name = '5', name+"/"
	case mode&fs.ModeSymlink != 0:
		head.kind = '2'
		if head.link, err = os.Readlink(file); err != nil {
			return err
		}
	case mode&fs.ModeNamedPipe != 0:
		head.kind = '6'
	case mode&fs.ModeSocket != 0:
		return nil
	default:
		return fmt.Errorf("cannot send %s: it is a device", file)
	}
	if err := head.write(w); err != nil || head.size == 0 {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("Can not read file in context: %s", file)
	}
	defer f.Close()
	if _, err = io.CopyN(w, f, head.size); err == nil {
		_, err = w.Write(make([]byte, -head.size&(tarBlock-1)))
	}
	return err
}

const tarBlock = 512

// entry is the header of a file in a tar archive. Package archive/tar is larger than this whole function of the module.
type entry struct {
	name, link       string
	mode, size, time int64
	kind             byte
}

// write writes the header in GNU's format, with long names before it.
func (m entry) write(w io.Writer) error {
	for _, long := range [...]struct {
		text string
		kind byte
	}{{m.link, 'K'}, {m.name, 'L'}} {
		if len(long.text) < 100 {
			continue
		}
		if err := (entry{name: "././@LongLink", size: int64(len(long.text)) + 1, kind: long.kind}).write(w); err != nil {
			return err
		}
		text := make([]byte, (len(long.text)+tarBlock)&^(tarBlock-1))
		copy(text, long.text)
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	if m.size >= 1<<33 || m.time < 0 {
		return fmt.Errorf("cannot send %s: its size or time does not fit an archive", m.name)
	}
	var b [tarBlock]byte
	copy(b[:99], m.name)
	copy(b[157:256], m.link)
	for _, n := range [...]struct {
		at, width int
		value     int64
	}{{100, 7, m.mode}, {108, 7, 0}, {116, 7, 0}, {124, 11, m.size}, {136, 11, m.time}} {
		copy(b[n.at:], fmt.Sprintf("%0*o", n.width, n.value))
	}
	copy(b[148:], "        ")
	b[156] = m.kind
	copy(b[257:], "ustar  ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00", sum))
	_, err := w.Write(b[:])
	return err
}
