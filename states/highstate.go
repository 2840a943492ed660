package states

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// A HighState compiles and runs the state files of the file server (salt/state.py: BaseHighState).
type HighState struct {
	*Run
	// High is the high data as rendered so far. Salt's state functions look into it for the job's return code.
	High *pyobj.Dict

	call   *modules.Call  // the call for which templates are rendered
	memory map[string]any // what renderers keep from one file to the next
	iorder int64
	envs   []string // the known environments; nil until they are needed
	lacks  []string // what the top file needs from code that does not run here
	avail  map[string][]string
}

// NewHighState prepares a run. The master's options replace the minion's, as in Salt: the master decides about the
// renderer, failhard, the top file and the environments.
func NewHighState(ctx context.Context, c *modules.Call, o Options) (*HighState, error) {
	if c.Files == nil {
		return nil, modules.Errorf("cannot compile states: this program has no file client")
	}
	if o.Opts == nil {
		o.Opts = maps.Clone(c.Config())
	}
	if err := masterOptions(ctx, c, o.Opts); err != nil {
		return nil, err
	}
	h := &HighState{Run: New(c, o), High: &pyobj.Dict{Ordered: true}, iorder: 10000, avail: map[string][]string{}, memory: map[string]any{}}
	var err error
	h.call, err = c.Foreign(h.env, nil, &modules.Def{Name: "highstate"}, c.Fun, nil, nil)
	return h, err
}

// masterOptions copies the options that the master decides into opts (__gen_opts). Without a master they come from
// the minion's own configuration.
func masterOptions(ctx context.Context, c *modules.Call, opts map[string]any) error {
	if pytext.Truth(opts["local_state"]) {
		return nil
	}
	m := opts
	if c.Master != nil {
		v, err := c.Master.Request(ctx, map[string]any{"cmd": "_master_opts"})
		if err != nil {
			return err
		}
		var ok bool
		if m, ok = v.(map[string]any); !ok {
			opts["renderer"], opts["failhard"], opts["state_top"] = "jinja|yaml", false, "salt://top.sls"
			opts["nodegroups"], opts["file_roots"] = map[string]any{}, map[string]any{"base": []any{"/srv/salt"}}
			return nil
		}
	}
	or := func(key string, fallback any) any {
		if v, ok := m[key]; ok {
			return v
		}
		return fallback
	}
	set := map[string]any{
		"renderer": or("renderer", "jinja|yaml"), "failhard": or("failhard", false), "state_top_saltenv": m["state_top_saltenv"],
		"nodegroups": or("nodegroups", map[string]any{}), "state_auto_order": or("state_auto_order", opts["state_auto_order"]),
		"top_file_merging_strategy": or("top_file_merging_strategy", opts["top_file_merging_strategy"]),
		"env_order":                 or("env_order", opts["env_order"]), "default_top": or("default_top", opts["default_top"]),
		"file_roots": m["file_roots"], "jinja_env": or("jinja_env", map[string]any{}), "jinja_sls_env": or("jinja_sls_env", map[string]any{}),
		"jinja_lstrip_blocks": or("jinja_lstrip_blocks", false), "jinja_trim_blocks": or("jinja_trim_blocks", false),
	}
	top := textOf(or("state_top", "top.sls"))
	if !strings.HasPrefix(top, "salt://") {
		top = "salt://" + strings.TrimPrefix(top, "/")
	}
	set["state_top"] = top
	for _, key := range [...]string{"state_events", "state_aggregate"} {
		set[key] = firstTrue(opts[key], m[key])
	}
	maps.Copy(opts, set)
	return nil
}

// firstTrue returns the first true value, false if there is none; Python's "a or b".
func firstTrue(list ...any) any {
	for _, v := range list {
		if pytext.Truth(v) {
			return v
		}
	}
	return false
}

// listEnvironments returns the environments that states may come from (_get_envs). env_order fixes their order;
// without it base comes first, then those of file_roots and of the file server.
func (h *HighState) listEnvironments(ctx context.Context) ([]string, error) {
	client, err := h.env.Files.Envs(ctx)
	if err != nil {
		return nil, err
	}
	var order []string
	for _, env := range textList(h.opts["env_order"]) {
		if !slices.Contains(order, env) {
			order = append(order, env)
		}
	}
	if order != nil {
		if len(client) > 0 {
			order = slices.DeleteFunc(order, func(env string) bool { return !slices.Contains(client, env) })
		}
		return order, nil
	}
	envs := []string{"base"}
	roots, _ := h.opts["file_roots"].(map[string]any)
	for _, env := range append(slices.Sorted(maps.Keys(roots)), client...) {
		if !slices.Contains(envs, env) {
			envs = append(envs, env)
		}
	}
	return envs, nil
}

// knowsEnv reports whether an environment exists. base always does.
func (h *HighState) knowsEnv(ctx context.Context, env string) (bool, error) {
	if env == "base" {
		return true, nil
	}
	if h.envs == nil {
		var err error
		if h.envs, err = h.listEnvironments(ctx); err != nil {
			return false, err
		}
	}
	return slices.Contains(h.envs, env), nil
}

// listSLS returns the SLS files of an environment, sorted; "init" is named by its directory. The list is fetched
// once per run.
func (h *HighState) listSLS(ctx context.Context, env string) ([]string, error) {
	if list, ok := h.avail[env]; ok {
		return list, nil
	}
	files, err := h.env.Files.List(ctx, env, "")
	if err != nil {
		return nil, err
	}
	h.noteShipped(env, files)
	list := []string{}
	for _, f := range files {
		name, ok := strings.CutSuffix(f, ".sls")
		if !ok {
			continue
		}
		name = strings.TrimSuffix(name, "/init")
		list = append(list, strings.ReplaceAll(name, "/", "."))
	}
	slices.Sort(list)
	list = slices.Compact(list)
	h.avail[env] = list
	return list, nil
}

// matchSLS returns the SLS files of an environment that match a pattern.
func (h *HighState) matchSLS(ctx context.Context, env, pattern string) ([]string, error) {
	list, err := h.listSLS(ctx, env)
	if err != nil {
		return nil, err
	}
	if !strings.ContainsAny(pattern, "*?[") {
		if _, ok := slices.BinarySearch(list, pattern); ok {
			return []string{pattern}, nil
		}
		return nil, nil
	}
	return fnmatch.Filter(list, pattern), nil
}

// Sections are lists of SLS files by environment. They keep the order in which the top file names the environments,
// since it decides the order of the states.
type Sections struct {
	envs []string
	list map[string][]string
}

func (s *Sections) addSLS(env string, sls ...string) {
	if s.list == nil {
		s.list = map[string][]string{}
	}
	if _, ok := s.list[env]; !ok {
		s.envs = append(s.envs, env)
		s.list[env] = []string{}
	}
	s.list[env] = append(s.list[env], sls...)
}

func (s *Sections) hasEnv(env string) bool {
	_, ok := s.list[env]
	return ok
}

// Empty reports whether there is no environment.
func (s *Sections) Empty() bool { return len(s.envs) == 0 }

// Plain returns the sections as a plain value.
func (s *Sections) Plain() map[string]any {
	out := make(map[string]any, len(s.envs))
	for env, list := range s.list {
		out[env] = nested.Anys(list)
	}
	return out
}

// Section returns Sections with one environment.
func Section(env string, sls []string) *Sections {
	s := &Sections{}
	s.addSLS(env, sls...)
	return s
}

// RenderHighstate renders SLS files and those that they include into high data (render_highstate). errs are errors
// in the files, which the user can mend; err means that rendering could not go on.
func (h *HighState) RenderHighstate(ctx context.Context, matches *Sections) (high *pyobj.Dict, errs []string, err error) {
	mods := map[string]bool{}
	errs = append(errs, h.lacks...)
	for _, env := range matches.envs {
		for _, pattern := range matches.list[env] {
			var files []string
			known, err := h.knowsEnv(ctx, env)
			if err != nil {
				return nil, nil, err
			}
			if known {
				if files, err = h.matchSLS(ctx, env, pattern); err != nil {
					return nil, nil, err
				}
			} else {
				errs = append(errs, "No matching salt environment for environment '"+env+"' found")
			}
			if len(files) == 0 {
				files = []string{pattern} // rendering it reports the error
			}
			for _, sls := range files {
				if mods[env+":"+sls] {
					continue
				}
				state, wrong, err := h.renderState(ctx, sls, env, mods, matches, "")
				if err != nil {
					return nil, nil, err
				}
				if state.Len() > 0 {
					mergeStates(h.High, state, &wrong)
				}
				for i, text := range wrong {
					if strings.Contains(text, "is not available") && strings.Contains(text, "SLS "+pattern+" in saltenv") {
						wrong[i] = "No matching sls found for '" + pattern + "' in env '" + env + "'"
					}
				}
				errs = append(errs, wrong...)
			}
		}
	}
	cleanExtends(h.High)
	return h.High, errs, nil
}

// cleanExtends removes extensions that appear twice, which happens if two files include the same one.
func cleanExtends(high *pyobj.Dict) {
	v, ok := high.Get("__extend__")
	if !ok {
		return
	}
	out := pyobj.NewList()
	seen := &pyobj.Dict{} // lists of bodies by name
	for _, x := range listItems(v) {
		d, ok := x.(*pyobj.Dict)
		if !ok {
			continue
		}
		for name, body := range d.All() {
			bodies, _ := seen.Value(name).(*pyobj.List)
			if bodies == nil {
				bodies = pyobj.NewList()
				_ = seen.Set(name, bodies) // cannot fail: name is a key
			}
			if slices.ContainsFunc(bodies.Items, func(b any) bool { return pyobj.Equal(b, body) }) {
				continue
			}
			bodies.Items = append(bodies.Items, body)
			out.Items = append(out.Items, pyobj.NewDict(name, body))
		}
	}
	_ = high.Set("__extend__", out)
}

// mergeStates adds the rendered states of a file to others (merge_included_states). An id that exists with another
// body is an error, because ids are unique across files.
func mergeStates(high, state *pyobj.Dict, errs *[]string) {
	for _, key := range [...]string{"__extend__", "__exclude__"} {
		v, ok := state.Delete(key)
		if !ok {
			continue
		}
		have, _ := high.Value(key).(*pyobj.List)
		if have == nil {
			have = pyobj.NewList()
			_ = high.Set(key, have)
		}
		have.Items = append(have.Items, listItems(v)...)
	}
	for id, body := range state.All() {
		have, ok := high.Get(id)
		if !ok || pyobj.Equal(have, body) {
			continue
		}
		*errs = append(*errs, "Detected conflicting IDs, SLS IDs need to be globally unique.\n    The conflicting ID is '"+pyobj.Str(id)+
			"' and is found in SLS '"+bodyOrigin(have)+"' and SLS '"+bodyOrigin(body)+"'")
	}
	high.Update(state)
}

// bodyOrigin returns where a body comes from, "environment:sls", for error texts.
func bodyOrigin(body any) string {
	b, ok := body.(*pyobj.Dict)
	if !ok {
		return "None:None"
	}
	return pyobj.Str(b.Value("__env__")) + ":" + pyobj.Str(b.Value("__sls__"))
}

// Compile renders the states that the top file assigns into high data (compile_highstate). If there are errors it
// returns their texts as a list instead.
func (h *HighState) Compile(ctx context.Context) (any, error) {
	top, matches, errs, err := h.assignedStates(ctx)
	if err != nil {
		return nil, err
	}
	_ = top
	high, more, err := h.RenderHighstate(ctx, matches)
	if err != nil {
		return nil, err
	}
	if errs = append(errs, more...); errs != nil {
		return nested.Anys(errs), nil
	}
	return high, nil
}

// assignedStates returns the top file, the part of it that targets this minion, and what is wrong with it.
func (h *HighState) assignedStates(ctx context.Context) (top *pyobj.Dict, matches *Sections, errs []string, err error) {
	if top, err = h.Top(ctx); err != nil {
		return nil, nil, nil, err
	}
	errs = VerifyTops(top)
	matches, err = h.Matches(ctx, top)
	return top, matches, errs, err
}

// CompileLow compiles the low state without running it (compile_low_chunks, state.show_lowstate).
func (h *HighState) CompileLow(ctx context.Context) (chunks []*Low, errs []string, err error) {
	top, err := h.Top(ctx)
	if err != nil {
		return nil, nil, err
	}
	matches, err := h.Matches(ctx, top)
	if err != nil {
		return nil, nil, err
	}
	high, errs, err := h.RenderHighstate(ctx, matches)
	if err != nil {
		return nil, nil, err
	}
	more, err := h.reconcileExtend(high, false)
	if err != nil {
		return nil, nil, err
	}
	errs = append(append(errs, more...), verifyHigh(high)...)
	if more, err = h.requisiteIn(high); err != nil {
		return nil, nil, err
	}
	errs = append(errs, more...)
	applyExclude(high)
	if errs != nil {
		return nil, errs, nil
	}
	return h.compileHigh(high, nil), nil, nil
}

// CallHigh compiles and runs high data (State.call_high). It returns the results by tag, or a list of error texts
// if the data cannot be compiled. orchestration is the job id of an orchestration, nil outside of one.
func (r *Run) CallHigh(ctx context.Context, high *pyobj.Dict, orchestration any) (any, error) {
	errs, err := r.reconcileExtend(high, false)
	if err != nil {
		return nil, err
	}
	if errs = append(errs, verifyHigh(high)...); errs != nil {
		return nested.Anys(errs), nil
	}
	if errs, err = r.requisiteIn(high); err != nil {
		return nil, err
	}
	applyExclude(high)
	if errs != nil {
		return nested.Anys(errs), nil
	}
	return r.CallLow(ctx, r.compileHigh(high, orchestration))
}

// CallLow runs chunks, then listeners, then the beacons that states declare. It removes the pauses of the job when
// all are done.
func (r *Run) CallLow(ctx context.Context, chunks []*Low) (any, error) {
	running, err := r.chunksAndListeners(ctx, chunks)
	if err != nil {
		return nil, err
	}
	if err := r.callBeacons(ctx, chunks, running); err != nil {
		return nil, err
	}
	r.endPause()
	return running.plain(), nil
}

// CallPacked runs chunks in the given order, then listeners. Beacons are not run, as in Salt's state.pkg.
func (r *Run) CallPacked(ctx context.Context, chunks []*Low) (any, error) {
	running, err := r.chunksAndListeners(ctx, chunks)
	if err != nil {
		return nil, err
	}
	return running.plain(), nil
}

// chunksAndListeners runs the chunks and mod_watch of those that listen. r.running stays set, so that c.Running
// answers in mod_watch too.
func (r *Run) chunksAndListeners(ctx context.Context, chunks []*Low) (*results, error) {
	r.chunks = chunks
	running, err := r.callChunks(ctx, chunks)
	if err != nil {
		return nil, err
	}
	r.running = running
	return running, r.callListen(ctx, chunks, running)
}

// CompileHigh compiles high data into low state as it stands (show_low_sls): requisites stay where they are
// declared.
func (r *Run) CompileHigh(high *pyobj.Dict) []*Low { return r.compileHigh(high, nil) }

// VerifyHigh returns what is wrong with high data.
func (r *Run) VerifyHigh(high any) []string { return verifyHigh(high) }

// RequisiteIn writes requisites of the *_in kind into the states that they name.
func (r *Run) RequisiteIn(high *pyobj.Dict) ([]string, error) { return r.requisiteIn(high) }
