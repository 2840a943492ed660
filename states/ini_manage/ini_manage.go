// Package ini_manage is Salt's state module "ini": files of sections and options (salt/states/ini_manage.py).
package ini_manage

import (
	"context"
	"errors"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "ini".
var Module = &states.Module{Name: "ini_manage", Virtual: "ini", Doc: "Files of sections and options.", Funcs: []states.Def{
	{Name: "options_absent", Doc: optionsAbsentDoc, Params: []modules.Param{name, sections, separator, encoding}, Run: optionsAbsent},
	{Name: "options_present", Doc: optionsPresentDoc, Params: []modules.Param{name, sections, separator, {Name: "strict", Default: false}, encoding,
		{Name: "no_spaces", Default: false}}, Run: optionsPresent},
	{Name: "sections_absent", Doc: sectionsAbsentDoc, Params: []modules.Param{name, sections, separator, encoding}, Run: sectionsAbsent},
	{Name: "sections_present", Doc: sectionsPresentDoc, Params: []modules.Param{name, sections, separator, encoding}, Run: sectionsPresent},
}}

var (
	name      = modules.Param{Name: "name"}
	sections  = modules.Param{Name: "sections", Optional: true}
	separator = modules.Param{Name: "separator", Default: "="}
	encoding  = modules.Param{Name: "encoding", Optional: true}
)

const (
	optionsPresentDoc = `Have options in a file.

name
    the file
sections
    the options and their values, by section; those outside of sections have no map
` + fileDoc + `strict
    have no others
no_spaces
    write no blanks around the separator`
	optionsAbsentDoc = `Do not have options in a file.

name
    the file
sections
    lists of options, by section; options outside of sections stand alone
` + fileDoc
	sectionsPresentDoc = `Have sections in a file.

name
    the file
sections
    the sections
` + fileDoc
	sectionsAbsentDoc = `Do not have sections in a file.

name
    the file
sections
    the sections
` + fileDoc
	fileDoc = `separator
    what is between options and values
encoding
    the encoding of the file
`
)

// job is one run of a state.
type job struct {
	*states.Call
	ctx     context.Context
	ret     *states.Result
	changes map[string]any
}

const nothing = "No anomaly detected"

func begin(ctx context.Context, c *states.Call) *job {
	j := &job{Call: c, ctx: ctx, ret: c.Result(), changes: map[string]any{}}
	j.ret.Result = states.True
	if !c.Test() {
		j.ret.Comment = nothing
	}
	return j
}

// exec calls a function of the execution module ini.
func (j *job) exec(fun string, more map[string]any) (any, error) {
	kwargs := map[string]any{"file_name": j.Value("name"), "separator": j.Value("separator"), "encoding": j.Value("encoding")}
	for k, v := range more {
		kwargs[k] = v
	}
	return j.ExecOrdered(j.ctx, "ini."+fun, nil, kwargs)
}

// failed ends a state for what Python catches: errors of the operating system, and missing keys.
func (j *job) failed(err error, keys bool) (*states.Result, error) {
	class := states.ErrorClass(err)
	var python *modules.PythonError
	if text, name := modules.OSErrorText(err); name != "" {
		return j.ret.As(states.False, text)
	}
	if errors.As(err, &python) && (class == "OSError" || strings.HasSuffix(class, "Error") && isOS(class) || keys && class == "KeyError") {
		return j.ret.As(states.False, states.ErrorText(err))
	}
	return nil, err
}

func isOS(class string) bool {
	switch class {
	case "FileNotFoundError", "PermissionError", "IsADirectoryError", "NotADirectoryError", "FileExistsError", "BlockingIOError":
		return true
	}
	return false
}

// wanted returns the argument sections in the order of the SLS, or nil if it is empty.
func (j *job) wanted() any {
	v := j.Value("sections")
	if !pytext.Truth(v) {
		return nil
	}
	if o := j.Low.Ordered("sections"); o != nil && pyobj.Equal(o, pyobj.From(v)) {
		return o
	}
	return pyobj.From(v)
}

// names returns the elements that Python iterates over: the keys of a dict, the elements of a list, the characters of
// a text.
func names(v any) []any {
	switch v := v.(type) {
	case *pyobj.Dict:
		return v.Keys()
	case *pyobj.List:
		return v.Items
	case string:
		var out []any
		for _, r := range v {
			out = append(out, string(r))
		}
		return out
	}
	return nil
}

func (j *job) say(parts ...string) { j.ret.Comment += strings.Join(parts, "") }

func (j *job) would(parts ...string) {
	j.say(parts...)
	j.ret.Result = states.None
}

func dict(v any) *pyobj.Dict {
	d, _ := pyobj.From(v).(*pyobj.Dict)
	if d == nil {
		return &pyobj.Dict{}
	}
	return d
}

func noDict(v any, attribute string) error {
	return &modules.PythonError{Type: "AttributeError", Msg: "'" + pyobj.TypeName(v) + "' object has no attribute '" + attribute + "'"}
}

func within(section any) string {
	if pyobj.Truth(section) {
		return " in section " + pyobj.Str(section)
	}
	return ""
}

// finish reports what was changed.
func (j *job) finish() (*states.Result, error) {
	if problem, ok := j.changes["error"]; ok {
		return j.ret.As(states.False, "Errors encountered. "+pytext.Str(problem))
	}
	for k, v := range j.changes {
		if pytext.Truth(v) {
			j.ret.Comment, j.ret.Changes[k] = "Changes take effect", v
		}
	}
	return j.ret, nil
}

func sectionsPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := begin(ctx, c)
	list := names(j.wanted())
	if c.Test() {
		return j.trySections(list, func(section string, there bool) {
			if there {
				j.say("Section unchanged ", section, ".\n")
			} else {
				j.would("Created new section ", section, ".\n")
			}
		})
	}
	update := &pyobj.Dict{}
	for _, s := range list {
		_ = update.Set(s, &pyobj.Dict{})
	}
	// Salt's misspelt argument section: nothing is written.
	v, err := j.exec("set_option", map[string]any{"section": update})
	if err != nil {
		return j.failed(err, false)
	}
	changes, _ := pyobj.Plain(v).(map[string]any)
	if problem, ok := changes["error"]; ok {
		j.ret.Extra = map[string]any{"changes": "Errors encountered " + pytext.Str(problem)}
		j.ret.Result = states.False
		return j.ret, nil
	}
	j.ret.Changes = changes
	return j.ret.As(states.True, "Changes take effect")
}

// trySections compares sections with those of the file.
func (j *job) trySections(list []any, judge func(section string, there bool)) (*states.Result, error) {
	v, err := j.exec("get_ini", nil)
	if err != nil {
		return j.failed(err, false)
	}
	have := dict(v)
	for _, s := range list {
		judge(pyobj.Str(s), have.Has(s))
	}
	if j.ret.Comment == "" {
		j.ret.Comment = "No changes detected."
	}
	return j.ret, nil
}

func sectionsAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := begin(ctx, c)
	list := names(j.wanted())
	if c.Test() {
		return j.trySections(list, func(section string, there bool) {
			if there {
				j.would("Deleted section ", section, ".\n")
			} else {
				j.say("Section ", section, " does not exist.\n")
			}
		})
	}
	for _, s := range list {
		v, err := j.exec("remove_section", map[string]any{"section": s})
		if err != nil {
			return j.failed(err, false)
		}
		if pyobj.Truth(v) {
			j.ret.Changes[pyobj.Str(s)], j.ret.Comment = pyobj.Plain(v), "Changes take effect"
		}
	}
	return j.ret, nil
}
