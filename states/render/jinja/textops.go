package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/brine-salt/brine/modules/pyobj"
)

// lower implements str.lower. Go converts İ to i alone, but Python keeps the dot as a combining character.
func lower(s string) string {
	if strings.Contains(s, "İ") {
		return strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(s, "İ", "i\u0307")), "İ", "i\u0307")
	}
	return strings.ToLower(s)
}

// ligature returns a letter that has no single capital as small letters, or "" for any other letter. Go maps each
// rune to one rune, but Python maps these to several characters.
func ligature(c rune) string {
	switch c {
	case 'ß':
		return "ss"
	case 'ŉ':
		return "ʼn"
	case 'ﬀ':
		return "ff"
	case 'ﬁ':
		return "fi"
	case 'ﬂ':
		return "fl"
	case 'ﬃ':
		return "ffi"
	case 'ﬄ':
		return "ffl"
	case 'ﬅ', 'ﬆ':
		return "st"
	}
	return ""
}

// mapText changes every character of a text; each may become several.
func mapText(s string, change func(c rune) string) string {
	var b strings.Builder
	for _, c := range s {
		b.WriteString(change(c))
	}
	return b.String()
}

// upperRune returns the capital of a letter.
func upperRune(c rune) string {
	if l := ligature(c); l != "" {
		return strings.ToUpper(l)
	}
	return string(unicode.ToUpper(c))
}

// titleRune returns the title case of a letter, which differs from the capital for ligatures and digraphs.
func titleRune(c rune) string {
	if l := ligature(c); l != "" {
		return capitalize(l)
	}
	return string(unicode.ToTitle(c))
}

// upper implements str.upper, in which ß becomes two letters. ASCII has a fast path.
func upper(s string) string {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return mapText(s, upperRune)
		}
	}
	return strings.ToUpper(s)
}

// casefold implements str.casefold.
func casefold(s string) string {
	return mapText(lower(s), func(c rune) string {
		if l := ligature(c); l != "" {
			return l
		}
		return string(c)
	})
}

// swapcase implements str.swapcase.
func swapcase(s string) string {
	return mapText(s, func(c rune) string {
		if unicode.IsUpper(c) {
			return lower(string(c))
		}
		return upperRune(c)
	})
}

// capitalize implements str.capitalize.
func capitalize(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return titleRune(r) + lower(s[n:])
}

// titleText implements str.title: a letter after one that is not cased begins a word, even after an apostrophe.
func titleText(s string) string {
	cased := false
	return mapText(s, func(c rune) string {
		was := cased
		cased = unicode.IsUpper(c) || unicode.IsLower(c) || unicode.IsTitle(c)
		if was {
			return lower(string(c))
		}
		return titleRune(c)
	})
}

// splitText implements str.split and rsplit.
func splitText(s, name string, a Args) ([]string, error) {
	args, err := a.Bind(name, []string{"sep", "maxsplit"}, nil, int64(-1))
	if err != nil {
		return nil, err
	}
	n, err := toIndex(args[1])
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

// splitBlank splits at runs of white space, at most n times, from the end if right is set. A negative n means no
// limit.
func splitBlank(s string, n int, right bool) []string {
	if n < 0 {
		// White space at the ends never results in an empty part.
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

// replaceText implements str.replace within MaxText: the size is computed before the text is built.
func replaceText(s, old, repl string, n int) (string, error) {
	count := strings.Count(s, old)
	if n >= 0 {
		count = min(count, n)
	}
	if grow := len(repl) - len(old); grow > 0 && count > (MaxText-len(s))/grow {
		return "", TooLong()
	}
	return strings.Replace(s, old, repl, n), nil
}

// textWindow returns the part of a text between the optional arguments start and end, and where it begins. ok is
// false if start is behind end.
func textWindow(s string, rest []any) (part string, offset int, ok bool, err error) {
	n := runeCount(s)
	from, to := 0, n
	for i, v := range rest {
		if v == nil {
			continue
		}
		k, err := toIndex(v)
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

// testAffix implements str.startswith and endswith, of one text or any of a tuple.
func testAffix(s, name string, a Args) (any, error) {
	if err := checkArity(a, "str."+name, 1, 3); err != nil {
		return nil, err
	}
	part, _, ok, err := textWindow(s, a.Pos[1:])
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

// findText implements str.find, rfind, index, rindex and count. Positions are in characters.
func findText(s, name string, a Args) (any, error) {
	if err := checkArity(a, "str."+name, 1, 3); err != nil {
		return nil, err
	}
	t, ok := isText(a.Pos[0])
	if !ok {
		return nil, typeError("must be str, not %s", pyobj.TypeName(a.Pos[0]))
	}
	part, offset, ok, err := textWindow(s, a.Pos[1:])
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
		return int64(offset + runeCount(part[:i])), nil
	}
	if strings.HasSuffix(name, "index") {
		return nil, valueError("substring not found")
	}
	return int64(-1), nil
}

// padText implements str.center, ljust and rjust.
func padText(s string, n int, fill, how string) string {
	lack := n - runeCount(s)
	if lack <= 0 {
		return s
	}
	left := 0
	switch how {
	case "rjust":
		left = lack
	case "center":
		// CPython puts the odd blank at the left only if the width is odd, too.
		left = lack/2 + (lack & n & 1)
	}
	return strings.Repeat(fill, left) + s + strings.Repeat(fill, lack-left)
}

// expandTabs implements str.expandtabs. A column is counted from the last line break.
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

// maketrans implements str.maketrans: a dict from code points to what replaces them, nil to delete.
func maketrans(a Args) (any, error) {
	if err := checkArity(a, "maketrans", 1, 3); err != nil {
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
				if runeCount(t) != 1 {
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

// textIs implements the methods isalpha, isdigit and so on.
func textIs(s, name string) bool {
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
	// All the others are false for an empty text.
	if s == "" {
		return false
	}
	switch name {
	case "islower", "isupper":
		// A text without a cased letter is neither upper nor lower.
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
		// Capitals may follow only uncased characters, and small letters only cased ones.
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
