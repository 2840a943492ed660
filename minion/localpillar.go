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

// localPillar reads the pillar of pillar_roots: a top file and plain YAML files. Errors of single files are in the pillar
// under _errors, as Salt has them.
func (l *link) localPillar(ctx context.Context) error {
	set := l.m.settings()
	c := pillarCompiler{l: l, ctx: ctx, out: map[string]any{}, seen: map[string]bool{}}
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
		c.out["_errors"] = c.errs
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
	out  map[string]any
	seen map[string]bool
	errs []any
}

func (c *pillarCompiler) fail(format string, args ...any) {
	c.errs = append(c.errs, fmt.Sprintf(format, args...))
}

// top applies the top file that an environment's roots have.
func (c *pillarCompiler) top(env string, roots map[string][]string) {
	doc, name, err := c.read(roots[env], "top")
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.fail("Rendering Primary Top file failed, render error:\n%v", err)
		}
		return
	}
	tops, ok := doc.(map[string]any)
	if !ok {
		if doc != nil {
			c.fail("Pillar top file %s is not a dictionary", name)
		}
		return
	}
	for _, section := range slices.Sorted(maps.Keys(tops)) {
		targets, ok := tops[section].(map[string]any)
		if !ok {
			continue
		}
		for _, expr := range slices.Sorted(maps.Keys(targets)) {
			for _, sls := range c.matched(expr, targets[expr]) {
				c.include(sls, section, roots)
			}
		}
	}
}

// matched are the pillar files for a target of the top file, none if it does not match.
func (c *pillarCompiler) matched(expr string, v any) []string {
	kind := "compound"
	var names []string
	list, _ := v.([]any)
	if s, ok := v.(string); ok {
		list = []any{s}
	}
	for _, x := range list {
		switch x := x.(type) {
		case string:
			names = append(names, x)
		case map[string]any:
			if m, ok := x["match"].(string); ok {
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

// include merges a pillar file and those that it includes.
func (c *pillarCompiler) include(sls, env string, roots map[string][]string) {
	key := env + "\x00" + sls
	if c.seen[key] {
		return
	}
	c.seen[key] = true
	doc, name, err := c.read(roots[env], sls)
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
	data, ok := doc.(map[string]any)
	if !ok {
		c.fail("SLS '%s' does not render to a dictionary (%s)", sls, name)
		return
	}
	list, _ := data["include"].([]any)
	for _, x := range list {
		if s, ok := x.(string); ok {
			c.include(relative(sls, s), env, roots)
		}
	}
	delete(data, "include")
	merge(c.out, data)
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

// read finds "a.b" as a/b.sls or a/b/init.sls in the first root that has it.
func (c *pillarCompiler) read(roots []string, sls string) (doc any, name string, err error) {
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
			if text := string(b); strings.Contains(text, "{%") || strings.Contains(text, "{{") {
				return nil, full, fmt.Errorf("%q has template code, which is not rendered here", full)
			}
			doc, err := yaml.Parse(b, full)
			return doc, full, err
		}
	}
	return nil, "", fmt.Errorf("%q: %w", sls, fs.ErrNotExist)
}

// merge is Salt's pillar_source_merging_strategy smart for plain data: maps are merged, everything else is replaced.
func merge(dst, src map[string]any) {
	for k, v := range src {
		if sub, ok := v.(map[string]any); ok {
			if have, ok := dst[k].(map[string]any); ok {
				merge(have, sub)
				continue
			}
		}
		dst[k] = v
	}
}
