package jinja

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/modules/pyobj"
)

// filterTitle implements Jinja's title: every word begins with a capital. Unlike for str.title, a word ends only at a
// blank, a hyphen or a bracket.
func filterTitle(s string) string {
	var b strings.Builder
	word := ""
	flush := func() {
		if word != "" {
			first, n := utf8.DecodeRuneInString(word)
			b.WriteString(upperRune(first) + lower(word[n:]))
			word = ""
		}
	}
	for _, c := range s {
		if pySpace(c) || strings.ContainsRune("-({[<", c) {
			flush()
			b.WriteRune(c)
			continue
		}
		word += string(c)
	}
	flush()
	return b.String()
}

// stripTags implements Markup.striptags: comments and tags are removed, and a run of white space becomes one blank.
// Comments are removed first, because they may contain tags.
func stripTags(s string) string {
	for {
		i := strings.Index(s, "<!--")
		if i < 0 {
			break
		}
		j := strings.Index(s[i:], "-->")
		if j < 0 {
			break
		}
		s = s[:i] + s[i+j+3:]
	}
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			break
		}
		j := strings.IndexByte(s[i:], '>')
		if j < 0 {
			break
		}
		s = s[:i] + s[i+j+1:]
	}
	return unescapeHTML(strings.Join(strings.FieldsFunc(s, pySpace), " "))
}

// unescapeHTML replaces entities with their characters, as html.unescape does.
func unescapeHTML(s string) string { return html.UnescapeString(s) }

// quoteURL implements Jinja's url_quote. In a query a blank is "+" and a slash is quoted.
func quoteURL(v any, query bool) (string, error) {
	s := ""
	if b, ok := v.([]byte); ok {
		s = string(b)
	} else {
		var err error
		if s, err = Str(v); err != nil {
			return "", err
		}
	}
	safe := "/"
	if query {
		safe = ""
	}
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_.-~"+safe, c) >= 0:
			b.WriteByte(c)
		case c == ' ' && query:
			b.WriteByte('+')
		default:
			b.WriteString("%" + string("0123456789ABCDEF"[c>>4]) + string("0123456789ABCDEF"[c&15]))
		}
	}
	return b.String(), nil
}

// filterURLEncode implements Jinja's urlencode: a text is quoted as a path, a mapping or pairs as a query.
func filterURLEncode(r *Run, v any, _ Args) (any, error) {
	if u, ok := v.(*Undefined); ok && u.kind == Strict {
		return nil, u.fail()
	}
	_, text := isText(v)
	var pairs []any
	var err error
	// A text is quoted as it is.
	switch {
	case text:
		return quoteURL(v, false)
	default:
		if d, ok := v.(*pyobj.Dict); ok {
			pairs = (&view{d, "items"}).viewItems()
		} else if pairs, err = Collect(v); err != nil {
			if isKind(err, "TypeError") {
				return quoteURL(v, false)
			}
			return nil, err
		}
	}
	// Pairs are joined as a query.
	var parts []string
	for _, p := range pairs {
		kv, err := Collect(p)
		if err != nil {
			return nil, err
		}
		if len(kv) != 2 {
			return nil, valueError("not enough values to unpack (expected 2, got %d)", len(kv))
		}
		k, err := quoteURL(kv[0], true)
		if err != nil {
			return nil, err
		}
		x, err := quoteURL(kv[1], true)
		if err != nil {
			return nil, err
		}
		parts = append(parts, k+"="+x)
	}
	return strings.Join(parts, "&"), nil
}

// filterXMLAttr implements Jinja's xmlattr. Undefined and None values are left out.
func filterXMLAttr(r *Run, v any, a Args) (any, error) {
	a.Before++ // Python also counts the environment
	args, err := a.Bind("do_xmlattr", []string{"autospace"}, true)
	if err != nil {
		return nil, err
	}
	space, err := Truth(args[0])
	if err != nil {
		return nil, err
	}
	pairs, err := r.itemPairs(v)
	if err != nil {
		return nil, err
	}
	var parts []string
	for _, p := range pairs {
		k, x := p.(pyobj.Tuple)[0], p.(pyobj.Tuple)[1]
		if _, undef := x.(*Undefined); undef || x == nil {
			continue
		}
		name, err := Str(k)
		if err != nil {
			return nil, err
		}
		// A key with such a character could add attributes of its own (CVE-2024-22195 and CVE-2024-34064 of Jinja).
		if strings.ContainsAny(name, " \t\n\r\f\v/>=") {
			return nil, valueError("Invalid character in attribute name: %s", pyobj.Repr(k))
		}
		m, err := escapeValue(x)
		if err != nil {
			return nil, err
		}
		parts = append(parts, Escape(name)+`="`+string(m)+`"`)
	}
	out := strings.Join(parts, " ")
	if space && out != "" {
		out = " " + out
	}
	return textLike(out, r.autoescape), nil
}

// The patterns of urlize, from jinja2/utils.py.
const (
	httpPattern = `^((https?://|www\.)(([\w%-]+\.)+)?([a-z]{2,63}|xn--[\w%]{2,59})|([\w%-]{2,63}\.)+(com|net|int|edu|gov|org|info|mil)|` +
		`(https?://)((([\d]{1,3})(\.[\d]{1,3}){3})|(\[([\da-f]{0,4}:){2}([\da-f]{0,4}:?){1,6}])))(?::[\d]{1,5})?(?:[/?#]\S*)?$`
	emailPattern = `^\S+@\w[\w.-]*\.\w+$`
)

// filterURLize implements Jinja's urlize: words that look like addresses become links.
func filterURLize(r *Run, v any, a Args) (any, error) {
	a.Before++ // Python also counts the environment
	args, err := a.Bind("do_urlize", []string{"trim_url_limit", "nofollow", "target", "rel", "extra_schemes"}, nil, false, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	limit := -1
	if args[0] != nil {
		if limit, err = toIndex(args[0]); err != nil {
			return nil, err
		}
	}
	// rel is a set, because Jinja sorts the values.
	rel := map[string]bool{"noopener": true}
	if args[3] != nil {
		s, _ := isText(args[3])
		for _, w := range strings.Fields(s) {
			rel[w] = true
		}
	}
	if yes, err := Truth(args[1]); err != nil {
		return nil, err
	} else if yes {
		rel["nofollow"] = true
	}
	relAttr := ""
	if len(rel) > 0 {
		relAttr = ` rel="` + Escape(strings.Join(sortedKeys(rel), " ")) + `"`
	}
	targetAttr := ""
	if t, ok := isText(args[2]); ok {
		targetAttr = ` target="` + Escape(t) + `"`
	}
	var schemes []string
	if args[4] != nil {
		list, err := Collect(args[4])
		if err != nil {
			return nil, err
		}
		for _, x := range list {
			s, _ := isText(x)
			name := strings.TrimSuffix(strings.TrimRight(s, "/"), ":")
			// Each scheme must match _uri_scheme_re: two characters or more, then a colon and at most two slashes.
			if len(name) < 2 || strings.TrimFunc(name, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("_.+-", c) }) != "" ||
				!strings.HasPrefix(s, name+":") || len(s)-len(name) > 3 {
				return nil, raise("FilterArgumentError", "%s is not a valid URI scheme prefix.", pyobj.Repr(x))
			}
			schemes = append(schemes, s)
		}
	}
	// The text is escaped first, and links are inserted into the escaped text.
	m, err := escapeValue(v)
	if err != nil {
		return nil, err
	}
	http, err := pyre.Compile(httpPattern, pyre.IgnoreCase)
	if err != nil {
		return nil, err
	}
	email, err := pyre.Compile(emailPattern, 0)
	if err != nil {
		return nil, err
	}
	trim := func(s string) string {
		if limit >= 0 && runeCount(s) > limit {
			return firstRunes(s, limit) + "..."
		}
		return s
	}
	matches := func(re *pyre.Regexp, s string) bool {
		loc, err := re.Search(s)
		return err == nil && loc != nil
	}
	words := wordsAndBlanks(string(m))
	for i, word := range words {
		// Brackets and punctuation around a word are not part of the address.
		head, middle, tail := "", word, ""
		if n := openingRun(middle); n > 0 {
			head, middle = middle[:n], middle[n:]
		}
		if n := closingRun(middle); n > 0 {
			tail, middle = middle[len(middle)-n:], middle[:len(middle)-n]
		}
		// A closing bracket belongs to the address if the address contains the opening one, as in names of Wikipedia
		// articles.
		for _, pair := range [][2]string{{"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}} {
			count := strings.Count(middle, pair[0])
			if count <= strings.Count(middle, pair[1]) {
				continue
			}
			for range min(count, strings.Count(tail, pair[1])) {
				end := strings.Index(tail, pair[1]) + len(pair[1])
				middle += tail[:end]
				tail = tail[end:]
			}
		}
		link := func(href, extra, text string) string {
			return `<a href="` + href + `"` + extra + `>` + text + `</a>`
		}
		// The order is: web addresses, mailto:, plain addresses, and the extra schemes.
		switch {
		case matches(http, middle):
			if strings.HasPrefix(middle, "https://") || strings.HasPrefix(middle, "http://") {
				middle = link(middle, relAttr+targetAttr, trim(middle))
			} else {
				middle = link("https://"+middle, relAttr+targetAttr, trim(middle))
			}
		case strings.HasPrefix(middle, "mailto:") && matches(email, middle[7:]):
			middle = link(middle, "", middle[7:])
		case strings.Contains(middle, "@") && !strings.HasPrefix(middle, "www.") && middle[0] != '@' && !strings.Contains(middle, ":") && matches(email, middle):
			middle = link("mailto:"+middle, "", middle)
		default:
			for _, s := range schemes {
				if middle != s && strings.HasPrefix(middle, s) {
					middle = link(middle, relAttr+targetAttr, middle)
				}
			}
		}
		words[i] = head + middle + tail
	}
	return textLike(strings.Join(words, ""), r.autoescape), nil
}

// sortedKeys returns the keys of a set in Python's order, which is by code points.
func sortedKeys(m map[string]bool) []string {
	items := make([]any, 0, len(m))
	for k := range m {
		items = append(items, k)
	}
	items, _ = sortItems(items, nil, false)
	out := make([]string, len(items))
	for i, k := range items {
		out[i] = k.(string)
	}
	return out
}

// wordsAndBlanks splits a text into alternating runs of words and white space, which can be joined again unchanged.
func wordsAndBlanks(s string) []string {
	var parts []string
	start, blank := 0, false
	for i, c := range s {
		if pySpace(c) != blank {
			if i > start {
				parts = append(parts, s[start:i])
			}
			start, blank = i, !blank
		}
	}
	return append(parts, s[start:])
}

// openingRun returns the length of the brackets that a word begins with.
func openingRun(s string) int {
	n := 0
	for {
		switch {
		case strings.HasPrefix(s[n:], "&lt;"):
			n += 4
		case strings.HasPrefix(s[n:], "(") || strings.HasPrefix(s[n:], "<"):
			n++
		default:
			return n
		}
	}
}

// closingRun returns the length of the brackets and punctuation that a word ends with.
func closingRun(s string) int {
	n := len(s)
	for n > 0 {
		switch {
		case strings.HasSuffix(s[:n], "&gt;"):
			n -= 4
		case strings.HasSuffix(s[:n], `\n`):
			n -= 2
		case strings.IndexByte(")>.,\n", s[n-1]) >= 0:
			n--
		default:
			return len(s) - n
		}
	}
	return len(s)
}
