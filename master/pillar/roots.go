package pillar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/yaml"
	"github.com/brine-salt/brine/master/fileserver"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// Bounds of pillar files.
const (
	maxFileBytes = 16 << 20
	maxIncludes  = 64 // levels
	maxCached    = 4096
)

// RootsOptions of Roots.
type RootsOptions struct {
	// Roots is Salt's pillar_roots: environments and their directories.
	Roots map[string][]string
	// Top is the name of the top file; empty means top.sls.
	Top string
	// MergeLists is Salt's pillar_merge_lists.
	MergeLists bool
	// Nodegroups are those that the top file may name.
	Nodegroups map[string]any
	// Log gets errors of files, of which the minion only learns that there were some; nil is silent.
	Log *slog.Logger
}

// Roots makes pillars from YAML files and a top file in directories.
type Roots struct {
	opts  RootsOptions
	files *fileserver.Roots
	serve *fileserver.Server // for listings

	mu     sync.Mutex // guards parsed
	parsed map[fileKey]any
}

// fileKey names one state of a file.
type fileKey struct {
	path string
	size int64
	time time.Time
}

// NewRoots makes the pillar function of directories.
func NewRoots(o RootsOptions) (*Roots, error) {
	if o.Top == "" {
		o.Top = "top.sls"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	files := fileserver.NewRoots(fileserver.RootsOptions{Roots: o.Roots, FollowSymlinks: true})
	s, err := fileserver.New(fileserver.Options{Backends: []fileserver.Backend{files}, ListCache: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	return &Roots{opts: o, files: files, serve: s, parsed: make(map[fileKey]any)}, nil
}

// errNoFile says that an SLS is in no root.
var errNoFile = errors.New("no such file")

// render reads and parses one file. The value is shared: it must not be changed.
func (r *Roots) render(env, name string) (any, error) {
	f, err := r.files.Find(env, name)
	if errors.Is(err, fileserver.ErrNotFound) {
		return nil, errNoFile
	}
	if err != nil {
		return nil, err
	}
	key := fileKey{f.Path, f.Info.Size(), f.Info.ModTime()}
	r.mu.Lock()
	v, ok := r.parsed[key]
	r.mu.Unlock()
	if ok {
		return v, nil
	}
	h, err := r.files.Open(env, name)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	b, err := io.ReadAll(io.NewSectionReader(h, 0, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxFileBytes {
		return nil, fmt.Errorf("cannot read %q: more than %d bytes", f.Path, maxFileBytes)
	}
	if err := static(string(b), f.Path); err != nil {
		return nil, err
	}
	if v, err = yaml.ParseOrdered(b, f.Path); err != nil {
		return nil, err
	}
	r.mu.Lock()
	if len(r.parsed) >= maxCached {
		clear(r.parsed)
	}
	// A file that changes within one tick of the clock would be kept wrongly: only settled ones are.
	if time.Since(key.time) > time.Second {
		r.parsed[key] = v
	}
	r.mu.Unlock()
	return v, nil
}

// static refuses templates: text in their place would be taken for data.
func static(text, path string) error {
	for i, line := range strings.Split(text, "\n") {
		if i == 0 && strings.HasPrefix(line, "#!") {
			if kind := strings.TrimSpace(line[2:]); kind != "yaml" && kind != "jinja|yaml" {
				return fmt.Errorf("cannot render %q: renderer %q is not there", path, kind)
			}
		}
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		if strings.Contains(line, "{%") || strings.Contains(line, "{{") {
			return fmt.Errorf("cannot render %q: line %d has a template, and pillar files are static here", path, i+1)
		}
	}
	return nil
}

// compile is the making of one pillar.
type compile struct {
	roots   *Roots
	request Request
	subject target.Subject
	errors  []string
	missing map[string]map[string]bool // ignore_missing, by environment and SLS
}

func (c *compile) fail(format string, args ...any) {
	c.errors = append(c.errors, fmt.Sprintf(format, args...))
}

// Pillar is a Func.
func (r *Roots) Pillar(ctx context.Context, req Request) (map[string]any, error) {
	c := &compile{roots: r, request: req, missing: make(map[string]map[string]bool)}
	c.subject = target.Subject{ID: req.ID, Nodegroups: r.opts.Nodegroups,
		Grains: func() map[string]any { return req.Grains }, Pillar: func() map[string]any { return nil }}
	out := map[string]any{}
	for _, m := range c.matches(ctx) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out = c.environment(ctx, m, out)
	}
	if len(c.errors) > 0 {
		list := make([]any, len(c.errors))
		for i, e := range c.errors {
			r.opts.Log.Error("Pillar render error: "+e, "minion", req.ID)
			list[i] = e
		}
		out["_errors"] = list
	}
	return out, nil
}

// matched is an environment and the SLS names that its top file gives to the minion.
type matched struct {
	env string
	sls []string
}

// entry is one target of a top file.
type entry struct {
	tgt   string
	match string
	order int64
	sls   []string
}

// envs lists the environments to look at: base first. Salt has no order here.
func (c *compile) envs() []string {
	if env := c.request.Pillarenv; env != "" {
		if !c.roots.files.HasEnv(env) {
			return nil
		}
		return []string{env}
	}
	envs := slices.DeleteFunc(c.roots.files.Envs(), func(e string) bool { return e == "__env__" || e == "base" })
	if c.roots.files.HasEnv("base") {
		envs = append([]string{"base"}, envs...)
	}
	return envs
}

// matches reads the top files and returns what they give to the minion, by environment.
func (c *compile) matches(context.Context) []matched {
	tops := make(map[string][]entry)
	var order []string
	for _, env := range c.envs() {
		v, err := c.roots.render(env, c.roots.opts.Top)
		if errors.Is(err, errNoFile) {
			continue
		}
		if err != nil {
			c.roots.opts.Log.Error("cannot read pillar top file", "saltenv", env, "err", err)
			c.fail("Rendering Primary Top file failed, render error:\n%v", err)
			continue
		}
		top, ok := v.(yaml.Map)
		if !ok {
			if v != nil {
				c.fail("Error encountered while rendering pillar top file.")
			}
			continue
		}
		for _, item := range top {
			name := fmt.Sprint(item.Key)
			entries, ok := item.Value.(yaml.Map)
			if !ok {
				c.fail("Error encountered while rendering pillar top file.")
				continue
			}
			if _, seen := tops[name]; !seen {
				order = append(order, name)
			}
			for _, e := range entries {
				tops[name] = put(tops[name], c.entry(name, e))
			}
		}
	}
	var out []matched
	for _, env := range order {
		if c.request.Pillarenv != "" && env != c.request.Pillarenv {
			continue
		}
		entries := tops[env]
		slices.SortStableFunc(entries, func(a, b entry) int { return int(a.order - b.order) })
		if sls := c.chosen(entries); len(sls) > 0 {
			out = append(out, matched{env, sls})
		}
	}
	return out
}

// put adds an entry, in the place of one for the same target: a later top file wins, as in Salt.
func put(entries []entry, e entry) []entry {
	for i := range entries {
		if entries[i].tgt == e.tgt {
			entries[i] = e
			return entries
		}
	}
	return append(entries, e)
}

// entry reads one target of a top file.
func (c *compile) entry(env string, item yaml.Item) entry {
	e := entry{tgt: fmt.Sprint(item.Key), match: target.TypeCompound}
	list, _ := item.Value.([]any)
	ignore := false
	for _, x := range list {
		switch x := x.(type) {
		case string:
			e.sls = append(e.sls, x)
		case yaml.Map:
			if m, ok := x.Get("match"); ok {
				e.match = fmt.Sprint(m)
			}
			if o, ok := x.Get("order"); ok {
				e.order, _ = payload.Int(o)
			}
			if i, ok := x.Get("ignore_missing"); ok && i == true {
				ignore = true
			}
		}
	}
	if ignore {
		if c.missing[env] == nil {
			c.missing[env] = make(map[string]bool)
		}
		for _, s := range e.sls {
			c.missing[env][s] = true
		}
	}
	return e
}

// chosen collects the SLS of the targets that mean the minion.
func (c *compile) chosen(entries []entry) []string {
	var out []string
	for _, e := range entries {
		ok, err := target.Match(e.match, e.tgt, "", c.subject)
		if err != nil {
			c.roots.opts.Log.Warn("pillar target matches nobody", "target", e.tgt, "match", e.match, "err", err)
			continue
		}
		if !ok {
			continue
		}
		for _, s := range e.sls {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}

// environment merges the SLS of one environment over out.
func (c *compile) environment(ctx context.Context, m matched, out map[string]any) map[string]any {
	mods := make(map[string]map[string]any)
	for _, pattern := range m.sls {
		for _, sls := range c.expand(ctx, m.env, pattern) {
			if data := c.sls(ctx, m.env, sls, mods, 0); data != nil {
				out = merge(out, data, c.roots.opts.MergeLists)
			}
		}
	}
	return out
}

// available lists the SLS names of an environment.
func (c *compile) available(ctx context.Context, env string) []string {
	l, err := c.roots.serve.List(ctx, env)
	if err != nil {
		c.roots.opts.Log.Warn("cannot list pillar files", "saltenv", env, "err", err)
		return nil
	}
	var out []string
	for _, f := range l.Files {
		name, ok := strings.CutSuffix(f, ".sls")
		if !ok {
			continue
		}
		name = strings.TrimSuffix(name, "/init")
		out = append(out, strings.ReplaceAll(name, "/", "."))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// expand gives the SLS names that a pattern means, itself if none: then its absence is reported.
func (c *compile) expand(ctx context.Context, env, pattern string) []string {
	if !strings.ContainsAny(pattern, "*?[") {
		return []string{pattern}
	}
	var out []string
	for _, name := range c.available(ctx, env) {
		if target.Glob(pattern, name) {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		return []string{pattern}
	}
	return out
}

// sls makes the data of one SLS with what it includes, nil if there is none. mods holds those that were made already.
func (c *compile) sls(ctx context.Context, env, sls string, mods map[string]map[string]any, depth int) map[string]any {
	if done, ok := mods[sls]; ok {
		return done
	}
	if depth > maxIncludes {
		c.fail("Rendering SLS '%s' failed. Please see master log for details.", sls)
		return nil
	}
	mods[sls] = nil
	base := strings.ReplaceAll(sls, ".", "/")
	isInit := false
	v, err := c.renderName(env, base+".sls")
	if errors.Is(err, errNoFile) {
		isInit = true
		v, err = c.renderName(env, base+"/init.sls")
	}
	switch {
	case errors.Is(err, errNoFile):
		if !c.missing[env][sls] {
			c.fail("Specified SLS '%s' in environment '%s' is not available on the salt master", sls, env)
		}
		return nil
	case err != nil:
		c.roots.opts.Log.Error("cannot render pillar SLS", "sls", sls, "saltenv", env, "err", err)
		c.fail("Rendering SLS '%s' failed. Please see master log for details.", sls)
		return nil
	case v == nil:
		return nil
	}
	ordered, ok := v.(yaml.Map)
	if !ok {
		c.fail("SLS '%s' does not render to a dictionary", sls)
		return nil
	}
	data, ok := plain(ordered).(map[string]any)
	if !ok {
		c.fail("SLS '%s' does not render to a dictionary", sls)
		return nil
	}
	if include, has := ordered.Get("include"); has {
		delete(data, "include")
		data = c.included(ctx, env, sls, isInit, include, data, mods, depth)
	}
	mods[sls] = data
	return data
}

func (c *compile) renderName(env, name string) (any, error) {
	clean, _, ok := fileserver.Split("|"+name, env)
	if !ok {
		return nil, errNoFile
	}
	return c.roots.render(env, clean)
}

// included merges what an SLS includes under its own data.
func (c *compile) included(ctx context.Context, env, sls string, isInit bool, include any, data map[string]any, mods map[string]map[string]any, depth int) map[string]any {
	list, ok := include.([]any)
	if !ok {
		c.fail("Include Declaration in SLS '%s' is not formed as a list", sls)
		return data
	}
	out := map[string]any{}
	for _, x := range list {
		name, key := "", ""
		switch x := x.(type) {
		case string:
			name = x
		case yaml.Map:
			if len(x) == 0 {
				continue
			}
			name = fmt.Sprint(x[0].Key)
			if opts, ok := x[0].Value.(yaml.Map); ok {
				if k, ok := opts.Get("key"); ok {
					key = fmt.Sprint(k)
				}
			}
		default:
			c.fail("Include Declaration in SLS '%s' is not formed as a list", sls)
			continue
		}
		for _, n := range c.expand(ctx, env, relative(name, sls, isInit)) {
			inner := c.sls(ctx, env, n, mods, depth+1)
			if inner == nil {
				continue
			}
			if key != "" {
				parts := strings.Split(key, ":")
				for _, p := range slices.Backward(parts) {
					inner = map[string]any{p: inner}
				}
			}
			out = merge(out, inner, c.roots.opts.MergeLists)
		}
	}
	return merge(out, data, c.roots.opts.MergeLists)
}

// relative resolves an include that begins with a dot against the SLS that it stands in.
func relative(name, sls string, isInit bool) string {
	rest, ok := strings.CutPrefix(name, ".")
	if !ok {
		return strings.ReplaceAll(name, "/", ".")
	}
	parts := strings.Split(sls, ".")
	if !isInit {
		parts = parts[:len(parts)-1]
	}
	return strings.Join(append(parts, strings.ReplaceAll(rest, "/", ".")), ".")
}

// plain turns ordered maps into ordinary ones: map[string]any when all keys are text.
func plain(v any) any {
	switch v := v.(type) {
	case yaml.Map:
		out := make(map[string]any, len(v))
		for i, item := range v {
			k, ok := item.Key.(string)
			if !ok {
				return mixed(out, v[i:])
			}
			out[k] = plain(item.Value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = plain(x)
		}
		return out
	}
	return v
}

func mixed(done map[string]any, rest yaml.Map) any {
	out := make(map[any]any, len(done)+len(rest))
	for k, v := range maps.All(done) {
		out[k] = v
	}
	for _, item := range rest {
		out[item.Key] = plain(item.Value)
	}
	return out
}
