package jinja

import (
	"math/rand/v2"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// builtinGlobal returns one of Jinja's own globals, or nil. They are created on use, because most templates need none
// of them.
func builtinGlobal(name string) any {
	switch name {
	case "range":
		return &Func{Name: "safe_range", Fn: rangeFunc}
	case "dict":
		return &dictClass{}
	case "namespace":
		return &Func{Name: "Namespace", Fn: func(_ *Run, a Args) (any, error) {
			d, err := makeDict(a, false)
			return &Namespace{d}, err
		}}
	case "cycler":
		return &Func{Name: "Cycler", Fn: func(_ *Run, a Args) (any, error) {
			if len(a.Pos) == 0 {
				return nil, raise("RuntimeError", "at least one item has to be provided")
			}
			return &cycler{items: a.Pos}, nil
		}}
	case "joiner":
		return &Func{Name: "Joiner", Fn: func(_ *Run, a Args) (any, error) {
			args, err := a.Bind("__init__", []string{"sep"}, ", ")
			if err != nil {
				return nil, err
			}
			return &joiner{sep: args[0]}, nil
		}}
	case "lipsum":
		return &Func{Name: "generate_lorem_ipsum", Fn: loremIpsum}
	}
	return nil
}

// maxRange is MAX_RANGE of jinja2.sandbox.
const maxRange = 100_000

// rangeFunc implements the sandbox's range, which refuses ranges over the limit when they are created.
func rangeFunc(_ *Run, a Args) (any, error) {
	if len(a.Kw) > 0 {
		return nil, typeError("range() takes no keyword arguments")
	}
	g := &Range{step: 1}
	// Python's range takes one to three arguments. A single one is the end.
	to := []*int64{&g.start, &g.stop, &g.step}
	switch len(a.Pos) {
	case 0:
		return nil, typeError("range expected at least 1 argument, got 0")
	case 1:
		to = to[1:2]
	case 2, 3:
	default:
		return nil, typeError("range expected at most 3 arguments, got %d", len(a.Pos))
	}
	for i, v := range a.Pos {
		n, err := toIndex(v)
		if err != nil {
			return nil, err
		}
		*to[i] = int64(n)
	}
	if g.step == 0 {
		return nil, valueError("range() arg 3 must not be zero")
	}
	// A negative length has overflowed.
	if n := g.Len(); n > maxRange || n < 0 {
		return nil, raise("OverflowError", "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
	}
	return g, nil
}

// dictClass is the class dict as a value, or OrderedDict if ordered is set.
type dictClass struct{ ordered bool }

// DictClass returns the class OrderedDict, for environments that offer it as a global.
func DictClass() any { return &dictClass{ordered: true} }

func (*dictClass) TypeName() string { return "type" }

func (c *dictClass) Repr() string {
	if c.ordered {
		return "<class 'collections.OrderedDict'>"
	}
	return "<class 'dict'>"
}

// Call creates a dict.
func (c *dictClass) Call(_ *Run, a Args) (any, error) {
	d, err := makeDict(a, c.ordered)
	return d, err
}

// GetAttr returns fromkeys, the only class method that templates use.
func (c *dictClass) GetAttr(r *Run, name string) (any, bool, error) {
	if name != "fromkeys" {
		return nil, false, nil
	}
	return &Func{Name: "fromkeys", Fn: func(_ *Run, a Args) (any, error) {
		args, err := a.Bind("fromkeys", []string{"iterable", "value"}, nil)
		if err != nil {
			return nil, err
		}
		keys, err := Collect(args[0])
		if err != nil {
			return nil, err
		}
		d := &pyobj.Dict{Ordered: c.ordered}
		for _, k := range keys {
			if err := d.Set(k, args[1]); err != nil {
				return nil, err
			}
		}
		return d, nil
	}}, true, nil
}

// makeDict implements Python's dict(…).
func makeDict(a Args, ordered bool) (*pyobj.Dict, error) {
	d := &pyobj.Dict{Ordered: ordered}
	if len(a.Pos) > 1 {
		return nil, typeError("dict expected at most 1 argument, got %d", len(a.Pos))
	}
	return d, updateDict(d, a)
}

// updateDict implements dict.update: a mapping or a sequence of pairs, then keywords.
func updateDict(d *pyobj.Dict, a Args) error {
	if len(a.Pos) > 0 {
		switch from := a.Pos[0].(type) {
		case *pyobj.Dict:
			d.Update(from)
		case *Undefined:
			if from.kind == Strict {
				return from.fail()
			}
		default:
			items, err := Collect(from)
			if err != nil {
				return err
			}
			for i, it := range items {
				// Each element is itself an iterable of two.
				pair, err := Collect(it)
				if err != nil {
					return typeError("cannot convert dictionary update sequence element #%d to a sequence", i)
				}
				if len(pair) != 2 {
					return valueError("dictionary update sequence element #%d has length %d; 2 is required", i, len(pair))
				}
				if err := d.Set(pair[0], pair[1]); err != nil {
					return err
				}
			}
		}
	}
	for _, kw := range a.Kw {
		_ = d.Set(kw.Name, kw.Value)
	}
	return nil
}

// loremIpsum implements Jinja's lipsum: paragraphs of filler text, as HTML by default.
func loremIpsum(r *Run, a Args) (any, error) {
	args, err := a.Bind("generate_lorem_ipsum", []string{"n", "html", "min", "max"}, int64(5), true, int64(20), int64(100))
	if err != nil {
		return nil, err
	}
	n, err := toIndex(args[0])
	if err != nil {
		return nil, err
	}
	low, err := toIndex(args[2])
	if err != nil {
		return nil, err
	}
	high, err := toIndex(args[3])
	if err != nil {
		return nil, err
	}
	html, err := Truth(args[1])
	if err != nil {
		return nil, err
	}
	words := strings.Fields(loremWords)
	// Jinja has no upper bounds and would write gigabytes.
	if high <= low || low < 0 || high > 10000 || n > 1000 {
		return nil, valueError("empty range for randrange() (%d, %d, %d)", low, high, high-low)
	}
	var parts []string
	for range n {
		var b strings.Builder
		capital := true
		// The lengths of sentences and clauses are random, as in Jinja.
		count := low + rand.IntN(high-low)
		comma, stop := 0, 0
		for i := range count {
			w := words[rand.IntN(len(words))]
			if capital {
				w = strings.ToUpper(w[:1]) + w[1:]
				capital = false
			}
			if i-comma > 3+rand.IntN(5) {
				comma = i
				w += ","
			}
			if i-stop > 10+rand.IntN(10) {
				comma, stop = i, i
				w = strings.TrimSuffix(w, ",") + "."
				capital = true
			}
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(w)
		}
		p := strings.TrimRight(b.String(), ",.") + "."
		if html {
			p = "<p>" + p + "</p>"
		}
		parts = append(parts, p)
	}
	if html {
		return pyobj.Markup(strings.Join(parts, "\n")), nil
	}
	return strings.Join(parts, "\n\n"), nil
}

// loremWords is shorter than Jinja's list. The words are chosen at random anyway.
const loremWords = "a ac accumsan ad adipiscing aenean aliquam amet ante aptent arcu at auctor augue bibendum blandit " +
	"class commodo condimentum congue consectetuer consequat conubia convallis cras cubilia cum curabitur curae cursus " +
	"dapibus diam dictum dictumst dignissim dis dolor donec dui duis egestas eget eleifend elementum elit enim erat eros"
