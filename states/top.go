package states

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/datastore"
	"github.com/brine-salt/brine/internal/match"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// tops are the top files by environment, in the order of the environments. An environment has several if its top
// file includes others.
type tops struct {
	envs []string
	list map[string][]*pyobj.Dict
}

func (t *tops) addTop(env string, d *pyobj.Dict) {
	if _, ok := t.list[env]; !ok {
		t.envs = append(t.envs, env)
	}
	t.list[env] = append(t.list[env], d)
}

// Top returns the merged top file (get_top). A top file that cannot be rendered counts as empty, as in Salt; the
// log has the error.
func (h *HighState) Top(ctx context.Context) (*pyobj.Dict, error) {
	t, err := h.collectTops(ctx)
	if err != nil {
		if _, ok := err.(*modules.RenderError); ok {
			h.env.Logger().Error("Unable to render top file: " + err.Error())
			return &pyobj.Dict{}, nil
		}
		return nil, err
	}
	return h.mergeTops(t)
}

// topFile renders one top file.
func (h *HighState) topFile(ctx context.Context, path, env string) (*pyobj.Dict, error) {
	v, err := h.renderTemplate(ctx, path, env, "")
	if err != nil {
		return nil, err
	}
	d, ok := v.(*pyobj.Dict)
	if !ok {
		if !pyobj.Truth(v) {
			return &pyobj.Dict{}, nil
		}
		return nil, &modules.PythonError{Type: "AttributeError", Msg: "'" + pyobj.TypeName(v) + "' object has no attribute 'items'"}
	}
	return d, nil
}

// collectTops renders the top files of all environments and those that they include (get_tops). saltenv or
// state_top_saltenv limits them to one environment.
func (h *HighState) collectTops(ctx context.Context) (*tops, error) {
	t := &tops{list: map[string][]*pyobj.Dict{}}
	saltenv := textOf(h.opts["saltenv"])
	if h.opts["top_file_merging_strategy"] == "same" && saltenv == "" && !pytext.Truth(h.opts["default_top"]) {
		return nil, renderErrorf("top_file_merging_strategy set to 'same', but no default_top configuration option was set")
	}
	var envs []string
	switch {
	case saltenv != "":
		envs = []string{saltenv}
	case pytext.Truth(h.opts["state_top_saltenv"]):
		envs = []string{textOf(h.opts["state_top_saltenv"])}
	default:
		var err error
		if envs, err = h.listEnvironments(ctx); err != nil {
			return nil, err
		}
	}
	for _, env := range envs {
		path, err := h.env.Files.Cache(ctx, textOf(h.opts["state_top"]), env)
		if err != nil {
			return nil, err
		}
		d := &pyobj.Dict{}
		if path != "" {
			if d, err = h.topFile(ctx, path, env); err != nil {
				return nil, err
			}
		}
		t.addTop(env, d)
	}
	return t, h.includeTops(ctx, t)
}

// includeTops adds the top files that others include. An include in an included file is ignored, as in Salt.
func (h *HighState) includeTops(ctx context.Context, t *tops) error {
	for _, env := range t.envs {
		var done []string
		for _, d := range slices.Clone(t.list[env]) {
			v, ok := d.Delete("include")
			if !ok {
				continue
			}
			for _, pattern := range listItems(v) {
				files, err := h.matchSLS(ctx, env, pyobj.Str(pattern))
				if err != nil {
					return err
				}
				for _, sls := range files {
					if slices.Contains(done, sls) {
						continue
					}
					done = append(done, sls)
					src, err := h.fetchSLS(ctx, sls, env)
					if err != nil {
						return err
					}
					more := &pyobj.Dict{}
					if src.path != "" {
						if more, err = h.topFile(ctx, src.path, env); err != nil {
							return err
						}
					}
					t.addTop(env, more)
				}
			}
		}
	}
	return nil
}

// copySection copies the targets of one environment into the merged top file.
func copySection(top *pyobj.Dict, env, targets any) error {
	if pyobj.Truth(targets) {
		d, ok := targets.(*pyobj.Dict)
		if !ok {
			return renderErrorf("Unable to render top file. No targets found.")
		}
		into, _ := top.Value(env).(*pyobj.Dict)
		if into == nil {
			into = &pyobj.Dict{Ordered: true}
			_ = top.Set(env, into)
		}
		into.Update(d)
		return nil
	}
	switch targets.(type) {
	case *pyobj.Dict, *pyobj.List, string:
		return nil
	}
	return renderErrorf("Unable to render top file. No targets found.")
}

// mergeTops merges all top files into one, by the strategy of the option top_file_merging_strategy (merge_tops).
func (h *HighState) mergeTops(t *tops) (*pyobj.Dict, error) {
	switch strategy := h.opts["top_file_merging_strategy"]; strategy {
	case "same":
		return h.mergeSame(t)
	case "merge_all":
		return mergeAll(t)
	case "merge", nil:
	default:
		h.env.Logger().Warn(fmt.Sprintf("Invalid top_file_merging_strategy '%s', falling back to 'merge'", pytext.Str(strategy)))
	}
	return mergeTops(t)
}

// mergeTops implements the strategy "merge": the top file of base decides for all environments that it names; the
// others decide only for themselves.
func mergeTops(t *tops) (*pyobj.Dict, error) {
	top := &pyobj.Dict{Ordered: true}
	for _, d := range t.list["base"] {
		for env, targets := range d.All() {
			if env == "include" {
				continue
			}
			if err := copySection(top, env, targets); err != nil {
				return nil, err
			}
		}
	}
	for _, own := range t.envs {
		if own == "base" {
			continue
		}
		for _, d := range t.list[own] {
			for env, targets := range d.All() {
				if env == "include" || env != own || top.Has(env) {
					continue
				}
				if err := copySection(top, env, targets); err != nil {
					return nil, err
				}
			}
		}
	}
	return top, nil
}

// mergeSame implements the strategy "same": each environment uses its own top file only, or its section in the one of
// default_top if it has none.
func (h *HighState) mergeSame(t *tops) (*pyobj.Dict, error) {
	top := &pyobj.Dict{Ordered: true}
	empty := func(list []*pyobj.Dict) bool {
		return !slices.ContainsFunc(list, func(d *pyobj.Dict) bool { return d.Len() > 0 })
	}
	for _, own := range t.envs {
		list := t.list[own]
		if empty(list) {
			list = t.list[textOf(h.opts["default_top"])]
			if empty(list) {
				h.env.Logger().Error(fmt.Sprintf("The '%s' saltenv has no top file, and the fallback saltenv specified by default_top (%s) also has no top file", own, textOf(h.opts["default_top"])))
				continue
			}
		}
		for _, d := range list {
			if targets, ok := d.Get(own); ok {
				if err := copySection(top, own, targets); err != nil {
					return nil, err
				}
			}
		}
	}
	return top, nil
}

// mergeAll implements the strategy "merge_all": the entries of all top files apply, and the lists of one target
// are joined.
func mergeAll(t *tops) (*pyobj.Dict, error) {
	top := &pyobj.Dict{Ordered: true}
	for _, own := range t.envs {
		for _, d := range t.list[own] {
			for env, targets := range d.All() {
				if env == "include" {
					continue
				}
				into, _ := top.Value(env).(*pyobj.Dict)
				list, ok := targets.(*pyobj.Dict)
				if into == nil || !ok {
					if err := copySection(top, env, targets); err != nil {
						return nil, err
					}
					continue
				}
				for tgt, states := range list.All() {
					if have, ok := into.Get(tgt); ok {
						states = joinTargets(have, states)
					}
					_ = into.Set(tgt, states)
				}
			}
		}
	}
	return top, nil
}

// joinTargets joins two lists of one target: the later matcher first, then the states of both without repetitions.
func joinTargets(a, b any) *pyobj.List {
	var way any
	out := pyobj.NewList()
	for _, list := range [...]any{a, b} {
		for _, x := range listItems(list) {
			switch x := x.(type) {
			case *pyobj.Dict:
				way = x
			case string:
				if !slices.Contains(out.Items, any(x)) {
					out.Items = append(out.Items, x)
				}
			}
		}
	}
	if way != nil {
		out.Items = slices.Insert(out.Items, 0, way)
	}
	return out
}

// VerifyTops returns what is wrong with the form of a top file, in Salt's words (verify_tops).
func VerifyTops(top *pyobj.Dict) []string {
	var errs []string
	fail := func(format string, args ...any) { errs = append(errs, fmt.Sprintf(format, args...)) }
	for env, v := range top.All() {
		if env == "include" {
			continue
		}
		if s, ok := env.(string); !ok {
			fail("Environment %s in top file is not formed as a string", pyobj.Str(env))
		} else if s == "" {
			fail("Empty saltenv statement in top file")
		}
		targets, ok := v.(*pyobj.Dict)
		if !ok {
			fail("The top file matches for saltenv %s are not formatted as a dict", pyobj.Str(env))
			continue
		}
		for tgt, v := range targets.All() {
			list, ok := v.(*pyobj.List)
			if !ok {
				fail("Malformed topfile: state declarations for matcher %s in saltenv %s are not formed as a list (got %s)", pyobj.Repr(tgt), pyobj.Repr(env), strings.TrimPrefix(pyobj.TypeName(v), "collections."))
				continue
			}
			for _, x := range list.Items {
				switch x := x.(type) {
				case *pyobj.Dict:
					for _, val := range x.All() {
						if !pyobj.Truth(val) {
							fail("Improperly formatted top file matcher in saltenv %s: %s file", pyobj.Str(x), pyobj.Str(val))
						}
					}
				case string:
					if x == "" {
						fail("Environment %s contains an empty sls index", pyobj.Str(env))
					}
				}
			}
		}
	}
	return errs
}

// Matches returns the SLS files that a top file assigns to this minion, with those that the master's tops system
// adds (top_matches).
func (h *HighState) Matches(ctx context.Context, top *pyobj.Dict) (*Sections, error) {
	s := &Sections{}
	only := textOf(h.opts["saltenv"])
	for env, body := range top.All() {
		name := pyobj.Str(env)
		if only != "" && name != only {
			continue
		}
		targets, ok := body.(*pyobj.Dict)
		if !ok {
			continue
		}
		for tgt, data := range targets.All() {
			if err := h.addTarget(ctx, s, name, tgt, data); err != nil {
				return nil, err
			}
		}
	}
	return s, h.masterTops(ctx, s)
}

// addTarget adds the states of one target if this minion matches it. subfilter nests further targets.
func (h *HighState) addTarget(ctx context.Context, s *Sections, env string, tgt, data any) error {
	list := listItems(data)
	if one, ok := data.(string); ok {
		list = []any{one}
	}
	ok, err := h.matchesTarget(pyobj.Str(tgt), list)
	if err != nil {
		return err
	}
	lacks, err := h.lacksGrain(ctx, "The target "+pyobj.Repr(tgt)+" of the top file", env, topGrains(matchKind(list), pyobj.Str(tgt)))
	if err != nil {
		return err
	}
	if lacks != "" {
		h.lacks = append(h.lacks, lacks)
	}
	if !ok {
		return nil
	}
	s.addSLS(env)
	for _, x := range list {
		switch x := x.(type) {
		case string:
			s.addSLS(env, x)
		case *pyobj.Dict:
			if v, ok := x.Delete("subfilter"); ok {
				if sub, ok := v.(*pyobj.Dict); ok {
					for tgt, data := range sub.All() {
						if err := h.addTarget(ctx, s, env, tgt, data); err != nil {
							return err
						}
					}
				}
			}
			key, sls, ok := x.Last()
			if !ok {
				continue
			}
			known, err := h.knowsEnv(ctx, pyobj.Str(key))
			if err != nil {
				return err
			}
			if known {
				s.addSLS(pyobj.Str(key), pyobj.Str(sls))
			}
		}
	}
	return nil
}

// matchesTarget reports whether this minion matches a target of the top file (salt/matchers/confirm_top.py). A
// target that cannot be evaluated does not match; the log has the reason.
func (h *HighState) matchesTarget(tgt string, data []any) (bool, error) {
	kind := matchKind(data)
	groups, _ := h.opts["nodegroups"].(map[string]any)
	subject := match.Subject{ID: textOf(h.opts["id"]), Grains: h.call.GrainData, Pillar: h.call.PillarData, Nodegroups: groups,
		Data: func() map[string]any {
			store, err := datastore.Load(h.env.Path(datastore.Path(textOf(h.opts["cachedir"]))))
			if err != nil {
				return nil
			}
			return store
		}}
	switch kind {
	case "glob", "pcre", "list", "grain", "grain_pcre", "pillar", "pillar_pcre", "pillar_exact", "compound", "ipcidr", "nodegroup", "range", "data":
	default:
		return false, &modules.PythonError{Type: "KeyError", Msg: "'" + kind + "_match.match'"}
	}
	ok, err := match.Target(kind, tgt, match.Delimiter, subject)
	if err != nil {
		h.env.Logger().Error("A target of the top file does not apply", "tgt", tgt, "type", kind, "err", err)
	}
	return ok && err == nil, nil
}

// masterTops adds the SLS files that the master's tops system assigns. master_tops_first puts them before those of
// the top file.
func (h *HighState) masterTops(ctx context.Context, s *Sections) error {
	if h.parent.Master == nil {
		return nil
	}
	v, err := h.parent.Master.Request(ctx, map[string]any{"cmd": "_master_tops", "id": h.opts["id"], "opts": map[string]any{
		"id": h.opts["id"], "grains": h.call.GrainData(), "saltenv": h.opts["saltenv"], "pillarenv": h.opts["pillarenv"]}})
	if err != nil {
		return err
	}
	ext, _ := v.(map[string]any)
	for env, list := range ext {
		var more []string
		for _, x := range listItems(pyobj.From(list)) {
			more = append(more, pyobj.Str(x))
		}
		have := s.list[env]
		first, second := have, more
		if pytext.Truth(h.opts["master_tops_first"]) {
			first, second = more, have
		}
		all := slices.Clone(first)
		for _, sls := range second {
			if !slices.Contains(first, sls) {
				all = append(all, sls)
			}
		}
		s.addSLS(env)
		s.list[env] = all
	}
	return nil
}

// Whitelisted returns the sections with only the SLS files that a list names, or a string with commas.
func (s *Sections) Whitelisted(whitelist any) *Sections {
	if !pytext.Truth(whitelist) {
		return s
	}
	keep := textList(whitelist)
	if one, ok := whitelist.(string); ok {
		keep = strings.Split(one, ",")
	}
	out := &Sections{}
	for _, env := range s.envs {
		for _, sls := range s.list[env] {
			if slices.Contains(keep, sls) {
				out.addSLS(env, sls)
			}
		}
	}
	return out
}
