//go:build unix

package file

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

var blockreplaceDef = states.Def{Name: "blockreplace", Params: []modules.Param{nameParam,
	{Name: "marker_start", Default: "#-- start managed zone --"}, {Name: "marker_end", Default: "#-- end managed zone --"},
	{Name: "source", Optional: true}, {Name: "source_hash", Optional: true}, {Name: "template", Default: "jinja"},
	{Name: "sources", Optional: true}, {Name: "source_hashes", Optional: true}, {Name: "defaults", Optional: true}, {Name: "context", Optional: true},
	{Name: "content", Default: ""}, {Name: "append_if_not_found", Default: false}, {Name: "prepend_if_not_found", Default: false},
	{Name: "backup", Default: ".bak"}, {Name: "show_changes", Default: true}, {Name: "append_newline", Optional: true}, {Name: "insert_before_match", Optional: true},
	{Name: "insert_after_match", Optional: true}}, Run: blockreplace}

var accumulatedDef = states.Def{Name: "accumulated", Params: []modules.Param{nameParam, {Name: "filename"}, {Name: "text"}},
	Kwargs: "kwargs", Run: accumulate}

// accumulators are the texts that a run has collected for files. Salt keeps them in a file of the minion's cache, since its
// parallel states are processes.
type accumulators struct {
	mu    sync.Mutex
	files map[string]*accumulator
}

// accumulator has the texts for one file by the name of the collection, and the states that each is for.
type accumulator struct {
	texts *pyobj.Dict
	deps  map[string][]any
}

// opening guards the making of a run's accumulators.
var opening sync.Mutex

func (j *job) accumulators() *accumulators {
	opening.Lock()
	defer opening.Unlock()
	key := "file.accumulators." + j.InstanceID()
	if have, ok := j.Context().Get(key); ok {
		return have.(*accumulators)
	}
	a := &accumulators{files: map[string]*accumulator{}}
	j.Context().Set(key, a)
	return a
}

// accumulated returns the texts that were accumulated for a file, by accumulator, or nil if they are missing.
func (j *job) accumulated(file string) *pyobj.Dict {
	all := j.accumulators()
	all.mu.Lock()
	defer all.mu.Unlock()
	if a := all.files[file]; a != nil {
		return pyobj.DeepCopy(a.texts).(*pyobj.Dict)
	}
	return nil
}

// accumulatedHere returns the texts accumulated for a file that are for this state, or all of them if none is.
func (j *job) accumulatedHere(file string) []any {
	texts := j.accumulated(file)
	if texts == nil {
		return nil
	}
	all := j.accumulators()
	all.mu.Lock()
	defer all.mu.Unlock()
	var mine, rest []any
	named := false
	for name, list := range texts.All() {
		items := list.(*pyobj.List).Items
		rest = append(rest, items...)
		for _, dep := range all.files[file].deps[pyobj.Str(name)] {
			if dep == any(j.Low.ID()) {
				mine, named = append(mine, items...), true
				break
			}
		}
	}
	if named {
		return mine
	}
	return rest
}

// entries returns the members of a requisite that Python iterates over: the values of a dict, the characters of a
// text.
func entries(req any) []any {
	switch req := req.(type) {
	case *pyobj.Dict:
		return req.Values()
	case *pyobj.List:
		return req.Items
	case string:
		var out []any
		for _, r := range req {
			out = append(out, string(r))
		}
		return out
	}
	return nil
}

// aboutFile reports whether a requisite is about a file.
func aboutFile(req any) bool {
	switch req := req.(type) {
	case *pyobj.Dict:
		return req.Has("file")
	case string:
		return strings.Contains(req, "file")
	}
	return false
}

func accumulate(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := on(ctx, c)
	ret := c.Result()
	name := c.Str("name")
	if name == "" {
		return fail(ret, "Must provide name to file.accumulated")
	}
	text := pyobj.From(j.ordered("text"))
	if text == nil {
		return fail(ret, "No text supplied for accumulator")
	}
	var deps []any
	found := false
	for _, key := range [...]string{"require_in", "watch_in"} {
		list, _ := c.Low.Ordered(key).(*pyobj.List)
		if list == nil {
			continue
		}
		for _, req := range list.Items {
			found = found || aboutFile(req)
			deps = append(deps, entries(req)...)
		}
	}
	if !found {
		return fail(ret, "Orphaned accumulator "+name+" in "+c.Low.SLS()+":"+c.Low.ID())
	}
	chunks := []any{text}
	switch text := text.(type) {
	case *pyobj.List:
		chunks = slices.Clone(text.Items)
	case string, *pyobj.Dict:
	default:
		return nil, &modules.TypeError{Msg: "'" + pyobj.TypeName(text) + "' object is not iterable"}
	}
	file := c.Str("filename")
	for i := range chunks {
		chunks[i] = stored(chunks[i])
	}
	all := j.accumulators()
	all.mu.Lock()
	defer all.mu.Unlock()
	a := all.files[file]
	if a == nil {
		a = &accumulator{texts: &pyobj.Dict{}, deps: map[string][]any{}}
		all.files[file] = a
	}
	a.deps[name] = append(a.deps[name], deps...)
	list, _ := a.texts.Value(name).(*pyobj.List)
	if list == nil {
		list = &pyobj.List{}
		_ = a.texts.Set(name, list) // text is always a key
	}
	for _, chunk := range chunks {
		if !hasItem(list.Items, chunk) {
			list.Items = append(list.Items, chunk)
			ret.Comment = "Accumulator " + name + " for file " + file + " was charged by text"
		}
	}
	return ret.As(states.True, ret.Comment)
}

// stored returns a value in the form in which Salt reads it back from a file: every dict is a plain one.
func stored(v any) any {
	switch v := v.(type) {
	case *pyobj.Dict:
		d := &pyobj.Dict{}
		for k, x := range v.All() {
			_ = d.Set(k, stored(x)) // it is a key already
		}
		return d
	case *pyobj.List:
		l := &pyobj.List{Items: make([]any, len(v.Items))}
		for i, x := range v.Items {
			l.Items[i] = stored(x)
		}
		return l
	}
	return v
}

func hasItem(list []any, v any) bool {
	for _, x := range list {
		if pyobj.Equal(x, v) {
			return true
		}
	}
	return false
}

func blockreplace(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := on(ctx, c)
	name, ret := j.begin()
	if name == "" {
		return fail(ret, "Must provide name to file.blockreplace")
	}
	sources, wrong := unifySources(c.Value("source"), c.Value("source_hash"), c.Value("sources"), c.Value("source_hashes"))
	if wrong != "" {
		return fail(ret, wrong)
	}
	if wrong := j.checkFile(name); wrong != "" {
		return fail(ret, wrong)
	}
	content := c.Value("content")
	add := func(sep string, text any) error {
		a, ok1 := content.(string)
		b, ok2 := text.(string)
		switch {
		case ok1 && a == "" && sep != "":
			content = text
		case !ok1:
			return &modules.TypeError{Msg: "unsupported operand type(s) for +=: '" + modules.TypeName(content) + "' and 'str'"}
		case !ok2:
			return &modules.TypeError{Msg: `can only concatenate str (not "` + pyobj.TypeName(text) + `") to str`}
		default:
			content = a + sep + b
		}
		return nil
	}
	for _, line := range j.accumulatedHere(name) {
		if err := add("\n", line); err != nil {
			return nil, err
		}
	}
	if sources != nil {
		texts, failed, comment, err := j.templateTexts(sources, c.Value("template"), c.Value("defaults"), c.Value("context"), nil)
		if err != nil {
			return nil, err
		}
		if comment != "" {
			return unread(failed, comment), nil
		}
		for _, text := range texts {
			if err := add("", text); err != nil {
				return nil, err
			}
		}
	}
	kwargs := map[string]any{"content": pyobj.Plain(content), "dry_run": c.Test()}
	for _, key := range [...]string{"append_if_not_found", "prepend_if_not_found", "insert_before_match", "insert_after_match", "backup", "show_changes",
		"append_newline"} {
		kwargs[key] = c.Value(key)
	}
	changes, err := j.execKw("file.blockreplace", []any{name, c.Value("marker_start"), c.Value("marker_end")}, kwargs)
	if err != nil {
		return fail(ret, "Encountered error managing block: "+states.ErrorText(err)+". See the log for details.")
	}
	if !pytext.Truth(changes) {
		return ret.As(states.True, "No changes needed to be made")
	}
	return j.edited(ret, changes, "Changes would be made")
}
