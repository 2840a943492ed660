package pillar

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/target"
)

// Options are the options of a [Compiler].
type Options struct {
	// Opts is the configuration, with Salt's names: pillar_roots, state_top, renderer, ext_pillar,
	// pillar_source_merging_strategy, pillar_merge_lists, pillar_includes_override_sls, pillar_safe_render_error,
	// pillarenv, pillarenv_from_saltenv, env_order, ext_pillar_first, exclude_ext_pillar, pillar_opts, nodegroups,
	// decrypt_pillar and its companions, and those of the templates. Templates see all of it.
	Opts map[string]any
	// Roots are the directories of each environment. If set, the option pillar_roots is ignored.
	Roots map[string][]string
	// Registry has the functions that templates may call; nil is the program's default registry.
	Registry *modules.Registry
	// Env is the environment of these functions. Its ID, Opts, Grains and Pillar are replaced by those of the
	// request.
	Env modules.Env
	// Ext holds external pillars by name, besides cmd_json, cmd_yaml, http_json and http_yaml.
	Ext map[string]ExtFunc
	// Version is saltversion in pillar_opts.
	Version string
	// Log receives the errors of files. The minion learns only that there were some. If Log is nil, the errors are
	// not logged.
	Log *slog.Logger
}

// Request is a request for the pillar of a minion.
type Request struct {
	// ID is the minion's id.
	ID string
	// Grains are those of the minion.
	Grains map[string]any
	// GrainsOrder holds the order of the keys in the grains, by grain (pyobj.Order); nil if it is not known.
	GrainsOrder *pyobj.Dict
	// Saltenv and Pillarenv choose environments; "" means not chosen.
	Saltenv, Pillarenv string
	// Override is the pillar given with a command (pillar={...}).
	Override *pyobj.Dict
	// Extra is extra_minion_data, for external pillars.
	Extra map[string]any
}

// Compiler compiles pillars. It keeps nothing between two compilations and is safe for concurrent use.
type Compiler struct{ o Options }

// New returns a compiler. It does not read files yet.
func New(o Options) *Compiler {
	if o.Registry == nil {
		o.Registry = modules.Default()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Compiler{o}
}

// compilation is the compilation of one pillar.
type compilation struct {
	*Compiler
	ctx context.Context
	req Request
	// the configuration, with the values that the request chooses
	opts    map[string]any
	roots   map[string][]string
	call    *modules.Call
	current *pyobj.Dict // the pillar that functions and templates see during the compilation
	// by environment: SLS names with ignore_missing, and those that exist
	ignored map[string][]string
	avail   map[string][]string
	errs    []string
}

// Compile returns the pillar of a minion. It lists the errors of single files in the pillar, under _errors. It
// returns an error in the cases in which Salt returns no pillar at all, or if ctx ends.
func (c *Compiler) Compile(ctx context.Context, r Request) (*pyobj.Dict, error) {
	x := &compilation{Compiler: c, ctx: ctx, req: r, current: pyobj.NewDict(), ignored: map[string][]string{}, avail: map[string][]string{}}
	if x.req.Override == nil {
		x.req.Override = pyobj.NewDict()
	}
	x.prepare()
	top, topErrs, err := x.mergeTops()
	if err != nil {
		return nil, err
	}
	out, err := x.mergeSources(top)
	if err != nil {
		return nil, err
	}
	errs := append(x.errs, topErrs...)
	if pytext.Truth(x.opts["pillar_opts"]) {
		// pillar_opts shows the master's configuration to the minion, without its own grains.
		shown := maps.Clone(x.opts)
		delete(shown, "grains")
		shown["saltversion"] = c.o.Version
		_ = out.Set("master", pyobj.FromMap(shown))
	}
	if len(errs) > 0 {
		list := pyobj.NewList()
		for _, e := range errs {
			c.o.Log.Error("Pillar render error: "+e, "minion", r.ID)
			list.Items = append(list.Items, e)
		}
		_ = out.Set("_errors", list)
	}
	if x.req.Override.Len() > 0 {
		out = x.mergeOver(out, x.req.Override)
	}
	return out, x.decryptKeys(out)
}

// Top returns the merged top files for a minion: environments, targets, and the list of each target. The second
// result lists the errors in them.
func (c *Compiler) Top(ctx context.Context, r Request) (*pyobj.Dict, []string, error) {
	x := &compilation{Compiler: c, ctx: ctx, req: r, current: pyobj.NewDict(), ignored: map[string][]string{}, avail: map[string][]string{}}
	if x.req.Override == nil {
		x.req.Override = pyobj.NewDict()
	}
	x.prepare()
	top, errs, err := x.mergeTops()
	if err != nil {
		return nil, nil, err
	}
	out := pyobj.NewDict()
	for _, env := range top.envs {
		targets := pyobj.NewDict()
		for _, e := range top.entries[env] {
			list := pyobj.NewList()
			list.Items = append(list.Items, e.match...)
			for _, sls := range e.sls {
				list.Items = append(list.Items, sls)
			}
			if err := targets.Set(e.tgt, list); err != nil {
				return nil, nil, err
			}
		}
		if err := out.Set(env, targets); err != nil {
			return nil, nil, err
		}
	}
	return out, errs, nil
}

// mergeSources merges the pillar files and the external pillars, in the order that ext_pillar_first decides.
func (c *compilation) mergeSources(top *tops) (*pyobj.Dict, error) {
	if pytext.Truth(c.opts["ext_pillar_first"]) {
		ext, err := c.addExternal(c.req.Override)
		if err != nil {
			return nil, err
		}
		c.showPillar(ext)
		matches, err := c.topMatches(top)
		if err != nil {
			return nil, err
		}
		files, err := c.mergeFiles(matches)
		if err != nil {
			return nil, err
		}
		return c.mergeOver(ext, files), nil
	}
	matches, err := c.topMatches(top)
	if err != nil {
		return nil, err
	}
	files, err := c.mergeFiles(matches)
	if err != nil {
		return nil, err
	}
	return c.addExternal(files)
}

// prepare sets the options of this pillar and the call on whose behalf templates are rendered (Pillar.__gen_opts).
func (c *compilation) prepare() {
	opts := maps.Clone(c.o.Opts)
	if opts == nil {
		opts = map[string]any{}
	}
	grains := c.req.Grains
	if grains == nil {
		grains = map[string]any{}
	}
	choose := func(name, given string) {
		if given != "" {
			opts[name] = given
		} else if _, ok := opts[name]; !ok {
			opts[name] = nil
		}
	}
	choose("saltenv", c.req.Saltenv)
	choose("pillarenv", c.req.Pillarenv)
	if c.req.Pillarenv == "" && pytext.Truth(opts["pillarenv_from_saltenv"]) {
		opts["pillarenv"] = nil
		choose("pillarenv", c.req.Saltenv)
	}
	opts["id"], opts["minion_id"], opts["grains"], opts["file_client"] = c.req.ID, c.req.ID, grains, "local"
	c.opts = opts
	c.findRoots()
	env := c.o.Env
	env.ID = c.req.ID
	env.Opts = func() map[string]any { return opts }
	env.Grains = func() map[string]any { return grains }
	env.GrainsOrder = func() *pyobj.Dict { return c.req.GrainsOrder }
	env.Pillar = func() map[string]any { return pyobj.PlainMap(c.current) }
	env.OrderedPillar = func() *pyobj.Dict { return c.current }
	env.Match = func(kind string, tgt any, delimiter string) (bool, error) {
		return target.Match(kind, tgt, delimiter, c.subject())
	}
	c.call = c.o.Registry.NewCall(&env, "pillar.items", "", nil)
}

// showPillar sets the pillar that functions and templates see.
func (c *compilation) showPillar(d *pyobj.Dict) {
	c.current = d
	c.call.Context().SetPillar(d)
}

// subject returns the minion as targets see it.
func (c *compilation) subject() target.Subject {
	groups, _ := c.opts["nodegroups"].(map[string]any)
	return target.Subject{ID: c.req.ID, Nodegroups: groups, Grains: func() map[string]any { return c.req.Grains },
		Pillar: func() map[string]any { return pyobj.PlainMap(c.current) }}
}

// anyEnv is Salt's name for roots that serve an environment without roots of its own. In a path it stands for the
// environment's name.
const anyEnv = "__env__"

// findRoots reads the roots of all environments, and shows them to templates as pillar_roots.
func (c *compilation) findRoots() {
	c.roots = maps.Clone(c.o.Roots)
	if c.roots == nil {
		c.roots = map[string][]string{}
		m, _ := c.opts["pillar_roots"].(map[string]any)
		for env, v := range m {
			list, ok := v.([]any)
			if !ok && v != nil {
				list = []any{v}
			}
			dirs := make([]string, len(list))
			for i, dir := range list {
				dirs[i] = pytext.Str(dir)
			}
			c.roots[env] = dirs
		}
	}
	if dirs, ok := c.roots[anyEnv]; ok {
		delete(c.roots, anyEnv)
		env := c.chosenEnv()
		if _, has := c.roots[env]; !has && plainName(env) {
			c.roots[env] = make([]string, len(dirs))
			for i, dir := range dirs {
				c.roots[env][i] = strings.ReplaceAll(dir, anyEnv, env)
			}
		}
	}
	shown := make(map[string]any, len(c.roots))
	for env, dirs := range c.roots {
		list := make([]any, len(dirs))
		for i, dir := range dirs {
			list[i] = dir
		}
		shown[env] = list
	}
	c.opts["pillar_roots"] = shown
}

// plainName reports whether the name of an environment, which the minion chooses, can be the name of a directory and
// cannot lead to another place.
func plainName(env string) bool {
	return env != "" && !strings.HasPrefix(env, ".") && !strings.ContainsAny(env, "/\\\x00")
}

// optionText returns an option as text, "" if it is not set.
func (c *compilation) optionText(name string) string {
	if v := c.opts[name]; v != nil {
		return pytext.Str(v)
	}
	return ""
}

// chosenEnv returns the environment that the request or the configuration chooses.
func (c *compilation) chosenEnv() string {
	for _, name := range [...]string{"pillarenv", "saltenv"} {
		if env := c.optionText(name); env != "" {
			return env
		}
	}
	return "base"
}

// envs returns the environments in the order in which their top files are read: base first, then by name. Salt's
// order is that of a dict.
func (c *compilation) envs() []string {
	list := []string{"base"}
	for _, env := range slices.Sorted(maps.Keys(c.roots)) {
		if env != "base" {
			list = append(list, env)
		}
	}
	return list
}

// mergeFiles renders the pillar files that the top file assigns and merges them (Pillar.render_pillar).
func (c *compilation) mergeFiles(matches *assigned) (*pyobj.Dict, error) {
	out, own := c.req.Override.Copy(), false
	order, _ := c.opts["env_order"].([]any)
	envs := make([]string, 0, len(matches.envs))
	for _, v := range order {
		if env := pytext.Str(v); slices.Contains(matches.envs, env) && !slices.Contains(envs, env) {
			envs = append(envs, env)
		}
	}
	for _, env := range matches.envs {
		if !slices.Contains(envs, env) {
			envs = append(envs, env)
		}
	}
	for _, env := range envs {
		mods := map[string]any{}
		var files []string
		for _, pattern := range matches.sls[env] {
			if _, ok := c.roots[env]; !ok {
				c.errs = append(c.errs, "No matching pillar environment for environment '"+env+"' found")
			}
			found := c.matchSLS(env, pattern)
			if len(found) == 0 {
				found = []string{pattern}
			}
			files = append(files, found...)
		}
		for _, sls := range files {
			if err := c.ctx.Err(); err != nil {
				return nil, err
			}
			state, errs, err := c.renderState(sls, env, mods, nil)
			if err != nil {
				return nil, err
			}
			c.errs = append(c.errs, errs...)
			if d, ok := state.(*pyobj.Dict); ok {
				// The data is merged at once, because a merge may change the data of a file that a later file
				// includes.
				out, own = c.merge(out, d, own), true
			}
		}
	}
	return out, nil
}

// renderState renders a pillar file and the files that it includes (Pillar.render_pstate). mods holds the files that
// have been rendered: as in Salt, each without the files that it includes.
func (c *compilation) renderState(sls, env string, mods map[string]any, defaults *pyobj.Dict) (any, []string, error) {
	f, err := c.findSLS(sls, env)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, c.missingErrors(sls, env), nil
	}
	var errs []string
	var state any
	if err == nil {
		state, err = c.renderFile(f, sls, env, defaults)
	}
	if err != nil {
		if ctxErr := c.ctx.Err(); ctxErr != nil {
			return nil, nil, ctxErr
		}
		msg := fmt.Sprintf("Rendering SLS '%s' failed, render error:\n%v", sls, err)
		c.o.Log.Error(msg, "minion", c.req.ID)
		// The text of a render error may contain secrets, so the minion learns only which file failed.
		if safe, set := c.opts["pillar_safe_render_error"]; !set || pytext.Truth(safe) {
			msg = "Rendering SLS '" + sls + "' failed. Please see master log for details."
		}
		errs = append(errs, msg)
		state = nil
	}
	mods[sls] = state
	if !pyobj.Truth(state) {
		return state, errs, nil
	}
	d, ok := state.(*pyobj.Dict)
	if !ok {
		return state, append(errs, "SLS '"+sls+"' does not render to a dictionary"), nil
	}
	v, ok := d.Get("include")
	if !ok {
		return d, errs, nil
	}
	list, ok := v.(*pyobj.List)
	if !ok {
		return d, append(errs, "Include Declaration in SLS '"+sls+"' is not formed as a list"), nil
	}
	d.Delete("include")
	out, more, err := c.mergeIncludes(list.Items, d, f, sls, env, mods, defaults)
	return out, append(errs, more...), err
}

// missingErrors returns what to report about a pillar file that does not exist.
func (c *compilation) missingErrors(sls, env string) []string {
	if slices.Contains(c.ignored[env], sls) || len(c.roots[env]) == 0 {
		return nil
	}
	return []string{"Specified SLS '" + sls + "' in environment '" + env + "' is not available on the salt master"}
}

// mergeIncludes renders the files that a pillar file includes and merges them with the file's own data. The file's
// own data takes precedence, unless pillar_includes_override_sls is set.
func (c *compilation) mergeIncludes(list []any, own *pyobj.Dict, f found, sls, env string, mods map[string]any, defaults *pyobj.Dict) (any, []string, error) {
	override := pytext.Truth(c.opts["pillar_includes_override_sls"])
	out, merged := own, false
	var included []*pyobj.Dict
	var errs, last []string
	for _, inc := range list {
		key, name := "", inc
		if d, ok := inc.(*pyobj.Dict); ok {
			var settings any
			for k, v := range d.All() {
				name, settings = k, v
				break
			}
			s, ok := settings.(*pyobj.Dict)
			if !ok {
				return nil, nil, fmt.Errorf("'%s' object has no attribute 'get'", pyobj.TypeName(settings))
			}
			defaults, _ = s.Value("defaults").(*pyobj.Dict) // as in Salt, they also apply to the includes after it
			if v := s.Value("key"); pyobj.Truth(v) {
				key = pyobj.Str(v)
			}
		}
		text, ok := name.(string)
		if !ok {
			return nil, nil, fmt.Errorf("'%s' object has no attribute 'lstrip'", pyobj.TypeName(name))
		}
		names, noEnv := c.includedNames(text, f, sls, env)
		errs = append(errs, noEnv...)
		for _, name := range names {
			v, done := mods[name]
			if !done {
				var err error
				if v, last, err = c.renderState(name, env, mods, defaults); err != nil {
					return nil, nil, err
				}
			}
			if pyobj.Truth(v) {
				if key != "" {
					for _, word := range slices.Backward(strings.Split(key, ":")) {
						v = pyobj.NewDict(word, v)
					}
				}
				d, ok := v.(*pyobj.Dict)
				if !ok {
					return nil, nil, errors.New("Cannot update using non-dict types in dictupdate.update()")
				}
				if override {
					out, merged = c.merge(out, d, merged), true
				} else {
					included = append(included, d)
				}
			}
			errs = append(errs, last...) // Salt repeats the errors of files that were rendered before
		}
	}
	if override {
		return out, errs, nil
	}
	included = append(included, own)
	return c.mergeAll(included[0], included[1:]...), errs, nil
}

// includedNames returns the files that one entry of an include names. As in Salt a relative name also means the
// file of that name at the top of the environment, so an existing file may be returned twice.
func (c *compilation) includedNames(name string, f found, sls, env string) (names, errs []string) {
	if _, ok := c.roots[env]; !ok {
		return []string{name}, []string{"No matching pillar environment for environment '" + env + "' found"}
	}
	names = c.matchSLS(env, strings.ReplaceAll(strings.TrimLeft(name, "."), "/", "."))
	if strings.HasPrefix(name, ".") {
		parts := strings.Split(sls, ".")
		if !f.init {
			parts = parts[:len(parts)-1]
		}
		name = strings.Join(append(parts, name[1:]), ".")
	}
	if names = append(names, c.matchSLS(env, name)...); len(names) == 0 {
		names = []string{name}
	}
	return names, nil
}
