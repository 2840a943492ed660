package minion

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/yaml"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/target"
)

// localOnly makes a link that has no master: pillar from pillar_roots when it is asked for, files from file_roots.
func (l *link) localOnly(ctx context.Context) {
	l.pillar.init()
	l.files = sync.OnceValue(func() modules.Files {
		if l.m.o.Files == nil {
			return nil
		}
		return l.m.o.Files(l.m.settings().options, nil)
	})
	l.lazy = sync.OnceFunc(func() {
		if err := l.localPillar(ctx); err != nil {
			l.log.Error("Cannot read local pillar", "err", err)
		}
	})
}

// localPillar compiles the pillar of pillar_roots: a top file and pillar files, rendered as state files are. Errors of single
// files are in the pillar under _errors, as Salt has them.
func (l *link) localPillar(ctx context.Context) error {
	set := l.m.settings()
	c := pillarCompiler{l: l, ctx: ctx, out: &pyobj.Dict{}, seen: map[string]bool{}}
	env := l.m.env(ctx, l, nil)
	env.Pillar = func() map[string]any { return map[string]any{} } // there is none while it is made
	env.OrderedPillar = nil
	c.call = l.m.dispatch.registry().NewCall(env, "pillar.items", "", nil)
	roots := pillarRoots(set)
	only := ""
	if v, ok := pillarEnv(set).(string); ok {
		only = v
	}
	for _, env := range slices.Sorted(maps.Keys(roots)) {
		if only == "" || env == only {
			c.top(env, roots)
		}
	}
	if len(c.errs) > 0 {
		_ = c.out.Set("_errors", &pyobj.List{Items: c.errs})
	}
	l.pillar.put(c.out, nil)
	return nil
}

func pillarRoots(set *settings) map[string][]string {
	roots := map[string][]string{}
	for env, v := range set.dict("pillar_roots") {
		roots[env] = (options{"": v}).texts("")
	}
	if len(roots) == 0 {
		roots["base"] = []string{"/srv/pillar"}
	}
	return roots
}

type pillarCompiler struct {
	l    *link
	ctx  context.Context
	call *modules.Call
	out  *pyobj.Dict
	seen map[string]bool
	errs []any
}

func (c *pillarCompiler) fail(format string, args ...any) {
	c.errs = append(c.errs, fmt.Sprintf(format, args...))
}

// top applies the top file that an environment's roots have.
func (c *pillarCompiler) top(env string, roots map[string][]string) {
	doc, name, err := c.read(roots[env], "top", env, nil)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.fail("Rendering Primary Top file failed, render error:\n%v", err)
		}
		return
	}
	tops, ok := doc.(*pyobj.Dict)
	if !ok {
		if doc != nil {
			c.fail("Pillar top file %s is not a dictionary", name)
		}
		return
	}
	for section, v := range tops.All() {
		targets, ok := v.(*pyobj.Dict)
		if !ok {
			continue
		}
		for expr, names := range targets.All() {
			for _, sls := range c.matched(pyobj.Str(expr), names) {
				c.include(sls, pyobj.Str(section), roots, c.out, nil)
			}
		}
	}
}

// matched are the pillar files for a target of the top file, none if it does not match.
func (c *pillarCompiler) matched(expr string, v any) []string {
	kind := "compound"
	var names []string
	var list []any
	switch x := v.(type) {
	case *pyobj.List:
		list = x.Items
	case string:
		list = []any{x}
	}
	for _, x := range list {
		switch x := x.(type) {
		case string:
			names = append(names, x)
		case *pyobj.Dict:
			if m, ok := x.Value("match").(string); ok {
				kind = m
			}
		}
	}
	set := c.l.m.settings()
	ok, err := target.Match(kind, expr, "", target.Subject{ID: set.id, Nodegroups: set.dict("nodegroups"),
		Grains: func() map[string]any { return c.l.m.grains.get(c.ctx) }})
	if err != nil {
		c.fail("Pillar top file target %q: %v", expr, err)
	}
	if !ok {
		return nil
	}
	return names
}

// include merges a pillar file and those that it includes into a dict.
func (c *pillarCompiler) include(sls, env string, roots map[string][]string, into *pyobj.Dict, defaults map[string]any) {
	key := env + "\x00" + sls
	if c.seen[key] {
		return
	}
	c.seen[key] = true
	doc, name, err := c.read(roots[env], sls, env, defaults)
	if errors.Is(err, fs.ErrNotExist) {
		c.fail("Specified SLS '%s' in environment '%s' is not available on the salt master", sls, env)
		return
	}
	if err != nil {
		c.fail("Rendering SLS '%s' failed, render error:\n%v", sls, err)
		return
	}
	if doc == nil {
		return
	}
	data, ok := doc.(*pyobj.Dict)
	if !ok {
		c.fail("SLS '%s' does not render to a dictionary (%s)", sls, name)
		return
	}
	if v, ok := data.Delete("include"); ok {
		list, ok := v.(*pyobj.List)
		if !ok {
			c.fail("Include Declaration in SLS '%s' is not formed as a list", sls)
			list = &pyobj.List{}
		}
		for _, x := range list.Items {
			c.included(x, sls, env, roots, into)
		}
	}
	merge(into, data)
}

// included merges one entry of an include: a name, or a name with defaults for its template and a key to put it under.
func (c *pillarCompiler) included(x any, from, env string, roots map[string][]string, into *pyobj.Dict) {
	switch x := x.(type) {
	case string:
		c.include(relative(from, x), env, roots, into, nil)
	case *pyobj.Dict:
		for name, v := range x.All() {
			o, _ := v.(*pyobj.Dict)
			if o == nil {
				o = &pyobj.Dict{}
			}
			defaults := map[string]any{}
			if d, ok := o.Value("defaults").(*pyobj.Dict); ok {
				for k, v := range d.All() {
					defaults[pyobj.Str(k)] = v
				}
			}
			below := into
			if key, ok := o.Value("key").(string); ok && key != "" {
				for word := range strings.SplitSeq(key, ":") {
					next, ok := below.Value(word).(*pyobj.Dict)
					if !ok {
						next = &pyobj.Dict{}
						_ = below.Set(word, next)
					}
					below = next
				}
			}
			c.include(relative(from, pyobj.Str(name)), env, roots, below, defaults)
		}
	}
}

// relative resolves an include that begins with a dot against the file that has it.
func relative(from, to string) string {
	if !strings.HasPrefix(to, ".") {
		return to
	}
	dir := strings.Split(from, ".")
	for strings.HasPrefix(to, ".") {
		to = to[1:]
		if len(dir) > 0 {
			dir = dir[:len(dir)-1]
		}
	}
	return strings.Join(append(dir, to), ".")
}

// maxPillarFile bounds one file.
const maxPillarFile = 16 << 20

// read finds "a.b" as a/b.sls or a/b/init.sls in the first root that has it, and renders it.
func (c *pillarCompiler) read(roots []string, sls, env string, vars map[string]any) (doc any, name string, err error) {
	rel := strings.ReplaceAll(sls, ".", "/")
	if rel == "" || path.Clean("/"+rel) != "/"+rel {
		return nil, "", fmt.Errorf("%q is not the name of a pillar file", sls)
	}
	for _, root := range roots {
		for _, name := range []string{rel + ".sls", rel + "/init.sls"} {
			full := filepath.Join(root, filepath.FromSlash(name))
			info, err := os.Stat(full)
			if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
				continue
			}
			if err != nil {
				return nil, full, err
			}
			if info.Size() > maxPillarFile {
				return nil, full, fmt.Errorf("%q has %d bytes, more than %d", full, info.Size(), maxPillarFile)
			}
			b, err := os.ReadFile(full)
			if err != nil {
				return nil, full, err
			}
			doc, err := c.render(string(b), full, sls, env, vars)
			return doc, full, err
		}
	}
	return nil, "", fmt.Errorf("%q: %w", sls, fs.ErrNotExist)
}

func (c *pillarCompiler) render(text, file, sls, env string, vars map[string]any) (any, error) {
	if c.call.Templates == nil {
		if strings.Contains(text, "{%") || strings.Contains(text, "{{") {
			return nil, fmt.Errorf("%q has template code, and this program has no renderers", file)
		}
		return yaml.ParseObject([]byte(text), file, true)
	}
	renderer, _ := c.l.m.settings().options["renderer"].(string)
	return c.call.Template(c.ctx, modules.Template{Text: text, Pipe: renderer, Shebang: true, Path: file, SaltEnv: env, SLS: sls, IsSLS: true,
		PillarRoots: true, Vars: vars})
}

// merge is Salt's pillar_source_merging_strategy smart for data of YAML: dicts are merged, everything else is replaced.
func merge(dst, src *pyobj.Dict) {
	for k, v := range src.All() {
		if sub, ok := v.(*pyobj.Dict); ok {
			if have, ok := dst.Value(k).(*pyobj.Dict); ok {
				merge(have, sub)
				continue
			}
			v = pyobj.DeepCopy(sub)
		}
		_ = dst.Set(k, v)
	}
}
