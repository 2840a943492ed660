package states

import (
	"github.com/brine-salt/brine/modules/pyobj"
)

// A Low is one chunk of the low state: a state function with its arguments and requisites, in the order of the SLS.
type Low struct {
	d *pyobj.Dict
	// The parts that requisites compare with every other chunk, kept in step with d. Reading them from d each time
	// would make a run of n chunks look up a dict n² times.
	state, fun, name, id, sls string
	// reqs are the chunks behind the requisites, while mod_watch runs.
	reqs map[string][]*Low
}

// NewLow returns a chunk with the entries of a plain map or an ordered dict. It keeps a dict, and copies a map.
func NewLow(v any) *Low {
	d, ok := v.(*pyobj.Dict)
	if !ok {
		d, _ = pyobj.From(v).(*pyobj.Dict)
	}
	if d == nil {
		d = &pyobj.Dict{}
	}
	l := &Low{d: d}
	for _, key := range [...]string{"state", "fun", "name", "__id__", "__sls__"} {
		if v, ok := d.Get(key); ok {
			l.noteText(key, v)
		}
	}
	return l
}

// noteText keeps the text of one of the parts that every chunk has.
func (l *Low) noteText(key string, v any) {
	text, ok := v.(string)
	if !ok {
		text = pyobj.Str(v)
	}
	l.keepText(key, text)
}

// keepText stores a part under its field.
func (l *Low) keepText(key, text string) {
	switch key {
	case "state":
		l.state = text
	case "fun":
		l.fun = text
	case "name":
		l.name = text
	case "__id__":
		l.id = text
	case "__sls__":
		l.sls = text
	}
}

// State returns the state module's name, as the SLS has it.
func (l *Low) State() string { return l.state }

// Fun returns the function's name, after the dot.
func (l *Low) Fun() string { return l.fun }

// Name returns the argument name.
func (l *Low) Name() string { return l.name }

// ID returns the id of the state (__id__).
func (l *Low) ID() string { return l.id }

// SLS returns the SLS file that the state comes from (__sls__).
func (l *Low) SLS() string { return l.sls }

// Tag returns the key of the chunk's record in the results, in Salt's format.
func (l *Low) Tag() string { return l.state + "_|-" + l.id + "_|-" + l.name + "_|-" + l.fun }

// Has reports whether the chunk has a key.
func (l *Low) Has(key string) bool {
	_, ok := l.d.Text(key)
	return ok
}

// Value returns a plain value, nil if the key is missing.
func (l *Low) Value(key string) any { return pyobj.Plain(l.Ordered(key)) }

// Ordered returns a value in the order of the SLS: collections are those of package pyobj.
func (l *Low) Ordered(key string) any {
	v, _ := l.d.Text(key)
	return v
}

// Truth reports whether a value is true by Python's rules.
func (l *Low) Truth(key string) bool { return pyobj.Truth(l.Ordered(key)) }

// Set stores a value, plain or ordered.
func (l *Low) Set(key string, v any) {
	v = pyobj.From(v)
	_ = l.d.Set(key, v) // text is always a key
	l.noteText(key, v)
}

// Delete removes a key.
func (l *Low) Delete(key string) {
	l.d.Delete(key)
	l.keepText(key, "")
}

// Keys returns the keys in the order of the SLS.
func (l *Low) Keys() []string {
	keys := make([]string, 0, l.d.Len())
	for k := range l.d.All() {
		keys = append(keys, pyobj.Str(k))
	}
	return keys
}

// Reqs returns, while mod_watch runs, the chunks behind a requisite of the state ("watch", "require", …).
func (l *Low) Reqs(requisite string) []*Low { return l.reqs[requisite] }

// Plain returns the chunk as a plain value.
func (l *Low) Plain() map[string]any { return pyobj.PlainMap(l.d) }

// Dict returns the chunk's own ordered dict. Callers must not change it.
func (l *Low) Dict() *pyobj.Dict { return l.d }

// shallowCopy returns a chunk with the same values. Setting a key of the copy leaves the original as it is;
// changing a list does not.
func (l *Low) shallowCopy() *Low {
	out := *l
	out.d = l.d.Copy()
	return &out
}
