package modules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// bind assigns the arguments of a call to the parameters by Python's rules. Errors have Python's texts, because Salt
// returns the text of the TypeError to the user.
func (c *Call) bind(d *Def, args []any, kwargs map[string]any) error {
	if err := d.checkKeywords(kwargs); err != nil {
		return err
	}
	c.args, c.kwargs = args, kwargs
	c.def, c.values, c.given = d, make([]any, len(d.Params)), make([]bool, len(d.Params))
	used := 0
	for i := range d.Params {
		if d.Params[i].KeywordOnly || used == len(args) {
			continue
		}
		c.values[i], c.given[i] = d.border(args[used]), true
		used++
	}
	if used < len(args) && d.Args == "" {
		return d.tooMany(len(args))
	}
	c.Extra = make([]any, len(args)-used)
	for i, v := range args[used:] {
		c.Extra[i] = d.border(v)
	}
	c.Keywords = map[string]any{}
	twice := ""
	for name, v := range kwargs {
		i := d.index(name)
		if i < 0 {
			c.Keywords[name] = d.border(v)
			continue
		}
		if c.given[i] && (twice == "" || name < twice) {
			twice = name
		}
		c.values[i], c.given[i] = d.border(v), true
	}
	if twice != "" {
		return &TypeError{fmt.Sprintf("%s() got multiple values for argument '%s'", d.python(), twice)}
	}
	return c.fill()
}

// InOrder returns an argument that is a parameter or a further keyword, with its dictionaries in the caller's order
// (package modules/pyobj). It reports whether the caller passed the argument. It is for functions that are not
// Ordered as a whole.
func (c *Call) InOrder(name string) (any, bool) {
	if v, ok := c.kwargs[name]; ok {
		return pyobj.From(v), true
	}
	at := 0
	for i := range c.def.Params {
		switch p := &c.def.Params[i]; {
		case p.KeywordOnly:
		case p.Name == name && at < len(c.args):
			return pyobj.From(c.args[at]), true
		default:
			at++
		}
	}
	return nil, false
}

// KeywordInOrder returns one of Keywords with its dictionaries in the caller's order; see [Call.InOrder].
func (c *Call) KeywordInOrder(name string) any {
	if v, ok := c.kwargs[name]; ok {
		return pyobj.From(v)
	}
	return c.Keywords[name]
}

// border converts an argument to ordered values if the function is Ordered, and to plain ones otherwise.
func (d *Def) border(v any) any {
	if d.Ordered {
		return pyobj.From(v)
	}
	return pyobj.Plain(v)
}

// checkKeywords returns an error for keywords that the function does not accept (salt/utils/args.py invalid_kwargs).
func (d *Def) checkKeywords(kwargs map[string]any) error {
	if d.Kwargs != "" {
		return nil
	}
	bad := d.unknown(kwargs)
	if bad == nil {
		return nil
	}
	for i, name := range bad {
		bad[i] = name + "=" + pyobj.Str(pyobj.From(kwargs[name]))
	}
	return &UsageError{Msg: "The following keyword arguments are not valid: " + strings.Join(bad, ", "), Early: true}
}

// unknown returns the keyword arguments that are not parameters, sorted.
func (d *Def) unknown(kwargs map[string]any) []string {
	var names []string
	for name := range kwargs {
		if d.index(name) < 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// fill sets parameters that the caller omitted to their defaults. It returns an error if a required one is missing.
func (c *Call) fill() error {
	d := c.def
	var missing, missingKw []string
	for i := range d.Params {
		if c.given[i] {
			continue
		}
		p := &d.Params[i]
		switch {
		case !p.Required():
			if c.values[i] = p.Default; d.Ordered {
				c.values[i] = pyobj.From(p.Default)
			}
		case p.KeywordOnly:
			missingKw = append(missingKw, "'"+p.Name+"'")
		default:
			missing = append(missing, "'"+p.Name+"'")
		}
	}
	if missing != nil {
		return d.missing("positional", missing)
	}
	if missingKw != nil {
		return d.missing("keyword-only", missingKw)
	}
	return nil
}

func (d *Def) missing(kind string, names []string) error {
	list, plural := names[0], ""
	if n := len(names); n == 2 {
		list, plural = names[0]+" and "+names[1], "s"
	} else if n > 2 {
		list, plural = strings.Join(names[:n-1], ", ")+", and "+names[n-1], "s"
	}
	return &TypeError{fmt.Sprintf("%s() missing %d required %s argument%s: %s", d.python(), len(names), kind, plural, list)}
}

func (d *Def) tooMany(given int) error {
	required, most := 0, 0
	for _, p := range d.Params {
		if p.KeywordOnly {
			continue
		}
		most++
		if p.Required() {
			required++
		}
	}
	takes, plural := fmt.Sprint(most), "s"
	if required != most {
		takes = fmt.Sprintf("from %d to %d", required, most)
	} else if most == 1 {
		plural = ""
	}
	were := "were"
	if given == 1 {
		were = "was"
	}
	return &TypeError{fmt.Sprintf("%s() takes %s positional argument%s but %d %s given", d.python(), takes, plural, given, were)}
}
