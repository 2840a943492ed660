package jinja

import (
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/textwrap"
	"github.com/brine-salt/brine/modules/pyobj"
)

// builtinFilter returns one of Jinja's filters, or nil. Filters without parameters refuse arguments under the name
// of their Python function.
func builtinFilter(name string) Filter {
	f := filterOf(name)
	if fn := bareFilter(name); fn != "" {
		// The error must come before the filter looks at its value.
		return func(r *Run, v any, a Args) (any, error) {
			if err := a.refuseArgs(fn); err != nil {
				return nil, err
			}
			return f(r, v, a)
		}
	}
	return f
}

// refuseArgs fails if a filter without parameters was given arguments. For functions written in C, Python words the
// error differently.
func (a *Args) refuseArgs(fn string) error {
	switch fn {
	case "abs", "len":
		return a.refuseOne(fn)
	case "sync_do_first", "do_last", "do_random":
		a.Before++ // Python also counts the environment
	}
	return a.None(fn)
}

// bareFilter returns the Python name of a filter without parameters, or "" if it has some.
func bareFilter(name string) string {
	switch name {
	case "abs":
		return "abs"
	case "count", "length":
		return "len"
	case "e", "escape":
		return "escape"
	case "first", "list":
		return "sync_do_" + name
	case "safe":
		return "do_mark_safe"
	case "string":
		return "soft_str"
	case "capitalize", "forceescape", "items", "last", "lower", "pprint", "random", "reverse", "striptags", "title", "upper", "urlencode", "wordcount":
		return "do_" + name
	}
	return ""
}

// filterOf is the table of filters. A switch costs no start-up time and no memory, unlike a map.
func filterOf(name string) Filter {
	switch name {
	case "abs":
		return filterAbs
	case "attr":
		return filterAttr
	case "batch":
		return filterBatch
	case "capitalize":
		return textFilter(capitalize)
	case "center":
		return filterCenter
	case "count", "length":
		return filterLength
	case "d", "default":
		return filterDefault
	case "dictsort":
		return filterDictsort
	case "e", "escape":
		return func(_ *Run, v any, a Args) (any, error) { return escapedAny(v) }
	case "filesizeformat":
		return filterFilesize
	case "first":
		return filterFirst
	case "float":
		return filterFloat
	case "forceescape":
		return func(_ *Run, v any, _ Args) (any, error) {
			s, err := Str(v)
			return pyobj.Markup(Escape(s)), err
		}
	case "format":
		return filterFormat
	case "groupby":
		return filterGroupby
	case "indent":
		return filterIndent
	case "int":
		return filterInt
	case "items":
		return filterItems
	case "join":
		return filterJoin
	case "last":
		return filterLast
	case "list":
		return func(_ *Run, v any, _ Args) (any, error) {
			items, err := Collect(v)
			return &pyobj.List{Items: items}, err
		}
	case "lower":
		return textFilter(lower)
	case "map":
		return filterMap
	case "max":
		return func(r *Run, v any, a Args) (any, error) { return minMax(r, v, a, true) }
	case "min":
		return func(r *Run, v any, a Args) (any, error) { return minMax(r, v, a, false) }
	case "pprint":
		return func(_ *Run, v any, _ Args) (any, error) { return Pretty(v), nil }
	case "random":
		return filterRandom
	case "reject":
		return selectFilter(false, false)
	case "rejectattr":
		return selectFilter(false, true)
	case "replace":
		return filterReplace
	case "reverse":
		return filterReverse
	case "round":
		return filterRound
	case "safe":
		return func(_ *Run, v any, _ Args) (any, error) {
			s, err := Str(v)
			return pyobj.Markup(s), err
		}
	case "select":
		return selectFilter(true, false)
	case "selectattr":
		return selectFilter(true, true)
	case "slice":
		return filterSlice
	case "sort":
		return filterSort
	case "string":
		return func(_ *Run, v any, _ Args) (any, error) { return softText(v) }
	case "striptags":
		return func(_ *Run, v any, _ Args) (any, error) {
			s, err := Str(v)
			return stripTags(s), err
		}
	case "sum":
		return filterSum
	case "title":
		return textFilter(filterTitle)
	case "tojson":
		return filterToJSON
	case "trim":
		return filterTrim
	case "truncate":
		return filterTruncate
	case "unique":
		return filterUnique
	case "upper":
		return textFilter(upper)
	case "urlencode":
		return filterURLEncode
	case "urlize":
		return filterURLize
	case "wordcount":
		return filterWordcount
	case "wordwrap":
		return filterWordwrap
	case "xmlattr":
		return filterXMLAttr
	}
	return nil
}

// softText implements markupsafe's soft_str: Markup stays Markup, everything else becomes a str.
func softText(v any) (any, error) {
	if _, ok := v.(pyobj.Markup); ok {
		return v, nil
	}
	return anyStr(v)
}

// textFilter returns a filter that applies a function to a text. Markup stays Markup.
func textFilter(fn func(string) string) Filter {
	return func(_ *Run, v any, _ Args) (any, error) {
		_, markup := v.(pyobj.Markup)
		s, err := Str(v)
		return textLike(fn(s), markup), err
	}
}

// escapedAny returns escapeValue's Markup as any, as filters return it.
func escapedAny(v any) (any, error) {
	m, err := escapeValue(v)
	return m, err
}

// filterAttr implements Jinja's attr: it looks up attributes only, and not items as the dot does.
func filterAttr(r *Run, v any, a Args) (any, error) {
	a.Before++ // Python also counts the environment
	args, err := a.Bind("do_attr", []string{"obj", "name"}[1:])
	if err != nil {
		return nil, err
	}
	name, ok := isText(args[0])
	if !ok {
		return nil, typeError("attribute name must be string, not '%s'", pyobj.TypeName(args[0]))
	}
	x, ok, err := r.lookupAttr(v, name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return r.undefinedAttr(v, name), nil
	}
	return x, nil
}

func filterCenter(_ *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_center", []string{"width"}, int64(80))
	if err != nil {
		return nil, err
	}
	n, err := toIndex(args[0])
	if err != nil {
		return nil, err
	}
	// The width is checked here, because padding allocates all of it.
	if n > MaxText {
		return nil, TooLong()
	}
	return textFilter(func(s string) string { return padText(s, n, " ", "center") })(nil, v, Args{})
}

func filterLength(_ *Run, v any, _ Args) (any, error) {
	n, err := lengthOf(v)
	return int64(n), err
}

// filterDefault implements Jinja's default. With boolean set it also replaces values that are false.
func filterDefault(_ *Run, v any, a Args) (any, error) {
	// Most uses return here, before Bind: the value is defined, and there is no second argument.
	if _, undef := v.(*Undefined); !undef && len(a.Pos) < 2 && len(a.Kw) == 0 {
		return v, nil
	}
	var list [2]any
	args, err := a.bind(list[:], "do_default", []string{"default_value", "boolean"}, "", false)
	if err != nil {
		return nil, err
	}
	if _, undef := v.(*Undefined); undef {
		return args[0], nil
	}
	boolean, err := Truth(args[1])
	if err != nil || !boolean {
		return v, err
	}
	yes, err := Truth(v)
	if err != nil || yes {
		return v, err
	}
	return args[0], nil
}

// ignoreCase returns text in lower case for comparisons, and other values unchanged.
func ignoreCase(v any) any {
	if s, ok := isText(v); ok {
		return lower(s)
	}
	return v
}

// filterFormat implements Jinja's format, which is the % operator with arguments.
func filterFormat(r *Run, v any, a Args) (any, error) {
	if len(a.Pos) > 0 && len(a.Kw) > 0 {
		return nil, raise("FilterArgumentError", "can't handle positional and keyword arguments at the same time")
	}
	t, err := softText(v)
	if err != nil {
		return nil, err
	}
	s, _ := isText(t)
	if len(a.Kw) == 0 {
		// The arguments are a tuple for the operator, or a dict if they are keywords.
		return r.percentFormat(t, s, pyobj.Tuple(a.Pos))
	}
	d := &pyobj.Dict{}
	for _, kw := range a.Kw {
		_ = d.Set(kw.Name, kw.Value)
	}
	return r.percentFormat(t, s, d)
}

// filterIndent implements Jinja's indent. Empty lines stay empty unless blank is set.
func filterIndent(r *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_indent", []string{"width", "first", "blank"}, int64(4), false, false)
	if err != nil {
		return nil, err
	}
	by, ok := isText(args[0])
	if !ok {
		n, isInt := toInteger(args[0])
		if !isInt {
			return nil, typeError("can't multiply sequence by non-int of type '%s'", pyobj.TypeName(args[0]))
		}
		if n > maxWidth {
			return nil, TooLong()
		}
		// A negative width is empty, as " " * -1 is in Python.
		by = strings.Repeat(" ", int(max(n, 0)))
	}
	first, err := Truth(args[1])
	if err != nil {
		return nil, err
	}
	blank, err := Truth(args[2])
	if err != nil {
		return nil, err
	}
	s, isStr := isText(v)
	// Python appends a line break first, so the error depends on what + does with the type.
	if !isStr {
		switch u := v.(type) {
		case *pyobj.List: // the list receives the line break
			return nil, attributeError(v, "splitlines")
		case *Undefined:
			return nil, u.fail()
		case pyobj.Tuple, []byte:
			_, err := r.addValues(v, "\n")
			return nil, err
		}
		return nil, typeError("unsupported operand type(s) for +=: '%s' and 'str'", pyobj.TypeName(v))
	}
	_, markup := v.(pyobj.Markup)
	lines := pytext.SplitLines(s+"\n", false)
	// The size is computed before the text is built.
	if total := len(lines) * len(by); total > MaxText {
		return nil, TooLong()
	}
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		// By default the first line is not indented.
		if i == 0 && first || i > 0 && (blank || line != "") {
			b.WriteString(by)
		}
		b.WriteString(line)
	}
	return textLike(b.String(), markup), nil
}

// filterJoin implements Jinja's join.
func filterJoin(r *Run, v any, a Args) (any, error) {
	a.Before++ // Python also counts the environment
	var list [2]any
	args, err := a.bind(list[:], "sync_do_join", []string{"d", "attribute"}, "", nil)
	if err != nil {
		return nil, err
	}
	var items []any
	// A list is read in place; Collect would copy it.
	if l, ok := v.(*pyobj.List); ok && args[1] == nil {
		items = l.Items
	} else if items, err = Collect(v); err != nil {
		return nil, err
	}
	if args[1] != nil {
		by := r.attrGetter(args[1], nil, nil)
		for i := range items {
			if items[i], err = by(items[i]); err != nil {
				return nil, err
			}
		}
	}
	markup := false
	// If one part is safe the result is Markup, and the other parts are escaped.
	if r.autoescape {
		_, markup = args[0].(pyobj.Markup)
		for _, x := range items {
			_, is := x.(pyobj.Markup)
			markup = markup || is
		}
	}
	part := Str
	if markup {
		part = func(v any) (string, error) {
			m, err := escapeValue(v)
			return string(m), err
		}
	}
	sep, err := part(args[0])
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	// The limit is checked for each item, since the number of items is unknown.
	for i, x := range items {
		s, err := part(x)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteString(sep)
		}
		if b.Len()+len(s)+len(sep) > MaxText {
			return nil, TooLong()
		}
		b.WriteString(s)
	}
	return textLike(b.String(), markup), nil
}

// filterReplace implements Jinja's replace. With autoescape, it depends on which arguments are safe what is escaped.
func filterReplace(r *Run, v any, a Args) (any, error) {
	a.Before++ // Python also counts the environment
	var list [3]any
	args, err := a.bind(list[:], "do_replace", []string{"old", "new", "count"}, nil)
	if err != nil {
		return nil, err
	}
	n := -1
	if args[2] != nil {
		if n, err = toIndex(args[2]); err != nil {
			return nil, err
		}
	}
	// Without autoescape everything is text.
	if !r.autoescape {
		s, err := Str(v)
		if err != nil {
			return nil, err
		}
		old, err := Str(args[0])
		if err != nil {
			return nil, err
		}
		repl, err := Str(args[1])
		if err != nil {
			return nil, err
		}
		return replaceText(s, old, repl, n)
	}
	_, sSafe := v.(pyobj.Markup)
	_, oldSafe := args[0].(pyobj.Markup)
	_, newSafe := args[1].(pyobj.Markup)
	var t any
	if oldSafe || newSafe && !sSafe {
		t, err = escapedAny(v)
	} else {
		t, err = softText(v)
	}
	if err != nil {
		return nil, err
	}
	old, err := softText(args[0])
	if err != nil {
		return nil, err
	}
	repl, err := softText(args[1])
	if err != nil {
		return nil, err
	}
	x, _, err := r.callMethod(t, "replace", Args{Pos: []any{old, repl, int64(n)}})
	return x, err
}

// filterTrim implements Jinja's trim, str.strip on any value.
func filterTrim(r *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_trim", []string{"chars"}, nil)
	if err != nil {
		return nil, err
	}
	t, err := softText(v)
	if err != nil {
		return nil, err
	}
	x, _, err := r.callMethod(t, "strip", Args{Pos: args})
	return x, err
}

// filterTruncate implements Jinja's truncate. Texts that are longer by at most leeway are not cut.
func filterTruncate(r *Run, v any, a Args) (any, error) {
	a.Before++ // Python also counts the environment
	args, err := a.Bind("do_truncate", []string{"length", "killwords", "end", "leeway"}, int64(255), false, "...", nil)
	if err != nil {
		return nil, err
	}
	n, err := toIndex(args[0])
	if err != nil {
		return nil, err
	}
	leeway := 5
	if args[3] != nil {
		leeway, err = toIndex(args[3])
	}
	if err != nil {
		return nil, err
	}
	kill, err := Truth(args[1])
	if err != nil {
		return nil, err
	}
	end, err := Str(args[2])
	if err != nil {
		return nil, err
	}
	if n < runeCount(end) {
		return nil, raise("AssertionError", "expected length >= %d, got %d", runeCount(end), n)
	}
	if leeway < 0 {
		return nil, raise("AssertionError", "expected leeway >= 0, got %d", leeway)
	}
	// Texts within the leeway are not cut.
	size, err := lengthOf(v)
	if err != nil || size <= n+leeway {
		return v, err
	}
	s, ok := isText(v)
	if !ok {
		return nil, attributeError(v, "rsplit")
	}
	_, markup := v.(pyobj.Markup)
	s = firstRunes(s, n-runeCount(end))
	// The text is cut at the last blank, unless words may be cut.
	if !kill {
		if i := strings.LastIndexByte(s, ' '); i >= 0 {
			s = s[:i]
		}
	}
	if markup {
		end = Escape(end)
	}
	return textLike(s+end, markup), nil
}

// filterWordcount counts runs of word characters, Python's \w+.
func filterWordcount(_ *Run, v any, _ Args) (any, error) {
	s, err := Str(v)
	n, inside := 0, false
	for _, c := range s {
		word := c == '_' || textIs(string(c), "isalnum")
		if word && !inside {
			n++
		}
		inside = word
	}
	return int64(n), err
}

// filterWordwrap implements Jinja's wordwrap. Each line of the text is wrapped by itself, since textwrap would
// join them.
func filterWordwrap(r *Run, v any, a Args) (any, error) {
	a.Before++ // Python also counts the environment
	args, err := a.Bind("do_wordwrap", []string{"width", "break_long_words", "wrapstring", "break_on_hyphens"}, int64(79), true, nil, true)
	if err != nil {
		return nil, err
	}
	n, err := toIndex(args[0])
	if err != nil {
		return nil, err
	}
	long, err := Truth(args[1])
	if err != nil {
		return nil, err
	}
	hyphens, err := Truth(args[3])
	if err != nil {
		return nil, err
	}
	sep := "\n"
	if args[2] != nil {
		if sep, err = Str(args[2]); err != nil {
			return nil, err
		}
	}
	s, ok := isText(v)
	if !ok {
		return nil, attributeError(v, "splitlines")
	}
	if n <= 0 && s != "" {
		return nil, valueError("invalid width %d (must be > 0)", n)
	}
	var parts []string
	// A blank line stays a blank line.
	for _, line := range pytext.SplitLines(s, false) {
		parts = append(parts, strings.Join(textwrap.WrapOptions(line, n, textwrap.Options{KeepLong: !long, KeepHyphens: !hyphens, KeepBlanks: true}), sep))
	}
	return strings.Join(parts, sep), nil
}
