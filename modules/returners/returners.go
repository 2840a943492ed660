// Package returners is the room of Salt's returners: where the results of jobs go besides the master, a file, a log, a database.
// A returner is described as an execution module is; its functions have the names that Salt gives them:
//
//	returner(ret)                   keeps a return
//	save_load(jid, load, minions)   keeps what a job was
//	get_load, get_jid, get_fun, get_jids, get_minions   read it back
//	event_return(events), prep_jid, clean_old_jobs
//
// This package holds the register and what returners share: their options and the JSON that they write. Every returner is a
// package of its own below, so that a program has only those that it imports; package all has those of the default build.
// Returners that need a database driver are not among them: they are behind build tags of their own there.
//
// Salt's source: salt/returners/__init__.py.
package returners

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

var (
	known []func() *modules.Module // what init functions registered
	built = sync.OnceValue(func() *modules.Registry {
		r := modules.NewRegistry()
		for _, make := range known {
			r.Add(make())
		}
		return r
	})
)

// Register adds returners to the default register. They are created on first use. Call it from init only.
func Register(list ...func() *modules.Module) { known = append(known, list...) }

// All lists the returners that the program has.
func All() []*modules.Module { return built().All() }

// Attr is an option of a returner: its name there, and in the configuration.
type Attr struct{ Option, Config string }

// Attrs returns attributes whose option has the same name.
func Attrs(names ...string) []Attr {
	list := make([]Attr, len(names))
	for i, n := range names {
		list[i] = Attr{n, n}
	}
	return list
}

// option returns a configuration value as by config.option: from the minion, from the master's options in the pillar,
// or from the pillar.
func option(c *modules.Call, key string) any {
	if v, ok := c.Config()[key]; ok {
		return v
	}
	pillar := c.PillarData()
	master, _ := pillar["master"].(map[string]any)
	if v, ok := master[key]; ok {
		return v
	}
	return pillar[key]
}

func set(v any) bool { return v != nil && v != "" }

// Options returns the settings of a returner (salt/returners/__init__.py: get_returner_options). In order of
// precedence they come from the job's ret_kwargs, from "<ret_config>.<name>…" if the job sets ret_config, and from
// "<name>.<attr>" or the map "<name>".
func Options(c *modules.Call, name string, ret map[string]any, attrs []Attr, defaults map[string]any) map[string]any {
	alternative := ""
	if v, ok := ret["ret_config"]; ok {
		alternative = pytext.Str(v)
	}
	out := map[string]any{}
	for _, a := range attrs {
		var v any
		if alternative != "" {
			v = lookUp(c, alternative+"."+name, a.Config)
		}
		if alternative == "" || !pytext.Truth(v) {
			v = lookUp(c, name, a.Config)
		}
		if !set(v) {
			v = defaults[a.Option]
			if _, ok := defaults[a.Option]; !ok {
				continue
			}
		}
		out[a.Option] = v
	}
	if more, ok := ret["ret_kwargs"].(map[string]any); ok {
		for k, v := range more {
			out[k] = v
		}
	}
	return out
}

// lookUp returns an attribute from the map with a name, or otherwise the option "<name>.<attr>".
func lookUp(c *modules.Call, name, attr string) any {
	m, _ := option(c, name).(map[string]any)
	if v, ok := m[attr]; ok {
		return v
	}
	return option(c, name+"."+attr)
}

// Return returns the argument ret. It is an error if that is not a dictionary.
func Return(c *modules.Call) (map[string]any, error) {
	ret, ok := c.Value("ret").(map[string]any)
	if !ok {
		return nil, &modules.TypeError{Msg: "the return must be a dictionary, not " + modules.TypeName(c.Value("ret"))}
	}
	return ret, nil
}

// JSON encodes a value like Salt's json.dumps, with the keys of maps sorted. Bytes become text; invalid UTF-8 is
// replaced.
func JSON(v any) (string, error) {
	b, err := appendJSON(nil, v, 0)
	return string(b), err
}

// maxDepth bounds the nesting of what is written.
const maxDepth = 200

func appendJSON(b []byte, v any, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("cannot write JSON: it is nested too deep")
	}
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return fmt.Append(b, v), nil
	case int, int64, uint64, *big.Int:
		return fmt.Append(b, v), nil
	case float64:
		text := pytext.Float(v)
		switch text {
		case "nan":
			text = "NaN"
		case "inf":
			text = "Infinity"
		case "-inf":
			text = "-Infinity"
		}
		return append(b, text...), nil
	case string:
		return appendText(b, v), nil
	case []byte:
		return appendText(b, string(v)), nil
	case time.Time:
		return appendText(b, pytext.Str(v)), nil
	case []any:
		b = append(b, '[')
		for i, x := range v {
			if i > 0 {
				b = append(b, ", "...)
			}
			var err error
			if b, err = appendJSON(b, x, depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case map[string]any:
		m := make(map[any]any, len(v))
		for k, x := range v {
			m[k] = x
		}
		return appendMap(b, m, depth)
	case map[any]any:
		return appendMap(b, v, depth)
	}
	return appendText(b, pytext.Str(v)), nil
}

func appendMap(b []byte, m map[any]any, depth int) ([]byte, error) {
	b = append(b, '{')
	for i, k := range pytext.SortKeys(m) {
		if i > 0 {
			b = append(b, ", "...)
		}
		name := pytext.Str(k)
		switch k := k.(type) {
		case bool:
			name = fmt.Sprint(k)
		case nil:
			name = "null"
		}
		b = append(appendText(b, name), ": "...)
		var err error
		if b, err = appendJSON(b, m[k], depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '\b':
			b = append(b, `\b`...)
		case r == '\f':
			b = append(b, `\f`...)
		case r < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}

// Parse reads JSON that a returner has written.
func Parse(text string) (any, error) {
	v, err := pyjson.Parse([]byte(text))
	if err != nil {
		return nil, modules.Errorf("cannot read what was stored: %s", err)
	}
	return v, nil
}

// NewJID returns a job id for the time now.
func NewJID(now time.Time) string {
	now = now.Local()
	return now.Format("20060102150405") + fmt.Sprintf("%06d", now.Nanosecond()/1000)
}

// PrepJID implements prep_jid for returners that need no preparation.
func PrepJID(_ context.Context, c *modules.Call) (any, error) {
	if v := c.Value("passed_jid"); v != nil {
		return v, nil
	}
	return NewJID(c.Now()), nil
}

// JobInstance returns a job in the form of a job listing (salt/utils/jid.py: format_jid_instance).
func JobInstance(jid string, load map[string]any) map[string]any {
	get := func(key string, def any) any {
		if v, ok := load[key]; ok {
			return v
		}
		return def
	}
	args, _ := load["arg"].([]any)
	if args == nil {
		args = []any{}
	}
	job := map[string]any{"Function": get("fun", "unknown-function"), "Arguments": args, "Target": get("tgt", "unknown-target"),
		"Target-type": get("tgt_type", "list"), "User": get("user", "root"), "StartTime": startTime(jid)}
	kwargs, _ := load["kwargs"].(map[string]any)
	if v, ok := load["metadata"]; ok {
		job["Metadata"] = v
	} else if v, ok := kwargs["metadata"]; ok {
		job["Metadata"] = v
	} else {
		for _, a := range args {
			m, _ := a.(map[string]any)
			if v, ok := m["metadata"]; ok && m["__kwarg__"] == true {
				job["Metadata"] = v
				break
			}
		}
	}
	return job
}

// startTime returns the time in a job id, or "" if the id contains none.
func startTime(jid string) string {
	if len(jid) != 20 && (len(jid) < 21 || jid[20] != '_') {
		return ""
	}
	t, err := time.Parse("20060102150405", jid[:14])
	if err != nil {
		return ""
	}
	return t.Format("2006, Jan 02 15:04:05.") + jid[14:20]
}

// KeepSeconds returns how many seconds jobs are kept (salt/utils/job.py: get_keep_jobs_seconds).
func KeepSeconds(c *modules.Call) int64 {
	seconds := int64(86400)
	if n, err := modules.ToInt(c.Opt("keep_jobs_seconds")); err == nil {
		seconds = n
	}
	if hours, err := modules.ToInt(c.Opt("keep_jobs")); err == nil && seconds == 86400 && hours != 24 {
		seconds = hours * 3600
	}
	return seconds
}

// Def makes the declaration of a returner's function; the parameters are those that Salt's have, those with "=" in front optional.
func Def(name, doc string, run modules.Func, params ...string) modules.Def {
	d := modules.Def{Name: name, Doc: doc, Run: run}
	for _, p := range params {
		optional := strings.HasPrefix(p, "=")
		d.Params = append(d.Params, modules.Param{Name: strings.TrimPrefix(p, "="), Optional: optional})
	}
	return d
}

// Prep returns the declaration of the function prep_jid.
func Prep() modules.Def {
	return Def("prep_jid", "Answer with the job id that was passed, or a new one.", PrepJID, "=nocache", "=passed_jid")
}
