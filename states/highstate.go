package states

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/fnmatch"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

// HighState compiles and runs the state files of the file server (salt/state.py: BaseHighState).
type HighState struct {
	*Run
	// High is the high data as far as it has been rendered; Salt looks into it for the return code.
	High *pyobj.Dict

	call   *modules.Call  // templates are rendered on its behalf
	memory map[string]any // what renderers keep between the files
	iorder int64
	envs   []string // known environments; nil until asked
	avail  map[string][]string
}

// NewHighState prepares a run with the options of the master.
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

// masterOptions brings what the master decides into the options (__gen_opts).
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
	top := text(or("state_top", "top.sls"))
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

func firstTrue(list ...any) any {
	for _, v := range list {
		if pytext.Truth(v) {
			return v
		}
	}
	return false
}

// environments lists the environments of the master (_get_envs).
func (h *HighState) environments(ctx context.Context) ([]string, error) {
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

// knows tells whether there is such an environment.
func (h *HighState) knows(ctx context.Context, env string) (bool, error) {
	if env == "base" {
		return true, nil
	}
	if h.envs == nil {
		var err error
		if h.envs, err = h.environments(ctx); err != nil {
			return false, err
		}
	}
	return slices.Contains(h.envs, env), nil
}

// states lists the SLS files of an environment.
func (h *HighState) states(ctx context.Context, env string) ([]string, error) {
	if list, ok := h.avail[env]; ok {
		return list, nil
	}
	files, err := h.env.Files.List(ctx, env, "")
	if err != nil {
		return nil, err
	}
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

// matching are the SLS files of an environment that a pattern names.
func (h *HighState) matching(ctx context.Context, env, pattern string) ([]string, error) {
	list, err := h.states(ctx, env)
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

// Sections are lists of SLS files by environment, in order.
type Sections struct {
	envs []string
	list map[string][]string
}

func (s *Sections) add(env string, sls ...string) {
	if s.list == nil {
		s.list = map[string][]string{}
	}
	if _, ok := s.list[env]; !ok {
		s.envs = append(s.envs, env)
		s.list[env] = []string{}
	}
	s.list[env] = append(s.list[env], sls...)
}

func (s *Sections) has(env string) bool {
	_, ok := s.list[env]
	return ok
}

// Empty tells whether there is no environment at all.
func (s *Sections) Empty() bool { return len(s.envs) == 0 }

// Plain is the sections as a plain value.
func (s *Sections) Plain() map[string]any {
	out := make(map[string]any, len(s.envs))
	for env, list := range s.list {
		out[env] = nested.Anys(list)
	}
	return out
}

// Section is one environment's SLS files.
func Section(env string, sls []string) *Sections {
	s := &Sections{}
	s.add(env, sls...)
	return s
}

// RenderHighstate renders SLS files and what they include into high data (render_highstate). The texts are errors in the
// files; the error is one of the state system.
func (h *HighState) RenderHighstate(ctx context.Context, matches *Sections) (high *pyobj.Dict, errs []string, err error) {
	mods := map[string]bool{}
	for _, env := range matches.envs {
		for _, pattern := range matches.list[env] {
			var files []string
			known, err := h.knows(ctx, env)
			if err != nil {
				return nil, nil, err
			}
			if known {
				if files, err = h.matching(ctx, env, pattern); err != nil {
					return nil, nil, err
				}
			} else {
				errs = append(errs, "No matching salt environment for environment '"+env+"' found")
			}
			if len(files) == 0 {
				files = []string{pattern} // rendering it gives the error
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

// cleanExtends drops extensions that are there twice.
func cleanExtends(high *pyobj.Dict) {
	v, ok := high.Get("__extend__")
	if !ok {
		return
	}
	out := pyobj.NewList()
	type pair struct{ name, body any }
	var seen []pair
	for _, x := range items(v) {
		d, ok := x.(*pyobj.Dict)
		if !ok {
			continue
		}
	next:
		for name, body := range d.All() {
			for _, s := range seen {
				if pyobj.Equal(s.name, name) && pyobj.Equal(s.body, body) {
					continue next
				}
			}
			seen = append(seen, pair{name, body})
			out.Items = append(out.Items, pyobj.NewDict(name, body))
		}
	}
	_ = high.Set("__extend__", out)
}

// mergeStates adds rendered states to others (merge_included_states). Ids that are there with another body are errors.
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
		have.Items = append(have.Items, items(v)...)
	}
	for id, body := range state.All() {
		have, ok := high.Get(id)
		if !ok || pyobj.Equal(have, body) {
			continue
		}
		*errs = append(*errs, "Detected conflicting IDs, SLS IDs need to be globally unique.\n    The conflicting ID is '"+pyobj.Str(id)+
			"' and is found in SLS '"+origin(have)+"' and SLS '"+origin(body)+"'")
	}
	high.Update(state)
}

// origin is where a body is from: environment and SLS file.
func origin(body any) string {
	b, ok := body.(*pyobj.Dict)
	if !ok {
		return "None:None"
	}
	return pyobj.Str(b.Value("__env__")) + ":" + pyobj.Str(b.Value("__sls__"))
}

// Compile renders what the top file assigns (compile_highstate). Errors are a list of texts in place of the high data.
func (h *HighState) Compile(ctx context.Context) (any, error) {
	top, matches, errs, err := h.assigned(ctx)
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

// assigned is the top file, what of it is for this minion, and what is wrong with it.
func (h *HighState) assigned(ctx context.Context) (top *pyobj.Dict, matches *Sections, errs []string, err error) {
	if top, err = h.Top(ctx); err != nil {
		return nil, nil, nil, err
	}
	errs = VerifyTops(top)
	matches, err = h.Matches(ctx, top)
	return top, matches, errs, err
}

// CompileLow compiles the low state without running it (compile_low_chunks).
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

// CallHigh runs high data (State.call_high). The answer are the results by tag, or a list of texts.
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

// CallLow runs chunks, then those that listen, then what the beacons of states do.
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

// CallPacked runs chunks as they come, then those that listen. Beacons of states are not looked at, as in Salt's state.pkg.
func (r *Run) CallPacked(ctx context.Context, chunks []*Low) (any, error) {
	running, err := r.chunksAndListeners(ctx, chunks)
	if err != nil {
		return nil, err
	}
	return running.plain(), nil
}

func (r *Run) chunksAndListeners(ctx context.Context, chunks []*Low) (*results, error) {
	r.chunks = chunks
	running, err := r.callChunks(ctx, chunks)
	if err != nil {
		return nil, err
	}
	r.running = running
	return running, r.callListen(ctx, chunks, running)
}

// CompileHigh is the low state of high data as it is (show_low_sls); requisites stay where they are declared.
func (r *Run) CompileHigh(high *pyobj.Dict) []*Low { return r.compileHigh(high, nil) }

// VerifyHigh tells what is wrong with high data.
func (r *Run) VerifyHigh(high any) []string { return verifyHigh(high) }

// RequisiteIn turns the requisites of the other side into such of the states that they are about.
func (r *Run) RequisiteIn(high *pyobj.Dict) ([]string, error) { return r.requisiteIn(high) }
