package render

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// The renderer stateconf runs a template renderer and a data renderer ("yaml . jinja") and rewrites the states that
// they return: ids and requisites that begin with a dot belong to the file, a state named goal requires all others,
// and the arguments of stateconf.set are names in the template (salt/renderers/stateconf.py).
//
// With an end marker the file runs twice: the part above the marker to find the arguments of stateconf.set, then
// all of it with those arguments as variables.

// stateconfUsage is stock's text for a wrong first line.
const stateconfUsage = `Invalid use of stateconf.py renderer!
Usage: #!stateconf.py [-GoSp] [<data_renderer> [options] . <template_renderer> [options]]

where an example <data_renderer> would be yaml and a <template_renderer> might
be jinja. Each renderer can be passed its renderer specific options.

Options(for this renderer):

  -G   Do not generate the goal state that requires all other states in the sls.

  -o   Indirectly order the states by adding requires such that they will be
       executed in the order they are defined in the sls. Implies using yaml -o.

  -s   Generate the start state that gets inserted as the first state in
       the sls. This only makes sense if your high state data dict is ordered.

  -p   Assume high state input. This option allows you to pipe high state data
       through this renderer. With this option, the use of stateconf.set state
       in the sls will have no effect, but other features of the renderer still
       apply.

  `

// errShape is returned if the high data does not have the shape that stateconf expects. Stock's Python raises an
// exception then.
var errShape = errors.New("the high data has a wrong shape")

// renderError returns an error of the renderer, with stock's words.
func renderError(msg string) error { return &modules.RenderError{Msg: msg, Text: msg} }

// confMemory holds the values that the state files of one run have set so far.
type confMemory struct {
	// set holds the arguments of stateconf.set by id; extended holds those below extend.
	set, extended pyobj.Dict
	// the requisites that other files add to a state, by its label
	requires   map[string][]requisite
	requiresIn map[string][]requisite
}

// requisite is one "state: id".
type requisite struct{ state, id any }

// stateconf is one run of the renderer: the options before the renderers' names, and those of the configuration.
type stateconf struct {
	*confMemory
	sls, env                            string
	startState, noGoal, ordered, isHigh bool
	endMarker, startID, goalID, fun     string
}

// readOptions reads the options before the names of the renderers, as Python's getopt does, and returns the
// remaining words.
func (s *stateconf) readOptions(arg string) (rest []string, err error) {
	words := strings.Fields(arg)
	for len(words) > 0 && strings.HasPrefix(words[0], "-") && words[0] != "-" {
		word := words[0]
		words = words[1:]
		if word == "--" {
			break
		}
		if long, ok := strings.CutPrefix(word, "--"); ok {
			long, _, _ = strings.Cut(long, "=")
			return nil, &modules.PythonError{Type: "getopt.GetoptError", Msg: "option --" + long + " not recognized"}
		}
		for _, o := range word[1:] {
			switch o {
			case 'G':
				s.noGoal = true
			case 'o':
				s.ordered = true
			case 's':
				s.startState = true
			case 'p':
				s.isHigh = true
			default:
				return nil, &modules.PythonError{Type: "getopt.GetoptError", Msg: "option -" + string(o) + " not recognized"}
			}
		}
	}
	return words, nil
}

// renderStateconf implements the renderer.
func renderStateconf(ctx context.Context, c *modules.Call, t *modules.Template, in any, arg string) (any, error) {
	s := &stateconf{sls: t.SLS, env: t.SaltEnv}
	// Each option has a default that stock sets only on a master.
	for _, o := range [...]struct {
		at           *string
		option, plan string
	}{
		{&s.endMarker, "stateconf_end_marker", `#\s*-+\s*end of state config\s*-+`},
		{&s.startID, "stateconf_start_state", ".start"},
		{&s.goalID, "stateconf_goal_state", ".goal"},
		{&s.fun, "stateconf_state_func", "stateconf.set"},
	} {
		*o.at = o.plan
		if v := c.Opt(o.option); v != nil {
			*o.at = pytext.Str(v)
		}
	}
	s.confMemory, _ = t.Memory["stateconf"].(*confMemory)
	if s.confMemory == nil {
		s.confMemory = &confMemory{requires: map[string][]requisite{}, requiresIn: map[string][]requisite{}}
		if t.Memory != nil {
			t.Memory["stateconf"] = s.confMemory
		}
	}
	words, err := s.readOptions(arg)
	if err != nil {
		return nil, err
	}
	if s.isHigh {
		// With -p the input is high data already, so nothing is rendered.
		return s.processHigh(t, in, false)
	}
	spec := strings.Join(words, " ")
	if spec == "" {
		spec = "yaml . jinja"
	}
	// The two renderers are separated by a dot between blanks.
	dataSpec, tmplSpec, two := strings.Cut(spec, " . ")
	data, tmpl := nestedStep(dataSpec), nestedStep(tmplSpec)
	switch {
	case data.run == nil:
		return nil, notThere(dataSpec)
	case s.ordered && !strings.HasPrefix(dataSpec+" ", "yaml "):
		return nil, renderError("Implicit ordering is only supported if the yaml renderer is used!")
	case !two:
		return nil, renderError(stateconfUsage)
	case tmpl.run == nil:
		return nil, notThere(tmplSpec)
	}
	text, ok := in.(string)
	if !ok {
		return nil, &modules.PythonError{Type: "AttributeError", Msg: "'" + pyobj.TypeName(in) + "' object has no attribute 'read'"}
	}
	// pass renders text and processes the result; extract is set for the part above the end marker.
	pass := func(text string, vars map[string]any, extract bool) (any, error) {
		sub := *t
		sub.Vars = vars
		out, err := tmpl.run(ctx, c, &sub, text, tmpl.arg)
		if err != nil {
			return nil, err
		}
		if out, err = data.run(ctx, c, &sub, out, data.arg); err != nil {
			return nil, err
		}
		return s.processHigh(t, out, extract)
	}
	marker, err := pyre.Compile(s.endMarker, 0)
	if err != nil {
		return nil, err
	}
	at, err := marker.Search(text)
	if err != nil {
		return nil, err
	}
	// The part above the marker is rendered for its arguments alone.
	if at != nil {
		if _, err := pass(text[:at[0]], s.templateNames(t, false), true); err != nil {
			return nil, err
		}
	}
	return pass(text, s.templateNames(t, true), false)
}

// nestedStep returns one of the two renderers that stateconf runs. It cannot be a renderer that the host's owner has
// installed.
func nestedStep(spec string) step {
	name, arg, _ := strings.Cut(strings.ReplaceAll(spec, `\.`, "."), " ")
	return step{rendererOf(name), strings.TrimSpace(arg)}
}

// notThere returns stock's error for an unknown renderer.
func notThere(spec string) error {
	name, _, _ := strings.Cut(strings.ReplaceAll(spec, `\.`, "."), " ")
	return renderError("Renderer: " + pytext.Repr(name+".render") + " is not available!")
}

// templateNames returns the names that the template sees: its own, the directory of the file and, if set is true, the
// arguments set so far.
func (s *stateconf) templateNames(t *modules.Template, set bool) map[string]any {
	dir := s.sls
	if strings.Contains(dir, ".") {
		dir = path.Dir(strings.ReplaceAll(dir, ".", "/"))
	}
	if dir == "" {
		dir = "."
	}
	names := map[string]any{}
	for k, v := range t.Vars {
		names[k] = v
	}
	names["sls_dir"] = dir
	if set {
		// The names of this file are without their prefix.
		for id, conf := range s.set.All() {
			names[strings.TrimPrefix(pyobj.Str(id), s.sls+"::")] = conf
		}
	}
	return names
}

// processHigh rewrites the high data that the data renderer returned, or returns an error that describes its wrong
// shape.
func (s *stateconf) processHigh(t *modules.Template, high any, extract bool) (any, error) {
	d, ok := high.(*pyobj.Dict)
	if !ok {
		return nil, &modules.PythonError{Type: "AttributeError", Msg: "'" + pyobj.TypeName(high) + "' object has no attribute 'items'"}
	}
	// Stock checks the shape of the original data, so a copy is rewritten.
	data := pyobj.DeepCopy(d).(*pyobj.Dict)
	if err := s.rewriteStates(data, extract); !errors.Is(err, errShape) {
		return data, err
	}
	if t.Verify != nil {
		for _, body := range d.All() {
			if b, ok := body.(*pyobj.Dict); ok && !b.Has("__sls__") {
				_ = b.Set("__sls__", s.sls) // stock does not set it, and then fails while it reports the errors
			}
		}
		if errs := t.Verify(d); len(errs) > 0 {
			return nil, renderError(strings.Join(errs, "\n"))
		}
	}
	return nil, renderError("sls preprocessing/rendering failed!")
}

// rewriteStates rewrites high data in the order of stock's steps.
func (s *stateconf) rewriteStates(data *pyobj.Dict, extract bool) error {
	// "id: pkg.installed" is short for the long form.
	for _, id := range data.Keys() {
		if short, ok := data.Value(id).(string); ok {
			_ = data.Set(id, pyobj.NewDict(short, pyobj.NewList()))
		}
	}
	if err := s.absolutePaths(data); err != nil {
		return err
	}
	if !extract && s.ordered {
		if id, err := s.withNames(data); err != nil {
			return err
		} else if id != "" {
			return renderError("'names' declaration(found in state id: " + id + ") is not supported with implicitly ordered states! You " +
				"should generate the states in a template for-loop instead.")
		}
		if err := s.inOrder(data); err != nil {
			return err
		}
	}
	if s.startState {
		if err := s.addStart(data); err != nil {
			return err
		}
	}
	// The goal is not added in the pass that only collects the arguments.
	if !extract && !s.noGoal {
		if err := s.addGoal(data); err != nil {
			return err
		}
	}
	if err := s.renameIDs(data, false); err != nil {
		return err
	}
	return s.rememberSets(data, false)
}

// absolutePaths resolves the names that begin with a dot in include and exclude.
func (s *stateconf) absolutePaths(data *pyobj.Dict) error {
	if v, ok := data.Get("include"); ok {
		// Names are replaced in place, in a list or, oddly, in a dict.
		for i, each := range iterMembers(v) {
			env, inc := any(s.env), each
			if d, ok := each.(*pyobj.Dict); ok {
				key, val, ok := d.Last()
				if !ok {
					return errShape
				}
				d.Delete(key) // popitem: an include without a dot is left without a name, and stock then fails
				env, inc = key, val
			}
			name, ok := inc.(string)
			if !ok {
				return errShape
			}
			if !strings.HasPrefix(name, ".") {
				continue
			}
			name, err := absoluteName(name, s.sls)
			if err != nil {
				return err
			}
			switch v := v.(type) {
			case *pyobj.List:
				v.Items[i] = pyobj.NewDict(env, name)
			case *pyobj.Dict:
				_ = v.Set(int64(i), pyobj.NewDict(env, name))
			}
		}
		if !isIterable(v) {
			return errShape
		}
	}
	if v, ok := data.Get("exclude"); ok {
		if !isIterable(v) {
			return errShape
		}
		// The entries of exclude are dicts with sls or id. A text is not changed.
		for _, each := range iterMembers(v) {
			d, ok := each.(*pyobj.Dict)
			if !ok {
				if hasWord(each, "sls") || !isIterable(each) {
					return errShape
				}
				continue
			}
			name, ok := d.Get("sls")
			if !ok {
				continue
			}
			text, ok := name.(string)
			if !ok {
				return errShape
			}
			if strings.HasPrefix(text, ".") {
				text, err := absoluteName(text, s.sls)
				if err != nil {
					return err
				}
				_ = d.Set("sls", text)
			}
		}
	}
	return nil
}

// isIterable reports whether Python's for can iterate over a value.
func isIterable(v any) bool {
	switch v.(type) {
	case *pyobj.List, *pyobj.Dict, *pyobj.Set, pyobj.Tuple, string:
		return true
	}
	return false
}

// iterMembers returns the values that Python's for yields. For a text these would be its characters, which are not
// used here.
func iterMembers(v any) []any {
	switch v := v.(type) {
	case *pyobj.List:
		return v.Items
	case *pyobj.Dict:
		return v.Keys()
	case *pyobj.Set:
		return v.Members()
	case pyobj.Tuple:
		return v
	}
	return nil
}

// hasWord implements Python's "word in v".
func hasWord(v any, word string) bool {
	if s, ok := v.(string); ok {
		return strings.Contains(s, word)
	}
	return slices.Contains(iterMembers(v), any(word))
}

// absoluteName resolves the dots at the beginning of a name against the name of the file (_relative_to_abs_sls).
func absoluteName(name, sls string) (string, error) {
	rest := strings.TrimLeft(name, ".")
	levels, comps := len(name)-len(rest), strings.Split(sls, ".")
	// Each dot goes one level up.
	if levels > len(comps) {
		return "", renderError("Attempted relative include goes beyond top level package")
	}
	return strings.Join(append(comps[:len(comps)-levels:len(comps)-levels], rest), "."), nil
}

// absoluteID returns the full id for an id that begins with a dot (_local_to_abs_sid): ".x" is "file::x".
func (s *stateconf) absoluteID(id string) (string, error) {
	if strings.Contains(id, "::") {
		return absoluteName(id, s.sls)
	}
	id, err := absoluteName(id, s.sls+".")
	if i := strings.LastIndexByte(id, '.'); i >= 0 {
		id = id[:i] + "::" + id[i+1:]
	}
	return id, err
}
