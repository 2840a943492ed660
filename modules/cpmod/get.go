package cpmod

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Compatibility.
//
// cp.get_file differs: the file also stays in the minion's cache, so that a second request need not fetch it again.
// cp.get_dir differs: the files also stay in the minion's cache.
// cp.cache_dest differs: an address that would lead out of the cache gives "Invalid path".
// cp.list_minion differs: without a directory localfiles stock lists the whole cache directory, ours only cached files.
// cp.get_url differs: the schemes are salt, http, https and file.
// cp.get_url differs: a file from a web server also stays in the minion's cache.

func getFile(ctx context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	source, dest, err := f.rendered(ctx)
	if err != nil {
		return nil, err
	}
	source = f.named(source)
	if !strings.HasPrefix(source, "salt://") {
		return f.sameAs(ctx, source, dest)
	}
	v, err := f.get(ctx, source, dest, c.Bool("makedirs"))
	if v == any(missing) && err == nil {
		if sum, herr := f.Hash(ctx, source, f.env); herr == nil && sum == nil {
			return "", nil
		}
	}
	return v, err
}

// sameAs handles a source that is not a URL: stock compares it with the file at the destination, and fails if they
// differ.
func (f *files) sameAs(ctx context.Context, source, dest string) (any, error) {
	if isDir(f.c.Path(dest)) || strings.HasSuffix(dest, "/") {
		dest = join(dest, path.Base(source))
	}
	a, err := f.Hash(ctx, f.c.Path(source), f.env)
	if err != nil {
		return nil, err
	}
	if b, err := f.Hash(ctx, f.c.Path(dest), f.env); err == nil && a != nil && b != nil && a["hsum"] == b["hsum"] {
		return dest, nil
	}
	return nil, unsupported(source)
}

// get puts a file of the file server at a destination: the path where it is, or false.
func (f *files) get(ctx context.Context, source, dest string, makedirs bool) (any, error) {
	if dest == "" {
		return f.cache(ctx, source, "", modules.WebFile{})
	}
	if isDir(f.c.Path(dest)) || strings.HasSuffix(dest, "/") || strings.HasSuffix(dest, `\`) {
		name, _ := splitEnv(source)
		dest = join(dest, path.Base(name))
	}
	cached, err := f.Cache(ctx, source, f.env)
	if err != nil || cached == "" {
		return missing, err
	}
	target := f.c.Path(dest)
	if same(cached, target) {
		return dest, nil
	}
	if ok, err := f.parent(dest, makedirs); err != nil || !ok {
		return missing, err
	}
	if err := copyFile(cached, target); err != nil {
		return nil, modules.OSError(err)
	}
	return dest, nil
}

// parent makes sure of the directory of a destination. false means that it is not there and must not be made.
func (f *files) parent(dest string, makedirs bool) (bool, error) {
	dir := dirname(dest)
	if dir != "" && isDir(f.c.Path(dir)) {
		return true, nil
	}
	if !makedirs {
		return false, nil
	}
	if dir == "" {
		return false, &modules.PythonError{Type: "FileNotFoundError", Msg: "[Errno 2] No such file or directory: ''"}
	}
	if err := makeDirs(f.c.Path(dir)); err != nil && !errors.Is(err, fs.ErrExist) {
		return false, modules.OSError(err)
	}
	return true, nil
}

func getDir(ctx context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	source, dest, err := f.rendered(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := saltPath(source)
	if err != nil {
		return nil, err
	}
	dir = strings.TrimRight(dir, "/")
	prefix := ""
	if i := strings.LastIndexByte(dir, '/'); i >= 0 {
		prefix = dir[:i]
	}
	names, err := f.List(ctx, f.env, dir)
	if err != nil {
		return nil, err
	}
	list := []any{}
	for _, name := range names {
		if !strings.HasPrefix(name, dir+"/") {
			continue
		}
		rel := strings.TrimLeft(name[len(prefix):], "/")
		if !filepath.IsLocal(filepath.FromSlash(rel)) {
			return nil, modules.Errorf("cannot copy %q: not below the file roots", name)
		}
		v, err := f.get(ctx, address(name), dest+"/"+rel, true)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	v, err := f.emptyDirs(ctx, dir+"/", f.c.Path(dest), prefix, list)
	if err != nil {
		return nil, err
	}
	list = v.([]any)
	for i := range list {
		if s, ok := list[i].(string); ok && f.c.Root != "" {
			list[i] = strings.TrimPrefix(s, f.c.Root)
		}
	}
	sorting.Stable(list, func(a, b any) int { return strings.Compare(pytext.Str(a), pytext.Str(b)) })
	return list, nil
}

func getURL(ctx context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	dest, toFile := c.Value("dest").(string)
	v, err := f.url(ctx, c.Str("path"), dest, toFile)
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(v) {
		c.Logger().Error("Cannot fetch file", "file", redact(c.Str("path")), "saltenv", f.env)
	}
	return v, nil
}

// url implements stock's Client.get_url. Without toFile it returns the content of the file.
func (f *files) url(ctx context.Context, url, dest string, toFile bool) (any, error) {
	a := parse(url)
	if toFile && dest != "" && (isDir(f.c.Path(dest)) || strings.HasSuffix(dest, "/") || strings.HasSuffix(dest, `\`)) {
		name := "index.html"
		if a.query != "" || len(a.path) > 1 && !strings.HasSuffix(a.path, "/") {
			name = url[strings.LastIndexByte(url, '/')+1:]
		}
		dest = join(dest, name)
	}
	if a.local() {
		name, err := a.localPath()
		if err != nil || toFile {
			return name, err
		}
		return f.content(f.c.Path(name))
	}
	if !toFile || dest == "" {
		v, err := f.cache(ctx, url, f.c.Str("source_hash"), modules.WebFile{})
		name, _ := v.(string)
		if err != nil || toFile || name == "" {
			return v, err
		}
		return f.content(name)
	}
	if a.scheme == "salt" {
		return f.get(ctx, url, dest, f.c.Bool("makedirs"))
	}
	if ok, err := f.parent(dest, f.c.Bool("makedirs")); err != nil || !ok {
		return "", err
	}
	name, err := f.Cache(ctx, url, f.env)
	if err != nil {
		return nil, err
	}
	if err := copyFile(name, f.c.Path(dest)); err != nil {
		return nil, modules.OSError(err)
	}
	return dest, nil
}

// maxText bounds the files whose content is an answer.
const maxText = 256 << 20

// content returns a file's content as text.
func (f *files) content(name string) (any, error) {
	if info, err := os.Stat(name); err == nil && info.Size() > maxText {
		return nil, modules.Errorf("cannot return the content of %s: it has more than %d bytes", name, maxText)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, modules.OSError(err)
	}
	return decode(b)
}

func getFileStr(ctx context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	v, err := f.cacheOnce(ctx, c.Str("path"), "", modules.WebFile{})
	name, ok := v.(string)
	if err != nil || !ok {
		return v, err
	}
	if parse(c.Str("path")).local() {
		name = c.Path(name)
	}
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return false, nil
	}
	return f.content(name)
}

func getTemplate(ctx context.Context, c *modules.Call) (any, error) {
	f, err := client(c)
	if err != nil {
		return nil, err
	}
	url, dest, engine := c.Str("path"), c.Str("dest"), c.Str("template")
	v, err := f.cache(ctx, url, "", modules.WebFile{})
	name, _ := v.(string)
	if err != nil {
		return nil, err
	}
	if a := parse(url); a.local() {
		name = c.Path(name)
	}
	if _, err := os.Stat(name); err != nil || name == "" {
		return "", nil
	}
	if !knownEngine(engine) {
		c.Logger().Error("Unknown template engine", "engine", engine)
		return "", nil
	}
	text, err := f.content(name)
	if err != nil {
		return nil, err
	}
	out, err := f.render(ctx, engine, text.(string), c.Keywords)
	if err != nil {
		var broken *modules.RenderError // Salt raises it too; other errors it only logs
		if errors.Is(err, modules.ErrEngine) || errors.As(err, &broken) || ctx.Err() != nil {
			return nil, err
		}
		c.Logger().Error("Cannot render template", "file", redact(url), "err", err)
		return "", nil
	}
	makedirs := c.Bool("makedirs")
	target := c.Path(dest)
	if dest == "" {
		if dest = f.templatePath(url); dest == "" {
			return nil, modules.Errorf("cannot render %s: there is no place for it in the cache", redact(url))
		}
		target, makedirs = dest, true
		if err := makeDirs(filepath.Dir(dest)); err != nil {
			return nil, modules.OSError(err)
		}
	} else if ok, err := f.parent(dest, makedirs); err != nil || !ok {
		return "", err
	}
	if err := writeFile(target, []byte(out), 0o600); err != nil {
		return nil, modules.OSError(err)
	}
	return dest, nil
}

// templatePath returns the destination of a rendered template for which the caller gave none (Client._extrn_path).
func (f *files) templatePath(url string) string {
	a := parse(url)
	rel := filepath.Join(f.env, a.host, filepath.FromSlash(a.path))
	if a.query != "" {
		rel += "-" + a.query
	}
	if !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.Join(f.CacheRoot(), "extrn_files", rel)
}

// knownEngine reports whether stock has a template engine of that name.
func knownEngine(name string) bool {
	switch name {
	case "jinja", "mako", "py", "wempy", "genshi", "cheetah":
		return true
	}
	return false
}

// render expands a text.
func (f *files) render(ctx context.Context, engine, text string, vars map[string]any) (string, error) {
	all := map[string]any{"saltenv": f.env}
	for k, v := range vars {
		if k != "env" && k != "context" {
			all[k] = v
		}
	}
	if context, ok := vars["context"].(map[string]any); ok { // what the template shall see comes before everything else
		maps.Copy(all, context)
	}
	return f.c.Render(ctx, engine, text, all)
}

// rendered returns the arguments path and dest, expanded if the call names a template engine.
func (f *files) rendered(ctx context.Context) (source, dest string, err error) {
	source, dest = f.c.Str("path"), f.c.Str("dest")
	engine := f.c.Str("template")
	if engine == "" {
		return source, dest, nil
	}
	if !knownEngine(engine) {
		return "", "", modules.Errorf("Attempted to render file paths with unavailable engine %s", engine)
	}
	vars := map[string]any{}
	override, hasPillar := f.c.InOrder("pillar")
	penv, hasEnv := f.c.Keywords["pillarenv"]
	if hasPillar || hasEnv {
		if f.c.FreshPillar == nil {
			return "", "", modules.Errorf("cannot compile a pillar: this program has no master")
		}
		over, _ := override.(*pyobj.Dict)
		env := ""
		if penv != nil {
			env = pytext.Str(penv)
		}
		pillar, err := f.c.FreshPillar(ctx, "", env, over)
		if err != nil {
			return "", "", err
		}
		pillar.Update(over)
		vars["pillar"] = pillar
	}
	for _, text := range [...]*string{&source, &dest} {
		if *text, err = f.render(ctx, engine, *text, vars); err != nil {
			return "", "", modules.Errorf("Failed to render file path with error: %v", err)
		}
	}
	return source, dest, nil
}

func lastOctal(mode int64) string {
	text := fmt.Sprintf("0o%o", mode)
	return text[max(0, len(text)-4):]
}
