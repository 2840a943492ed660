// Package output formats results exactly as Salt's outputters do (salt/output/*.py), because scripts parse the
// output. It prints nothing itself.
//
// Go's maps have no order. Where Salt keeps the order of a dictionary, this package sorts the keys of maps;
// payload.OrderedMap values keep their order.
package output

import (
	"errors"
	"fmt"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/payload"
)

// Options configure the outputters. The zero value has Salt's defaults, without colours.
type Options struct {
	// Indent is --out-indent, or nil if it is not set. A negative value selects one line for json and yaml.
	Indent *int
	// Pretty is output_indent: pretty. It indents json by four blanks.
	Pretty bool
	// Color turns colours on. Theme replaces some of them: it maps Salt's names (GREEN…) to codes like "1;32".
	Color bool
	Theme map[string]string
	// KeepEscapes keeps escape characters in texts. Otherwise they are replaced by "?" (strip_colors).
	KeepEscapes bool
	// Retcode is the return code. If it is not 0, nested uses red.
	Retcode int
	// NestedIndent is the column where nested output begins.
	NestedIndent int
	// KeepOrder makes nested keep the order of payload.OrderedMap values, like stock's OrderedDict, instead of sorting
	// the keys.
	KeepOrder bool

	// StateOutput is state_output: full (also for ""), terse, mixed, changes, filter, and these with _id.
	StateOutput string
	// StateQuiet hides states that succeeded without changes (state_verbose: False).
	StateQuiet bool
	// StateDiff is state_output_diff: only states with changes or failures.
	StateDiff bool
	// NoStateProfile hides start times and durations (state_output_profile: False).
	NoStateProfile bool
	// StatePercent adds percentages to the summary (state_output_pct).
	StatePercent bool
	// StateTabular is state_tabular for terse lines.
	StateTabular bool
	// CompressIDs is state_compress_ids.
	CompressIDs bool
	// StateExclude and StateTerse are state_output_exclude and state_output_terse for state_output: filter.
	StateExclude, StateTerse []string

	// MultiKey indents the key outputter (several kinds of keys are listed).
	MultiKey bool
	// Table holds the options out.table.*, by their last word: rows_key, labels_key, title, has_header, width, …
	Table map[string]any
}

// ErrUnknown means that no outputter has the given name. Render then also returns nested text, as Salt does.
var ErrUnknown = errors.New("unknown outputter")

// errShape means that the outputter does not support the value. Render falls back to nested.
var errShape = errors.New("value has another shape")

// Names returns the names of the outputters.
func Names() []string {
	return []string{"highstate", "json", "key", "nested", "newline_values_only", "no_return", "pprint", "profile", "quiet",
		"raw", "table", "txt", "yaml"}
}

// Render formats v with an outputter and returns Salt's text without the final newline; "" means nested. If the
// outputter does not support v, Render uses nested. If the outputter is unknown, Render also uses nested and returns
// ErrUnknown.
func Render(name string, v any, o Options) (string, error) {
	r := renderer{Options: o, colors: palette(o)}
	var text string
	var err error
	switch name {
	case "", "nested":
		text = r.nested(v, o.NestedIndent)
	case "json":
		text, err = r.json(v)
	case "yaml":
		text, err = r.yaml(v)
	case "txt", "text":
		text = r.txt(v)
	case "raw":
		text = pyobj.Str(pythonic(v))
	case "pprint":
		indent := 1
		if o.Indent != nil && *o.Indent >= 0 {
			indent = *o.Indent
		}
		text = pytext.Pretty(plain(v), indent)
	case "quiet":
		return "", nil
	case "newline_values_only":
		text, err = r.values(v)
	case "no_return":
		text, err = r.noReturn(v, 0)
	case "key":
		text, err = r.key(v)
	case "highstate":
		text, err = r.highstate(v, 1)
	case "table":
		text, err = r.table(v)
	case "profile":
		text, err = r.profile(v)
	default:
		return pytext.StripRight(r.nested(v, o.NestedIndent)), fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	if errors.Is(err, errShape) {
		text, err = r.nested(v, o.NestedIndent), nil
	}
	return pytext.StripRight(text), err
}

// OptionsFrom returns o with the fields that Salt's options set, such as state_output and output_indent. It does not
// support color_theme.
func OptionsFrom(opts map[string]any, o Options) Options {
	if v, ok := opts["output_indent"]; ok && o.Indent == nil {
		one := -1
		switch v := v.(type) {
		case nil:
			o.Indent = &one
		case string:
			o.Pretty = v == "pretty"
		case int64:
			n := int(v)
			o.Indent = &n
		}
	}
	// The zero value of a missing option is Salt's default.
	on := func(key string) bool { return pytext.Truth(opts[key]) }
	off := func(key string) bool {
		v, ok := opts[key]
		return ok && !pytext.Truth(v)
	}
	o.KeepEscapes = off("strip_colors")
	if s, ok := opts["state_output"].(string); ok {
		o.StateOutput = s
	}
	o.StateQuiet = off("state_verbose")
	o.StateDiff = on("state_output_diff")
	o.NoStateProfile = off("state_output_profile")
	o.StatePercent = on("state_output_pct")
	o.StateTabular = on("state_tabular")
	o.CompressIDs = on("state_compress_ids")
	o.StateExclude = words(opts["state_output_exclude"])
	o.StateTerse = words(opts["state_output_terse"])
	return o
}

type renderer struct {
	Options
	colors colors
}

// entry is an entry of a mapping.
type entry struct{ key, value any }

// entries returns the entries of a mapping in order; ok is false if v is not a mapping.
func entries(v any) (list []entry, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v) {
			list = append(list, entry{k, v[k]})
		}
		return list, true
	case map[any]any:
		for _, k := range pytext.SortKeys(v) {
			list = append(list, entry{k, v[k]})
		}
		return list, true
	case payload.OrderedMap:
		for _, it := range v {
			list = append(list, entry{it.Key, it.Value})
		}
		return list, true
	}
	return nil, false
}

// items returns the elements of a list; ok is false if v is not a list.
func items(v any) ([]any, bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case []string:
		list := make([]any, len(v))
		for i, s := range v {
			list[i] = s
		}
		return list, true
	}
	return nil, false
}

// asText returns a text, or bytes that are valid UTF-8, as a string.
func asText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []byte:
		return decodeText(v)
	}
	return "", false
}
