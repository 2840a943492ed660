package states

import (
	"github.com/brine-salt/brine/internal/pyobj"
)

// Low is one chunk of the low state: a state function with its arguments and requisites, in the order of the SLS.
type Low struct {
	d *pyobj.Dict
	// What the requisites look at again and again; kept in step with d.
	state, fun, name, id, sls string
	// reqs are the chunks behind the requisites, while mod_watch runs.
	reqs map[string][]*Low
}

// NewLow makes a chunk of a plain map or an ordered dict.
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
			l.note(key, v)
		}
	}
	return l
}

// note keeps the text of a part that every chunk has.
func (l *Low) note(key string, v any) {
	text, ok := v.(string)
	if !ok {
		text = pyobj.Str(v)
	}
	l.keep(key, text)
}

func (l *Low) keep(key, text string) {
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

// State, Fun, Name, ID and SLS are the parts that every chunk has.
func (l *Low) State() string { return l.state }

// Fun is the function after the dot.
func (l *Low) Fun() string { return l.fun }

// Name is the argument name.
func (l *Low) Name() string { return l.name }

// ID is the id of the state (__id__).
func (l *Low) ID() string { return l.id }

// SLS is the file the state is from (__sls__).
func (l *Low) SLS() string { return l.sls }

// Tag is the name under which the chunk's result is kept.
func (l *Low) Tag() string { return l.state + "_|-" + l.id + "_|-" + l.name + "_|-" + l.fun }

// Has tells whether the chunk has a key.
func (l *Low) Has(key string) bool {
	_, ok := l.d.Text(key)
	return ok
}

// Value is a plain value, nil if there is none.
func (l *Low) Value(key string) any { return pyobj.Plain(l.Ordered(key)) }

// Ordered is a value that keeps its order: collections are those of package pyobj.
func (l *Low) Ordered(key string) any {
	v, _ := l.d.Text(key)
	return v
}

// Truth is a value's truth, by Python's rules.
func (l *Low) Truth(key string) bool { return pyobj.Truth(l.Ordered(key)) }

// Set sets a value, plain or ordered.
func (l *Low) Set(key string, v any) {
	v = pyobj.From(v)
	_ = l.d.Set(key, v) // text is always a key
	l.note(key, v)
}

// Delete removes a key.
func (l *Low) Delete(key string) {
	l.d.Delete(key)
	l.keep(key, "")
}

// Keys are the keys in order.
func (l *Low) Keys() []string {
	keys := make([]string, 0, l.d.Len())
	for k := range l.d.All() {
		keys = append(keys, pyobj.Str(k))
	}
	return keys
}

// Reqs are, while mod_watch runs, the chunks behind a requisite of the state ("watch", "require", …).
func (l *Low) Reqs(requisite string) []*Low { return l.reqs[requisite] }

// Plain is the chunk as a plain value.
func (l *Low) Plain() map[string]any { return pyobj.PlainMap(l.d) }

// Dict is the chunk as an ordered dict.
func (l *Low) Dict() *pyobj.Dict { return l.d }

// copy is a chunk with the same values.
func (l *Low) copy() *Low {
	out := *l
	out.d = l.d.Copy()
	return &out
}
