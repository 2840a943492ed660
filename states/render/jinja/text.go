package jinja

import (
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
)

// hasTextMethod reports whether str has a method.
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

// textMethod calls a method of str. For Markup the results are Markup, and texts that are inserted into it are
// escaped.
func (r *Run) textMethod(s string, markup bool, name string, a Args) (any, error) {
	text := func(s string) any { return textLike(s, markup) }
	arity := func(low, high int) error { return checkArity(a, "str."+name, low, high) }
	// str returns an argument that must be a text.
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
	// list returns texts as a list.
	list := func(parts []string) any {
		l := &pyobj.List{Items: make([]any, len(parts))}
		for i, p := range parts {
			l.Items[i] = text(p)
		}
		return l
	}
	// Changes of case.
	switch name {
	case "lower":
		return text(lower(s)), arity(0, 0)
	case "casefold":
		return text(casefold(s)), arity(0, 0)
	case "upper":
		return text(upper(s)), arity(0, 0)
	case "capitalize":
		return text(capitalize(s)), arity(0, 0)
	case "title":
		return text(titleText(s)), arity(0, 0)
	case "swapcase":
		return text(swapcase(s)), arity(0, 0)
	// The characters to remove: white space, or the given ones.
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
		parts, err := splitText(s, name, a)
		if err != nil {
			return nil, err
		}
		return list(parts), nil
	case "splitlines":
		args, err := a.Bind("splitlines", []string{"keepends"}, false)
		if err != nil {
			return nil, err
		}
		n, err := toIndex(args[0])
		return list(pytext.SplitLines(s, n != 0)), err
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
		if err := checkArity(a, "str.replace", 2, 3); err != nil {
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
			if n, err = toIndex(a.Pos[2]); err != nil {
				return nil, err
			}
		}
		v, err := replaceText(s, old, repl, n)
		return text(v), err
	case "startswith", "endswith":
		return testAffix(s, name, a)
	case "find", "rfind", "index", "rindex", "count":
		return findText(s, name, a)
	case "join":
		if err := checkArity(a, "str.join", 1, 1); err != nil {
			return nil, err
		}
		items, err := Collect(a.Pos[0])
		if err != nil {
			if e := asError(err); e.Kind == "TypeError" {
				return nil, typeError("can only join an iterable")
			}
			return nil, err
		}
		var b strings.Builder
		for i, it := range items {
			t, ok := isText(it)
			if markup {
				m, err := escapeValue(it)
				if err != nil {
					return nil, err
				}
				// Markup escapes the texts that it joins.
				t, ok = string(m), true
			}
			if !ok {
				return nil, typeError("sequence item %d: expected str instance, %s found", i, pyobj.TypeName(it))
			}
			if i > 0 {
				b.WriteString(s)
			}
			if b.Len()+len(t) > MaxText {
				return nil, TooLong()
			}
			b.WriteString(t)
		}
		return text(b.String()), nil
	case "center", "ljust", "rjust":
		if err := arity(1, 2); err != nil {
			return nil, err
		}
		n, err := toIndex(a.Pos[0])
		if err != nil {
			return nil, err
		}
		fill := " "
		if len(a.Pos) == 2 {
			if fill, err = str(1); err != nil || runeCount(fill) != 1 {
				return nil, typeError("The fill character must be exactly one character long")
			}
		}
		// The fill character may take four bytes.
		if n > MaxText/utf8.UTFMax {
			return nil, TooLong()
		}
		return text(padText(s, n, fill, name)), nil
	case "zfill":
		if err := arity(1, 1); err != nil {
			return nil, err
		}
		n, err := toIndex(a.Pos[0])
		if err != nil {
			return nil, err
		}
		if n > MaxText {
			return nil, TooLong()
		}
		lack := max(n-runeCount(s), 0)
		// A sign stays in front of the zeros.
		if s != "" && (s[0] == '+' || s[0] == '-') {
			return text(s[:1] + strings.Repeat("0", lack) + s[1:]), nil
		}
		return text(strings.Repeat("0", lack) + s), nil
	case "expandtabs":
		args, err := a.Bind("expandtabs", []string{"tabsize"}, int64(8))
		if err != nil {
			return nil, err
		}
		n, err := toIndex(args[0])
		if err == nil && n > 1000 {
			err = TooLong()
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
		v, err := r.formatText(s, markup, a.Pos, func(name string) (any, bool) { return a.Get(name) })
		return text(v), err
	case "format_map":
		if len(a.Kw) > 0 {
			return nil, typeError("format_map() takes no keyword arguments")
		}
		if len(a.Pos) != 1 {
			return nil, typeError("format_map() takes exactly one argument (%d given)", len(a.Pos))
		}
		v, err := r.formatText(s, markup, nil, func(name string) (any, bool) {
			v, err := r.lookupItem(a.Pos[0], name)
			return v, err == nil
		})
		return text(v), err
	case "encode":
		args, err := a.Bind("encode", []string{"encoding", "errors"}, "utf-8", "strict")
		if err != nil {
			return nil, err
		}
		// The codecs that templates use; any other one is unknown.
		switch enc, _ := isText(args[0]); strings.ToLower(strings.ReplaceAll(enc, "_", "-")) {
		case "utf-8", "utf8":
			return []byte(s), nil
		case "ascii", "latin-1", "latin1", "iso-8859-1":
			// One byte per character; the errors argument decides about the others.
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
			// A character without an entry stays; None deletes it.
			v, err := r.lookupItem(a.Pos[0], int64(c))
			switch t, isStr := isText(v); {
			case err != nil:
				if !asError(err).isLookup() {
					return nil, err
				}
				b.WriteRune(c)
			case v == nil:
			case isStr:
				b.WriteString(t)
			default:
				n, err := toIndex(v)
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
	return textIs(s, name), arity(0, 0)
}
