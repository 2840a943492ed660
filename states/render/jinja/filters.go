package jinja

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/internal/textwrap"
)

// builtinFilter is one of Jinja's filters, nil if there is none of the name.
func builtinFilter(name string) Filter {
	switch name {
	case "abs":
		return filterAbs
	case "attr":
		return filterAttr
	case "batch":
		return filterBatch
	case "capitalize":
		return softly(capitalize)
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
		return softly(lower)
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
		return selector(false, false)
	case "rejectattr":
		return selector(false, true)
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
		return selector(true, false)
	case "selectattr":
		return selector(true, true)
	case "slice":
		return filterSlice
	case "sort":
		return filterSort
	case "string":
		return func(_ *Run, v any, _ Args) (any, error) { return soft(v) }
	case "striptags":
		return func(_ *Run, v any, _ Args) (any, error) {
			s, err := Str(v)
			return stripTags(s), err
		}
	case "sum":
		return filterSum
	case "title":
		return softly(filterTitle)
	case "tojson":
		return filterToJSON
	case "trim":
		return filterTrim
	case "truncate":
		return filterTruncate
	case "unique":
		return filterUnique
	case "upper":
		return softly(upper)
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

// soft is soft_str: text stays what it is.
func soft(v any) (any, error) {
	if _, ok := v.(pyobj.Markup); ok {
		return v, nil
	}
	return anyStr(v)
}

// softly makes a filter of a function of text.
func softly(fn func(string) string) Filter {
	return func(_ *Run, v any, _ Args) (any, error) {
		_, markup := v.(pyobj.Markup)
		s, err := Str(v)
		return textLike(fn(s), markup), err
	}
}

func escapedAny(v any) (any, error) {
	m, err := escaped(v)
	return m, err
}

func filterAbs(_ *Run, v any, _ Args) (any, error) {
	switch x := v.(type) {
	case float64:
		return math.Abs(x), nil
	case *Undefined:
		return nil, x.noMethod("__abs__", "bad operand type for abs(): '%s'")
	}
	if !isNumber(v) {
		return nil, typeError("bad operand type for abs(): '%s'", pyobj.TypeName(v))
	}
	n := toBig(v)
	return pyobj.Int(new(big.Int).Abs(n)), nil
}

// noMethod is the error of an operation that undefined values do not know.
func (u *Undefined) noMethod(_, format string) error { return typeError(format, u.TypeName()) }

func filterAttr(r *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_attr", []string{"obj", "name"}[1:])
	if err != nil {
		return nil, err
	}
	name, err := Str(args[0])
	if err != nil {
		return nil, err
	}
	x, ok, err := r.attribute(v, name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return r.undefinedAttr(v, name), nil
	}
	return x, nil
}

func filterBatch(_ *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_batch", []string{"linecount", "fill_with"}, nil)
	if err != nil {
		return nil, err
	}
	items, err := Collect(v)
	if err != nil {
		return nil, err
	}
	n, isInt := integer(args[0])
	var out []any
	row := []any{}
	for _, x := range items {
		if isInt && len(row) == int(n) {
			out = append(out, &pyobj.List{Items: row})
			row = []any{}
		}
		row = append(row, x)
	}
	if len(row) > 0 {
		for args[1] != nil && isInt && len(row) < int(n) {
			if row = append(row, args[1]); len(row) > maxItems {
				return nil, tooLong()
			}
		}
		out = append(out, &pyobj.List{Items: row})
	}
	return NewIter("generator", out), nil
}

func filterCenter(_ *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_center", []string{"width"}, int64(80))
	if err != nil {
		return nil, err
	}
	n, err := index(args[0])
	if err != nil {
		return nil, err
	}
	if n > maxText {
		return nil, tooLong()
	}
	return softly(func(s string) string { return pad(s, n, " ", "center") })(nil, v, Args{})
}

func filterLength(_ *Run, v any, _ Args) (any, error) {
	n, err := length(v)
	return int64(n), err
}

func filterDefault(_ *Run, v any, a Args) (any, error) {
	if _, undef := v.(*Undefined); !undef && len(a.Pos) < 2 && len(a.Kw) == 0 {
		return v, nil
	}
	args, err := a.Bind("do_default", []string{"default_value", "boolean"}, "", false)
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

// ignoreCase makes text lower case for comparisons.
func ignoreCase(v any) any {
	if s, ok := isText(v); ok {
		return lower(s)
	}
	return v
}

func filterDictsort(r *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_dictsort", []string{"case_sensitive", "by", "reverse"}, false, "key", false)
	if err != nil {
		return nil, err
	}
	at := 0
	switch args[1] {
	case "key":
	case "value":
		at = 1
	default:
		return nil, raise("FilterArgumentError", "You can only sort by either \"key\" or \"value\"")
	}
	cased, err := Truth(args[0])
	if err != nil {
		return nil, err
	}
	reverse, err := Truth(args[2])
	if err != nil {
		return nil, err
	}
	pairs, err := r.pairs(v)
	if err != nil {
		return nil, err
	}
	out, err := sortItems(pairs, func(p any) (any, error) {
		k := p.(pyobj.Tuple)[at]
		if !cased {
			k = ignoreCase(k)
		}
		return k, nil
	}, reverse)
	return &pyobj.List{Items: out}, err
}

// pairs calls v.items().
func (r *Run) pairs(v any) ([]any, error) {
	switch d := v.(type) {
	case *pyobj.Dict:
		return (&view{d, "items"}).items(), nil
	case *Undefined:
		return nil, d.fail()
	}
	x, ok, err := r.attribute(v, "items")
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, attributeError(v, "items")
	}
	v, err = r.Call(x, Args{})
	if err != nil {
		return nil, err
	}
	return Collect(v)
}

func filterFilesize(r *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_filesizeformat", []string{"binary"}, false)
	if err != nil {
		return nil, err
	}
	binary, err := Truth(args[0])
	if err != nil {
		return nil, err
	}
	n, err := parseFloat(v)
	if err != nil {
		return nil, err
	}
	base, letters := 1000.0, "kMGTPEZY"
	if binary {
		base, letters = 1024, "KMGTPEZY"
	}
	if n == 1 {
		return "1 Byte", nil
	}
	if n < base {
		return strconv.FormatInt(int64(n), 10) + " Bytes", nil
	}
	unit := base
	for i := range len(letters) {
		unit *= base
		if n < unit || i == len(letters)-1 {
			suffix := string(letters[i]) + "B"
			if binary {
				suffix = string(letters[i]) + "iB"
			}
			return strconv.FormatFloat(base*n/unit, 'f', 1, 64) + " " + suffix, nil
		}
	}
	return nil, nil
}

func filterFirst(r *Run, v any, _ Args) (any, error) {
	next, err := Iterate(v)
	if err != nil {
		return nil, err
	}
	x, ok, err := next()
	if err == nil && !ok {
		return r.Undefined("No first item, sequence was empty."), nil
	}
	return x, err
}

// reversed is Python's reversed(v).
func (r *Run) reversed(v any) ([]any, error) {
	switch x := v.(type) {
	case *Undefined:
		if x.kind == Strict {
			return nil, x.fail()
		}
	case *pyobj.Set, *Iter:
		return nil, typeError("'%s' object is not reversible", pyobj.TypeName(v))
	}
	items, err := Collect(v)
	if err != nil {
		if as(err).Kind == "TypeError" {
			return nil, typeError("'%s' object is not reversible", pyobj.TypeName(v))
		}
		return nil, err
	}
	for i, j := 0, len(items)-1; i < j; i, j = i+1, j-1 {
		items[i], items[j] = items[j], items[i]
	}
	return items, nil
}

func filterLast(r *Run, v any, _ Args) (any, error) {
	items, err := r.reversed(v)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return r.Undefined("No last item, sequence was empty."), nil
	}
	return items[0], nil
}

// parseFloat is float(v).
func parseFloat(v any) (float64, error) {
	if isNumber(v) {
		return toFloat(v)
	}
	if u, ok := v.(*Undefined); ok {
		return 0, u.fail()
	}
	s, ok := isText(v)
	if !ok {
		return 0, typeError("float() argument must be a string or a real number, not '%s'", shortType(v))
	}
	t := lower(pytext.Strip(s))
	switch strings.TrimLeft(t, "+-") {
	case "inf", "infinity", "nan":
		if f, err := strconv.ParseFloat(t, 64); err == nil {
			return f, nil
		}
	}
	if plain := strings.Trim(t, "0123456789.eE+-_"); plain == "" && !strings.Contains(t, "__") && !strings.HasPrefix(t, "_") && !strings.HasSuffix(t, "_") {
		f, err := strconv.ParseFloat(strings.ReplaceAll(t, "_", ""), 64)
		if err == nil || math.IsInf(f, 0) {
			return f, nil
		}
	}
	return 0, valueError("could not convert string to float: %s", pyobj.Repr(s))
}

// parseInt is int(s, base) of text.
func parseInt(s string, base int) (any, error) {
	bad := func() error {
		return valueError("invalid literal for int() with base %d: %s", base, pyobj.Repr(s))
	}
	if base != 0 && (base < 2 || base > 36) {
		return nil, valueError("int() base must be >= 2 and <= 36, or 0")
	}
	t := lower(pytext.Strip(s))
	negative := strings.HasPrefix(t, "-")
	if negative || strings.HasPrefix(t, "+") {
		t = t[1:]
	}
	use := base
	for _, p := range []struct {
		text string
		base int
	}{{"0x", 16}, {"0o", 8}, {"0b", 2}} {
		if strings.HasPrefix(t, p.text) && (base == 0 || base == p.base) {
			t, use = t[2:], p.base
			t = strings.TrimPrefix(t, "_")
		}
	}
	if use == 0 {
		use = 10
		if len(t) > 1 && t[0] == '0' && strings.Trim(t, "0_") != "" {
			return nil, bad()
		}
	}
	if t == "" || strings.HasPrefix(t, "_") || strings.HasSuffix(t, "_") || strings.Contains(t, "__") || strings.ContainsAny(t, "+-") {
		return nil, bad()
	}
	if len(t) > maxDigits {
		return nil, valueError("Exceeds the limit (4300 digits) for integer string conversion: value has %d digits; use sys.set_int_max_str_digits() to increase the limit", len(t))
	}
	n, ok := new(big.Int).SetString(strings.ReplaceAll(t, "_", ""), use)
	if !ok {
		return nil, bad()
	}
	if negative {
		n.Neg(n)
	}
	return pyobj.Int(n), nil
}

// Int is int(v).
func Int(v any) (any, error) {
	switch x := v.(type) {
	case float64:
		return floatToInt(x)
	case *Undefined:
		return nil, x.fail()
	}
	if isNumber(v) {
		return sign(false, v)
	}
	if s, ok := isText(v); ok {
		return parseInt(s, 10)
	}
	return nil, typeError("int() argument must be a string, a bytes-like object or a real number, not '%s'", shortType(v))
}

func isKind(err error, kinds ...string) bool {
	e, ok := err.(*Error)
	if !ok {
		return false
	}
	for _, k := range kinds {
		if e.Kind == k {
			return true
		}
	}
	return false
}

func filterInt(_ *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_int", []string{"default", "base"}, int64(0), int64(10))
	if err != nil {
		return nil, err
	}
	var n any
	if s, ok := isText(v); ok {
		base, err2 := index(args[1])
		if err2 != nil {
			err = err2
		} else {
			n, err = parseInt(s, base)
		}
	} else {
		n, err = Int(v)
	}
	if err == nil {
		return n, nil
	}
	if !isKind(err, "TypeError", "ValueError") {
		return nil, err
	}
	f, err := parseFloat(v)
	if err == nil {
		n, err = floatToInt(f)
	}
	if err == nil {
		return n, nil
	}
	if isKind(err, "TypeError", "ValueError", "OverflowError") {
		return args[0], nil
	}
	return nil, err
}

func filterFloat(_ *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_float", []string{"default"}, 0.0)
	if err != nil {
		return nil, err
	}
	f, err := parseFloat(v)
	if isKind(err, "TypeError", "ValueError") {
		return args[0], nil
	}
	return f, err
}

func filterFormat(r *Run, v any, a Args) (any, error) {
	if len(a.Pos) > 0 && len(a.Kw) > 0 {
		return nil, raise("FilterArgumentError", "can't handle positional and keyword arguments at the same time")
	}
	t, err := soft(v)
	if err != nil {
		return nil, err
	}
	s, _ := isText(t)
	if len(a.Kw) == 0 {
		return r.percent(t, s, pyobj.Tuple(a.Pos))
	}
	d := &pyobj.Dict{}
	for _, kw := range a.Kw {
		_ = d.Set(kw.Name, kw.Value)
	}
	return r.percent(t, s, d)
}

// getter is make_attrgetter: "a.b.0" reaches into values.
func (r *Run) getter(attribute any, post func(any) any, byDefault any) func(v any) (any, error) {
	var parts []any
	if s, ok := isText(attribute); ok {
		for p := range strings.SplitSeq(s, ".") {
			parts = append(parts, digitPart(p))
		}
	} else if attribute != nil {
		parts = []any{attribute}
	}
	return func(v any) (any, error) {
		for _, p := range parts {
			x, err := r.GetItem(v, p)
			if err != nil {
				return nil, err
			}
			if _, undef := x.(*Undefined); undef && byDefault != nil {
				x = byDefault
			}
			v = x
		}
		if post != nil {
			v = post(v)
		}
		return v, nil
	}
}

func digitPart(p string) any {
	if p != "" && strings.Trim(p, "0123456789") == "" {
		if n, err := strconv.ParseInt(p, 10, 64); err == nil {
			return n
		}
	}
	return p
}

func filterGroupby(r *Run, v any, a Args) (any, error) {
	args, err := a.Bind("sync_do_groupby", []string{"attribute", "default", "case_sensitive"}, nil, false)
	if err != nil {
		return nil, err
	}
	cased, err := Truth(args[2])
	if err != nil {
		return nil, err
	}
	post := ignoreCase
	if cased {
		post = nil
	}
	by := r.getter(args[0], post, args[1])
	items, err := Collect(v)
	if err != nil {
		return nil, err
	}
	if items, err = sortItems(items, by, false); err != nil {
		return nil, err
	}
	show := r.getter(args[0], nil, args[1])
	out := &pyobj.List{}
	last := missing
	for _, x := range items {
		k, err := by(x)
		if err != nil {
			return nil, err
		}
		if last != missing {
			same, err := equals(last, k)
			if err != nil {
				return nil, err
			}
			if same {
				g := out.Items[len(out.Items)-1].(*group2)
				l := g.t[1].(*pyobj.List)
				l.Items = append(l.Items, x)
				continue
			}
		}
		last = k
		name, err := show(x)
		if err != nil {
			return nil, err
		}
		if cased {
			name = k
		}
		out.Items = append(out.Items, &group2{pyobj.Tuple{name, pyobj.NewList(x)}})
	}
	return out, nil
}

// group2 is the named tuple of groupby.
type group2 struct{ t pyobj.Tuple }

func (*group2) TypeName() string                     { return "_GroupTuple" }
func (g *group2) Repr() string                       { return pyobj.Repr(g.t) }
func (g *group2) Plain() any                         { return pyobj.Plain(g.t) }
func (g *group2) Len() int                           { return len(g.t) }
func (g *group2) Iterate() func() (any, bool, error) { return overItems(func() []any { return g.t }) }

func (g *group2) GetAttr(_ *Run, name string) (any, bool, error) {
	switch name {
	case "grouper":
		return g.t[0], true, nil
	case "list":
		return g.t[1], true, nil
	}
	return nil, false, nil
}

func (g *group2) GetItem(r *Run, key any) (any, bool, error) {
	v, err := r.subscript(g.t, key)
	return v, err == nil, err
}

func filterIndent(r *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_indent", []string{"width", "first", "blank"}, int64(4), false, false)
	if err != nil {
		return nil, err
	}
	by, ok := isText(args[0])
	if !ok {
		n, isInt := integer(args[0])
		if !isInt {
			return nil, typeError("can't multiply sequence by non-int of type '%s'", pyobj.TypeName(args[0]))
		}
		if n > maxWidth {
			return nil, tooLong()
		}
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
	if !isStr {
		_, err := r.binary(tAdd, v, "\n")
		if err == nil {
			err = attributeError(v, "splitlines")
		}
		return nil, err
	}
	_, markup := v.(pyobj.Markup)
	lines := pytext.SplitLines(s+"\n", false)
	if total := len(lines) * len(by); total > maxText {
		return nil, tooLong()
	}
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == 0 && first || i > 0 && (blank || line != "") {
			b.WriteString(by)
		}
		b.WriteString(line)
	}
	return textLike(b.String(), markup), nil
}

func filterItems(_ *Run, v any, _ Args) (any, error) {
	switch x := v.(type) {
	case *pyobj.Dict:
		return NewIter("generator", (&view{x, "items"}).items()), nil
	case *Undefined:
		return NewIter("generator", nil), nil
	}
	return &Iter{"generator", func() (any, bool, error) {
		return nil, false, typeError("Can only get item pairs from a mapping.")
	}}, nil
}

func filterJoin(r *Run, v any, a Args) (any, error) {
	args, err := a.Bind("sync_do_join", []string{"d", "attribute"}, "", nil)
	if err != nil {
		return nil, err
	}
	items, err := Collect(v)
	if err != nil {
		return nil, err
	}
	if args[1] != nil {
		by := r.getter(args[1], nil, nil)
		for i := range items {
			if items[i], err = by(items[i]); err != nil {
				return nil, err
			}
		}
	}
	markup := false
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
			m, err := escaped(v)
			return string(m), err
		}
	}
	sep, err := part(args[0])
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for i, x := range items {
		s, err := part(x)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteString(sep)
		}
		if b.Len()+len(s)+len(sep) > maxText {
			return nil, tooLong()
		}
		b.WriteString(s)
	}
	return textLike(b.String(), markup), nil
}

func filterMap(r *Run, v any, a Args) (any, error) {
	yes, err := Truth(v)
	if err != nil {
		return lazyFailure(err), nil
	}
	if !yes {
		return NewIter("generator", nil), nil
	}
	fn, err := mapper(r, a)
	if err != nil {
		return lazyFailure(err), nil
	}
	next, err := Iterate(v)
	if err != nil {
		return lazyFailure(err), nil
	}
	return &Iter{"generator", func() (any, bool, error) {
		x, ok, err := next()
		if err != nil || !ok {
			return nil, false, err
		}
		x, err = fn(x)
		return x, err == nil, err
	}}, nil
}

// lazyFailure is a generator that raises when it is used.
func lazyFailure(err error) *Iter {
	return &Iter{"generator", func() (any, bool, error) { return nil, false, err }}
}

func mapper(r *Run, a Args) (func(any) (any, error), error) {
	if len(a.Pos) == 0 {
		attribute, ok := a.Get("attribute")
		if ok {
			byDefault, _ := a.Get("default")
			for _, kw := range a.Kw {
				if kw.Name != "attribute" && kw.Name != "default" {
					return nil, raise("FilterArgumentError", "Unexpected keyword argument %s", pyobj.Repr(kw.Name))
				}
			}
			return r.getter(attribute, nil, byDefault), nil
		}
		return nil, raise("FilterArgumentError", "map requires a filter argument")
	}
	name, _ := isText(a.Pos[0])
	f := r.env.filter(name)
	if f == nil {
		return nil, raise("TemplateRuntimeError", "No filter named %s.", pyobj.Repr(a.Pos[0]))
	}
	rest := Args{Pos: a.Pos[1:], Kw: a.Kw}
	return func(v any) (any, error) { return f(r, v, rest) }, nil
}

// selector is select, reject, selectattr and rejectattr.
func selector(want, byAttr bool) Filter {
	return func(r *Run, v any, a Args) (any, error) {
		yes, err := Truth(v)
		if err != nil {
			return lazyFailure(err), nil
		}
		if !yes {
			return NewIter("generator", nil), nil
		}
		get := func(v any) (any, error) { return v, nil }
		if byAttr {
			if len(a.Pos) == 0 {
				return lazyFailure(raise("FilterArgumentError", "Missing parameter for attribute name")), nil
			}
			get = r.getter(a.Pos[0], nil, nil)
			a.Pos = a.Pos[1:]
		}
		check := func(v any) (bool, error) { return Truth(v) }
		if len(a.Pos) > 0 {
			name, _ := isText(a.Pos[0])
			t := r.env.test(name)
			if t == nil {
				return lazyFailure(raise("TemplateRuntimeError", "No test named %s.", pyobj.Repr(a.Pos[0]))), nil
			}
			rest := Args{Pos: a.Pos[1:], Kw: a.Kw}
			check = func(v any) (bool, error) { return t(r, v, rest) }
		}
		next, err := Iterate(v)
		if err != nil {
			return lazyFailure(err), nil
		}
		return &Iter{"generator", func() (any, bool, error) {
			for {
				x, ok, err := next()
				if err != nil || !ok {
					return nil, false, err
				}
				part, err := get(x)
				if err != nil {
					return nil, false, err
				}
				yes, err := check(part)
				if err != nil {
					return nil, false, err
				}
				if yes == want {
					return x, true, nil
				}
			}
		}}, nil
	}
}

func minMax(r *Run, v any, a Args, most bool) (any, error) {
	args, err := a.Bind("do_min", []string{"case_sensitive", "attribute"}, false, nil)
	if err != nil {
		return nil, err
	}
	cased, err := Truth(args[0])
	if err != nil {
		return nil, err
	}
	post := ignoreCase
	if cased {
		post = nil
	}
	items, err := Collect(v)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return r.Undefined("No aggregated item, sequence was empty."), nil
	}
	return Extreme(items, r.getter(args[1], post, nil), most)
}

// Extreme is Python's min and max.
func Extreme(items []any, by func(any) (any, error), most bool) (any, error) {
	var best, bestKey any
	for i, x := range items {
		k := x
		if by != nil {
			var err error
			if k, err = by(x); err != nil {
				return nil, err
			}
		}
		if i == 0 {
			best, bestKey = x, k
			continue
		}
		op := tLt
		if most {
			op = tGt
		}
		better, err := order(op, k, bestKey)
		if err != nil {
			return nil, err
		}
		if better {
			best, bestKey = x, k
		}
	}
	return best, nil
}

func filterRandom(r *Run, v any, _ Args) (any, error) {
	n, err := length(v)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return r.Undefined("No random item, sequence was empty."), nil
	}
	return r.subscript(v, int64(rand.IntN(n)))
}

func filterReplace(r *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_replace", []string{"old", "new", "count"}, nil)
	if err != nil {
		return nil, err
	}
	n := -1
	if args[2] != nil {
		if n, err = index(args[2]); err != nil {
			return nil, err
		}
	}
	if !r.autoescape {
		var s [3]string
		for i, x := range []any{v, args[0], args[1]} {
			if s[i], err = Str(x); err != nil {
				return nil, err
			}
		}
		return replace(s[0], s[1], s[2], n)
	}
	_, sSafe := v.(pyobj.Markup)
	_, oldSafe := args[0].(pyobj.Markup)
	_, newSafe := args[1].(pyobj.Markup)
	var t any
	if oldSafe || newSafe && !sSafe {
		t, err = escapedAny(v)
	} else {
		t, err = soft(v)
	}
	if err != nil {
		return nil, err
	}
	old, err := soft(args[0])
	if err != nil {
		return nil, err
	}
	repl, err := soft(args[1])
	if err != nil {
		return nil, err
	}
	x, _, err := r.method(t, "replace", Args{Pos: []any{old, repl, int64(n)}})
	return x, err
}

func filterReverse(r *Run, v any, _ Args) (any, error) {
	if s, ok := isText(v); ok {
		chars := []rune(s)
		for i, j := 0, len(chars)-1; i < j; i, j = i+1, j-1 {
			chars[i], chars[j] = chars[j], chars[i]
		}
		_, markup := v.(pyobj.Markup)
		return textLike(string(chars), markup), nil
	}
	kind := "list_reverseiterator"
	switch v.(type) {
	case pyobj.Tuple:
		kind = "reversed"
	case *pyobj.Dict:
		kind = "dict_reversekeyiterator"
	case *Range:
		kind = "range_iterator"
	}
	items, err := r.reversed(v)
	if err == nil {
		return NewIter(kind, items), nil
	}
	if !isKind(err, "TypeError") {
		return nil, err
	}
	if items, err = Collect(v); err != nil {
		if isKind(err, "TypeError") {
			return nil, raise("FilterArgumentError", "argument must be iterable")
		}
		return nil, err
	}
	for i, j := 0, len(items)-1; i < j; i, j = i+1, j-1 {
		items[i], items[j] = items[j], items[i]
	}
	return &pyobj.List{Items: items}, nil
}

// round is Python's round(v, n).
func round(v any, n int) (any, error) {
	if n > 400 || n < -400 {
		n = max(min(n, 400), -400)
	}
	f, ok := v.(float64)
	if !ok {
		if !isNumber(v) {
			if u, undef := v.(*Undefined); undef {
				return nil, u.noMethod("__round__", "type %s doesn't define __round__ method")
			}
			return nil, typeError("type %s doesn't define __round__ method", shortType(v))
		}
		if n >= 0 {
			return sign(false, v)
		}
		// to the nearest multiple of 10**-n, halves to even
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-n)), nil)
		q, m := new(big.Int), new(big.Int)
		q.DivMod(toBig(v), unit, m)
		twice := new(big.Int).Lsh(m, 1)
		if c := twice.Cmp(unit); c > 0 || c == 0 && q.Bit(0) == 1 {
			q.Add(q, big.NewInt(1))
		}
		return pyobj.Int(q.Mul(q, unit)), nil
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return f, nil
	}
	if n >= 0 {
		return pytext.Round(f, n), nil
	}
	p := math.Pow(10, float64(-n))
	return math.RoundToEven(f/p) * p, nil
}

func filterRound(_ *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_round", []string{"precision", "method"}, int64(0), "common")
	if err != nil {
		return nil, err
	}
	n, err := index(args[0])
	if err != nil {
		return nil, err
	}
	switch args[1] {
	case "common":
		return round(v, n)
	case "ceil", "floor":
		power, err := numbers(tPow, int64(10), args[0])
		if err != nil {
			return nil, err
		}
		if !isNumber(v) {
			return nil, unsupported(tMul, v, power)
		}
		x, err := numbers(tMul, v, power)
		if err != nil {
			return nil, err
		}
		if f, ok := x.(float64); ok {
			if args[1] == "ceil" {
				f = math.Ceil(f)
			} else {
				f = math.Floor(f)
			}
			if x, err = floatToInt(f); err != nil {
				return nil, err
			}
		}
		return numbers(tDiv, x, power)
	}
	return nil, raise("FilterArgumentError", "method must be common, ceil or floor")
}

func filterSlice(_ *Run, v any, a Args) (any, error) {
	args, err := a.Bind("sync_do_slice", []string{"slices", "fill_with"}, nil)
	if err != nil {
		return nil, err
	}
	items, err := Collect(v)
	if err != nil {
		return nil, err
	}
	n, err := index(args[0])
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return lazyFailure(raise("ZeroDivisionError", "integer division or modulo by zero")), nil
	}
	if n > maxRange {
		return nil, tooLong()
	}
	var out []any
	per, extra, offset := 0, 0, 0
	if n > 0 {
		per, extra = len(items)/n, len(items)%n
	}
	for i := range max(n, 0) {
		start := offset + i*per
		if i < extra {
			offset++
		}
		end := offset + (i+1)*per
		row := append([]any{}, items[start:end]...)
		if args[1] != nil && i >= extra {
			row = append(row, args[1])
		}
		out = append(out, &pyobj.List{Items: row})
	}
	return NewIter("generator", out), nil
}

func filterSort(r *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_sort", []string{"reverse", "case_sensitive", "attribute"}, false, false, nil)
	if err != nil {
		return nil, err
	}
	reverse, err := Truth(args[0])
	if err != nil {
		return nil, err
	}
	cased, err := Truth(args[1])
	if err != nil {
		return nil, err
	}
	post := ignoreCase
	if cased {
		post = nil
	}
	var by []func(any) (any, error)
	if s, ok := isText(args[2]); ok {
		for p := range strings.SplitSeq(s, ",") {
			by = append(by, r.getter(p, post, nil))
		}
	} else {
		by = append(by, r.getter(args[2], post, nil))
	}
	items, err := Collect(v)
	if err != nil {
		return nil, err
	}
	out, err := sortItems(items, func(v any) (any, error) {
		keys := make([]any, len(by))
		for i, f := range by {
			var err error
			if keys[i], err = f(v); err != nil {
				return nil, err
			}
		}
		return &pyobj.List{Items: keys}, nil
	}, reverse)
	return &pyobj.List{Items: out}, err
}

func filterSum(r *Run, v any, a Args) (any, error) {
	args, err := a.Bind("sync_do_sum", []string{"attribute", "start"}, nil, int64(0))
	if err != nil {
		return nil, err
	}
	items, err := Collect(v)
	if err != nil {
		return nil, err
	}
	get := r.getter(args[0], nil, nil)
	total := args[1]
	if _, text := isText(total); text {
		return nil, typeError("sum() can't sum strings [use ''.join(seq) instead]")
	}
	for _, x := range items {
		if x, err = get(x); err != nil {
			return nil, err
		}
		if total, err = r.binary(tAdd, total, x); err != nil {
			return nil, err
		}
	}
	return total, nil
}

func filterUnique(r *Run, v any, a Args) (any, error) {
	args, err := a.Bind("sync_do_unique", []string{"case_sensitive", "attribute"}, false, nil)
	if err != nil {
		return nil, err
	}
	cased, err := Truth(args[0])
	if err != nil {
		return nil, err
	}
	post := ignoreCase
	if cased {
		post = nil
	}
	by := r.getter(args[1], post, nil)
	items, err := Collect(v)
	if err != nil {
		return lazyFailure(err), nil
	}
	seen := &pyobj.Set{}
	var out []any
	for _, x := range items {
		k, err := by(x)
		if err != nil {
			return lazyFailure(err), nil
		}
		if seen.Has(k) {
			continue
		}
		if err := seen.Add(k); err != nil {
			return lazyFailure(err), nil
		}
		out = append(out, x)
	}
	return NewIter("generator", out), nil
}

func filterTrim(r *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_trim", []string{"chars"}, nil)
	if err != nil {
		return nil, err
	}
	t, err := soft(v)
	if err != nil {
		return nil, err
	}
	x, _, err := r.method(t, "strip", Args{Pos: args})
	return x, err
}

func filterTruncate(r *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_truncate", []string{"length", "killwords", "end", "leeway"}, int64(255), false, "...", nil)
	if err != nil {
		return nil, err
	}
	if args[3] == nil {
		args[3] = int64(5)
	}
	n, err := index(args[0])
	if err != nil {
		return nil, err
	}
	leeway, err := index(args[3])
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
	if n < runes(end) {
		return nil, raise("AssertionError", "expected length >= %d, got %d", runes(end), n)
	}
	if leeway < 0 {
		return nil, raise("AssertionError", "expected leeway >= 0, got %d", leeway)
	}
	size, err := length(v)
	if err != nil || size <= n+leeway {
		return v, err
	}
	s, ok := isText(v)
	if !ok {
		return nil, attributeError(v, "rsplit")
	}
	_, markup := v.(pyobj.Markup)
	s = firstRunes(s, n-runes(end))
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

func filterWordcount(_ *Run, v any, _ Args) (any, error) {
	s, err := Str(v)
	n, inside := 0, false
	for _, c := range s {
		word := c == '_' || is(string(c), "isalnum")
		if word && !inside {
			n++
		}
		inside = word
	}
	return int64(n), err
}

func filterWordwrap(r *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_wordwrap", []string{"width", "break_long_words", "wrapstring", "break_on_hyphens"}, int64(79), true, nil, true)
	if err != nil {
		return nil, err
	}
	n, err := index(args[0])
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
	for _, line := range pytext.SplitLines(s, false) {
		parts = append(parts, strings.Join(textwrap.WrapOptions(line, n, textwrap.Options{KeepLong: !long, KeepHyphens: !hyphens, KeepBlanks: true}), sep))
	}
	return strings.Join(parts, sep), nil
}
