package modules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/pytext"
)

// bind fits the arguments of a call to the parameters by Python's rules. The texts of the errors are Python's, since users
// read them: Salt answers with the TypeError's text.
func (d *Def) bind(args []any, kwargs map[string]any) (values map[string]any, extra []any, extraKw map[string]any, err error) {
	if err := d.checkKeywords(kwargs); err != nil {
		return nil, nil, nil, err
	}
	values = make(map[string]any, len(d.Params))
	used := 0
	for _, p := range d.Params {
		if p.KeywordOnly || used == len(args) {
			continue
		}
		values[p.Name] = args[used]
		used++
	}
	if used < len(args) && d.Args == "" {
		return nil, nil, nil, d.tooMany(len(args))
	}
	extraKw = map[string]any{}
	twice := ""
	for name, v := range kwargs {
		if _, ok := d.param(name); !ok {
			extraKw[name] = v
			continue
		}
		if _, have := values[name]; have && (twice == "" || name < twice) {
			twice = name
		}
		values[name] = v
	}
	if twice != "" {
		return nil, nil, nil, &TypeError{fmt.Sprintf("%s() got multiple values for argument '%s'", d.python(), twice)}
	}
	return values, append([]any{}, args[used:]...), extraKw, d.fill(values)
}

// border turns the arguments of a call into the kind of values that the function works with.
func (d *Def) border(args []any, kwargs map[string]any) ([]any, map[string]any) {
	convert := pyobj.Plain
	if d.Ordered {
		convert = pyobj.From
	}
	list := make([]any, len(args))
	for i, v := range args {
		list[i] = convert(v)
	}
	named := make(map[string]any, len(kwargs))
	for k, v := range kwargs {
		named[k] = convert(v)
	}
	return list, named
}

// checkKeywords refuses keywords the function does not take (salt/utils/args.py invalid_kwargs).
func (d *Def) checkKeywords(kwargs map[string]any) error {
	if d.Kwargs != "" {
		return nil
	}
	bad := d.unknown(kwargs)
	if bad == nil {
		return nil
	}
	for i, name := range bad {
		bad[i] = name + "=" + pytext.Str(kwargs[name])
	}
	return Usagef("The following keyword arguments are not valid: %s", strings.Join(bad, ", "))
}

// unknown are the keywords that are no parameters, sorted.
func (d *Def) unknown(kwargs map[string]any) []string {
	var names []string
	for name := range kwargs {
		if _, ok := d.param(name); !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (d *Def) fill(values map[string]any) error {
	var missing, missingKw []string
	for _, p := range d.Params {
		if _, ok := values[p.Name]; ok {
			continue
		}
		switch {
		case !p.Required():
			if values[p.Name] = p.Default; d.Ordered {
				values[p.Name] = pyobj.From(p.Default)
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
