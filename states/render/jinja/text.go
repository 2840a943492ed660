package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/pytext"
)

func hasTextMethod(name string) bool {
	switch name {
	case "capitalize", "casefold", "center", "count", "encode", "endswith", "expandtabs", "find", "format", "format_map",
		"index", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric", "isprintable",
		"isspace", "istitle", "isupper", "join", "ljust", "lower", "lstrip", "maketrans", "partition", "removeprefix",
		"removesuffix", "replace", "rfind", "rindex", "rjust", "rpartition", "rsplit", "rstrip", "split", "splitlines",
		"startswith", "strip", "swapcase", "title", "translate", "upper", "zfill":
		return true
	}
	return false
}

// textMethod is a method of str. The results of a Markup are Markup, and texts that are put into one are escaped.
func (r *Run) textMethod(s string, markup bool, name string, a Args) (any, error) {
	text := func(s string) any { return textLike(s, markup) }
	arity := func(low, high int) error { return exactly(a, "str."+name, low, high) }
	str := func(i int) (string, error) {
		v := a.Pos[i]
		if t, ok := isText(v); ok {
			if _, safe := v.(pyobj.Markup); markup && !safe {
				return Escape(t), nil
			}
			return t, nil
		}
		if u, ok := v.(*Undefined); ok && u.kind == Strict {
			return "", u.fail()
		}
		return "", typeError("%s() argument %d must be str, not %s", name, i+1, pyobj.TypeName(v))
	}
	list := func(parts []string) any {
		l := &pyobj.List{Items: make([]any, len(parts))}
		for i, p := range parts {
			l.Items[i] = text(p)
		}
		return l
	}
	switch name {
	case "lower", "casefold":
		return text(lower(s)), arity(0, 0)
	case "upper":
		return text(upper(s)), arity(0, 0)
	case "capitalize":
		return text(capitalize(s)), arity(0, 0)
	case "title":
		return text(title(s)), arity(0, 0)
	case "swapcase":
		return text(strings.Map(func(c rune) rune {
			if unicode.IsUpper(c) {
				return unicode.ToLower(c)
			}
			return unicode.ToUpper(c)
		}, s)), arity(0, 0)
	case "strip", "lstrip", "rstrip":
		if err := arity(0, 1); err != nil {
			return nil, err
		}
		cut := pySpace
		if len(a.Pos) == 1 && a.Pos[0] != nil {
			set, ok := isText(a.Pos[0])
			if !ok {
				return nil, typeError("%s arg must be None or str", name)
			}
			cut = func(c rune) bool { return strings.ContainsRune(set, c) }
		}
		if name != "rstrip" {
			s = strings.TrimLeftFunc(s, cut)
		}
		if name != "lstrip" {
			s = strings.TrimRightFunc(s, cut)
		}
		return text(s), nil
	case "split", "rsplit":
		parts, err := split(s, name, a)
		if err != nil {
			return nil, err
		}
		return list(parts), nil
	case "splitlines":
		args, err := a.Bind("splitlines", []string{"keepends"}, false)
		if err != nil {
			return nil, err
		}
		keep, err := Truth(args[0])
		return list(pytext.SplitLines(s, keep)), err
	case "partition", "rpartition":
		if err := arity(1, 1); err != nil {
			return nil, err
		}
		sep, err := str(0)
		if err != nil {
			return nil, typeError("must be str, not %s", pyobj.TypeName(a.Pos[0]))
		}
		if sep == "" {
			return nil, valueError("empty separator")
		}
		if name == "partition" {
			before, after, ok := strings.Cut(s, sep)
			if !ok {
				return pyobj.Tuple{text(s), text(""), text("")}, nil
			}
			return pyobj.Tuple{text(before), text(sep), text(after)}, nil
		}
		i := strings.LastIndex(s, sep)
		if i < 0 {
			return pyobj.Tuple{text(""), text(""), text(s)}, nil
		}
		return pyobj.Tuple{text(s[:i]), text(sep), text(s[i+len(sep):])}, nil
	case "replace":
		if err := exactly(a, "str.replace", 2, 3); err != nil {
			return nil, err
		}
		old, err := str(0)
		if err != nil {
			return nil, err
		}
		repl, err := str(1)
		if err != nil {
			return nil, err
		}
		n := -1
		if len(a.Pos) == 3 {
			if n, err = index(a.Pos[2]); err != nil {
				return nil, err
			}
		}
		v, err := replace(s, old, repl, n)
		return text(v), err
	case "startswith", "endswith":
		return affix(s, name, a)
	case "find", "rfind", "index", "rindex", "count":
		return find(s, name, a)
	case "join":
		if err := exactly(a, "str.join", 1, 1); err != nil {
			return nil, err
		}
		items, err := Collect(a.Pos[0])
		if err != nil {
			if e := as(err); e.Kind == "TypeError" {
				return nil, typeError("can only join an iterable")
			}
			return nil, err
		}
		var b strings.Builder
		for i, it := range items {
			t, ok := isText(it)
			if markup {
				m, err := escaped(it)
				if err != nil {
					return nil, err
				}
				t, ok = string(m), true
			}
			if !ok {
				return nil, typeError("sequence item %d: expected str instance, %s found", i, pyobj.TypeName(it))
			}
			if i > 0 {
				b.WriteString(s)
			}
			if b.Len()+len(t) > maxText {
				return nil, tooLong()
			}
			b.WriteString(t)
		}
		return text(b.String()), nil
	case "center", "ljust", "rjust":
		if err := arity(1, 2); err != nil {
			return nil, err
		}
		n, err := index(a.Pos[0])
		if err != nil {
			return nil, err
		}
		fill := " "
		if len(a.Pos) == 2 {
			if fill, err = str(1); err != nil || runes(fill) != 1 {
				return nil, typeError("The fill character must be exactly one character long")
			}
		}
		if n > maxText/utf8.UTFMax {
			return nil, tooLong()
		}
		return text(pad(s, n, fill, name)), nil
	case "zfill":
		if err := arity(1, 1); err != nil {
			return nil, err
		}
		n, err := index(a.Pos[0])
		if err != nil {
			return nil, err
		}
		if n > maxText {
			return nil, tooLong()
		}
		lack := max(n-runes(s), 0)
		if s != "" && (s[0] == '+' || s[0] == '-') {
			return text(s[:1] + strings.Repeat("0", lack) + s[1:]), nil
		}
		return text(strings.Repeat("0", lack) + s), nil
	case "expandtabs":
		args, err := a.Bind("expandtabs", []string{"tabsize"}, int64(8))
		if err != nil {
			return nil, err
		}
		n, err := index(args[0])
		if err == nil && n > 1000 {
			err = tooLong()
		}
		return text(expandTabs(s, n)), err
	case "removeprefix", "removesuffix":
		if err := arity(1, 1); err != nil {
			return nil, err
		}
		t, err := str(0)
		if err != nil {
			return nil, err
		}
		if name == "removeprefix" {
			return text(strings.TrimPrefix(s, t)), nil
		}
		return text(strings.TrimSuffix(s, t)), nil
	case "format":
		v, err := r.format(s, markup, a.Pos, func(name string) (any, bool) { return a.Get(name) })
		return text(v), err
	case "format_map":
		if len(a.Kw) > 0 {
			return nil, typeError("format_map() takes no keyword arguments")
		}
		if len(a.Pos) != 1 {
			return nil, typeError("format_map() takes exactly one argument (%d given)", len(a.Pos))
		}
		v, err := r.format(s, markup, nil, func(name string) (any, bool) {
			v, err := r.subscript(a.Pos[0], name)
			return v, err == nil
		})
		return text(v), err
	case "encode":
		args, err := a.Bind("encode", []string{"encoding", "errors"}, "utf-8", "strict")
		if err != nil {
			return nil, err
		}
		switch enc, _ := isText(args[0]); strings.ToLower(strings.ReplaceAll(enc, "_", "-")) {
		case "utf-8", "utf8":
			return []byte(s), nil
		case "ascii", "latin-1", "latin1", "iso-8859-1":
			top := rune(0x7f)
			if enc[0] != 'a' {
				top = 0xff
			}
			out := []byte{}
			for _, c := range s {
				if c > top {
					switch args[1] {
					case "ignore":
						continue
					case "replace":
						c = '?'
					default:
						return nil, raise("UnicodeEncodeError", "'%s' codec can't encode characters: ordinal not in range(%d)", enc, top+1)
					}
				}
				out = append(out, byte(c))
			}
			return out, nil
		}
		return nil, raise("LookupError", "unknown encoding: %s", pyobj.Str(args[0]))
	case "translate":
		if err := arity(1, 1); err != nil {
			return nil, err
		}
		var b strings.Builder
		for _, c := range s {
			v, err := r.subscript(a.Pos[0], int64(c))
			switch t, isStr := isText(v); {
			case err != nil:
				if !as(err).lookup() {
					return nil, err
				}
				b.WriteRune(c)
			case v == nil:
			case isStr:
				b.WriteString(t)
			default:
				n, err := index(v)
				if err != nil {
					return nil, err
				}
				b.WriteRune(rune(n))
			}
		}
		return text(b.String()), nil
	case "maketrans":
		return maketrans(a)
	case "unescape", "striptags":
		if name == "striptags" {
			return stripTags(s), nil
		}
		return unescapeHTML(s), nil
	}
	return is(s, name), arity(0, 0)
}

func lower(s string) string { return strings.ToLower(s) }

// upper is str.upper, in which ß becomes two letters.
func upper(s string) string {
	s = strings.ToUpper(s)
	if strings.Contains(s, "ß") {
		s = strings.ReplaceAll(s, "ß", "SS")
	}
	return s
}

func capitalize(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	if r == 'ß' {
		return "Ss" + lower(s[n:])
	}
	return string(unicode.ToTitle(r)) + lower(s[n:])
}

func title(s string) string {
	cased := false
	return strings.Map(func(c rune) rune {
		was := cased
		cased = unicode.IsUpper(c) || unicode.IsLower(c) || unicode.IsTitle(c)
		if was {
			return unicode.ToLower(c)
		}
		return unicode.ToTitle(c)
	}, s)
}

func split(s, name string, a Args) ([]string, error) {
	args, err := a.Bind(name, []string{"sep", "maxsplit"}, nil, int64(-1))
	if err != nil {
		return nil, err
	}
	n, err := index(args[1])
	if err != nil {
		return nil, err
	}
	if args[0] == nil {
		return splitBlank(s, n, name == "rsplit"), nil
	}
	sep, ok := isText(args[0])
	if !ok {
		return nil, typeError("must be str or None, not %s", pyobj.TypeName(args[0]))
	}
	if sep == "" {
		return nil, valueError("empty separator")
	}
	if n < 0 {
		return strings.Split(s, sep), nil
	}
	if name == "split" {
		return strings.SplitN(s, sep, n+1), nil
	}
	var parts []string
	for ; n > 0; n-- {
		i := strings.LastIndex(s, sep)
		if i < 0 {
			break
		}
		parts = append([]string{s[i+len(sep):]}, parts...)
		s = s[:i]
	}
	return append([]string{s}, parts...), nil
}

// splitBlank splits at runs of blanks, at most n times, from the right if so.
func splitBlank(s string, n int, right bool) []string {
	if n < 0 {
		return strings.FieldsFunc(s, pySpace)
	}
	var parts []string
	if right {
		s = strings.TrimRightFunc(s, pySpace)
		for ; s != "" && n > 0; n-- {
			i := strings.LastIndexFunc(s, pySpace)
			if i < 0 {
				break
			}
			_, size := utf8.DecodeRuneInString(s[i:])
			parts = append([]string{s[i+size:]}, parts...)
			s = strings.TrimRightFunc(s[:i], pySpace)
		}
		if s != "" {
			parts = append([]string{s}, parts...)
		}
		return parts
	}
	s = strings.TrimLeftFunc(s, pySpace)
	for ; s != "" && n > 0; n-- {
		i := strings.IndexFunc(s, pySpace)
		if i < 0 {
			break
		}
		parts = append(parts, s[:i])
		s = strings.TrimLeftFunc(s[i:], pySpace)
	}
	if s != "" {
		parts = append(parts, s)
	}
	return parts
}

func replace(s, old, repl string, n int) (string, error) {
	count := strings.Count(s, old)
	if n >= 0 {
		count = min(count, n)
	}
	if grow := len(repl) - len(old); grow > 0 && count > (maxText-len(s))/grow {
		return "", tooLong()
	}
	return strings.Replace(s, old, repl, n), nil
}

// window is the part of a text that optional start and end arguments leave.
func window(s string, rest []any) (part string, offset int, ok bool, err error) {
	n := runes(s)
	from, to := 0, n
	for i, v := range rest {
		if v == nil {
			continue
		}
		k, err := index(v)
		if err != nil {
			return "", 0, false, typeError("slice indices must be integers or None or have an __index__ method")
		}
		if k < 0 {
			k = max(k+n, 0)
		}
		if i == 0 {
			from = k
		} else {
			to = min(k, n)
		}
	}
	if from > to {
		return "", from, false, nil
	}
	chars := []rune(s)
	return string(chars[from:to]), from, true, nil
}

func affix(s, name string, a Args) (any, error) {
	if err := exactly(a, "str."+name, 1, 3); err != nil {
		return nil, err
	}
	part, _, ok, err := window(s, a.Pos[1:])
	if err != nil {
		return nil, err
	}
	test := func(v any) (bool, error) {
		t, isStr := isText(v)
		if !isStr {
			if u, undef := v.(*Undefined); undef && u.kind == Strict {
				return false, typeError("%s first arg must be str or a tuple of str, not %s", name, pyobj.TypeName(v))
			}
			return false, typeError("%s first arg must be str or a tuple of str, not %s", name, pyobj.TypeName(v))
		}
		if name == "startswith" {
			return ok && strings.HasPrefix(part, t), nil
		}
		return ok && strings.HasSuffix(part, t), nil
	}
	if list, tuple := a.Pos[0].(pyobj.Tuple); tuple {
		for _, v := range list {
			if yes, err := test(v); err != nil || yes {
				return yes, err
			}
		}
		return false, nil
	}
	return test(a.Pos[0])
}

func find(s, name string, a Args) (any, error) {
	if err := exactly(a, "str."+name, 1, 3); err != nil {
		return nil, err
	}
	t, ok := isText(a.Pos[0])
	if !ok {
		return nil, typeError("must be str, not %s", pyobj.TypeName(a.Pos[0]))
	}
	part, offset, ok, err := window(s, a.Pos[1:])
	if err != nil {
		return nil, err
	}
	if name == "count" {
		if !ok {
			return int64(0), nil
		}
		return int64(strings.Count(part, t)), nil
	}
	i := -1
	if ok {
		if name[0] == 'r' {
			i = strings.LastIndex(part, t)
		} else {
			i = strings.Index(part, t)
		}
	}
	if i >= 0 {
		return int64(offset + runes(part[:i])), nil
	}
	if strings.HasSuffix(name, "index") {
		return nil, valueError("substring not found")
	}
	return int64(-1), nil
}

// pad is str.center, ljust and rjust.
func pad(s string, n int, fill, how string) string {
	lack := n - runes(s)
	if lack <= 0 {
		return s
	}
	left := 0
	switch how {
	case "rjust":
		left = lack
	case "center":
		left = lack/2 + (lack & n & 1)
	}
	return strings.Repeat(fill, left) + s + strings.Repeat(fill, lack-left)
}

func expandTabs(s string, size int) string {
	var b strings.Builder
	column := 0
	for _, c := range s {
		switch c {
		case '\t':
			if size > 0 {
				n := size - column%size
				b.WriteString(strings.Repeat(" ", n))
				column += n
			}
			continue
		case '\n', '\r':
			column = -1
		}
		column++
		b.WriteRune(c)
	}
	return b.String()
}

func maketrans(a Args) (any, error) {
	if err := exactly(a, "maketrans", 1, 3); err != nil {
		return nil, err
	}
	d := &pyobj.Dict{}
	if len(a.Pos) == 1 {
		from, ok := a.Pos[0].(*pyobj.Dict)
		if !ok {
			return nil, typeError("if you give only one argument to maketrans it must be a dict")
		}
		for k, v := range from.All() {
			if t, ok := isText(k); ok {
				if runes(t) != 1 {
					return nil, valueError("string keys in translate table must be of length 1")
				}
				c, _ := utf8.DecodeRuneInString(t)
				k = int64(c)
			}
			_ = d.Set(k, v)
		}
		return d, nil
	}
	x, _ := isText(a.Pos[0])
	y, _ := isText(a.Pos[1])
	from, to := []rune(x), []rune(y)
	if len(from) != len(to) {
		return nil, valueError("the first two maketrans arguments must have equal length")
	}
	for i := range from {
		_ = d.Set(int64(from[i]), int64(to[i]))
	}
	if len(a.Pos) == 3 {
		z, _ := isText(a.Pos[2])
		for _, c := range z {
			_ = d.Set(int64(c), nil)
		}
	}
	return d, nil
}

// is is one of the methods isalpha, isdigit and so on.
func is(s, name string) bool {
	if name == "isascii" {
		for i := range len(s) {
			if s[i] >= 0x80 {
				return false
			}
		}
		return true
	}
	if name == "isprintable" {
		for _, c := range s {
			if !unicode.IsPrint(c) {
				return false
			}
		}
		return true
	}
	if s == "" {
		return false
	}
	switch name {
	case "islower", "isupper":
		cased := false
		for _, c := range s {
			if unicode.IsLower(c) {
				cased = true
				if name == "isupper" {
					return false
				}
			} else if unicode.IsUpper(c) || unicode.IsTitle(c) {
				cased = true
				if name == "islower" {
					return false
				}
			}
		}
		return cased
	case "istitle":
		cased, any := false, false
		for _, c := range s {
			switch {
			case unicode.IsUpper(c) || unicode.IsTitle(c):
				if cased {
					return false
				}
				cased, any = true, true
			case unicode.IsLower(c):
				if !cased {
					return false
				}
				cased, any = true, true
			default:
				cased = false
			}
		}
		return any
	case "isidentifier":
		for i, c := range s {
			if c != '_' && !unicode.IsLetter(c) && !unicode.Is(unicode.Nl, c) && (i == 0 || !unicode.IsDigit(c) && !unicode.Is(unicode.Mn, c)) {
				return false
			}
		}
		return true
	}
	for _, c := range s {
		ok := false
		switch name {
		case "isalpha":
			ok = unicode.IsLetter(c)
		case "isalnum":
			ok = unicode.IsLetter(c) || unicode.IsNumber(c)
		case "isdecimal":
			ok = unicode.IsDigit(c)
		case "isdigit":
			ok = unicode.IsDigit(c) || strings.ContainsRune("²³¹", c) || c >= 0x2070 && c <= 0x2089
		case "isnumeric":
			ok = unicode.IsNumber(c)
		case "isspace":
			ok = pySpace(c)
		}
		if !ok {
			return false
		}
	}
	return true
}
