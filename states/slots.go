package states

import (
	"context"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// slotMark begins an argument whose value an execution function returns when the state runs:
// "__slot__:salt:mod.fun(arg, key=value).a.b ~ text".
const slotMark = "__slot__:"

// formatSlots replaces slots by their values: in strings, in the values of dicts, and in lists of both
// (State.format_slots). args is copied only if it contains slots, since few do.
func (r *Run) formatSlots(ctx context.Context, args map[string]any) (map[string]any, error) {
	out := args
	for k, v := range args {
		now, touched, err := r.formatSlot(ctx, v, 2)
		if err != nil {
			return nil, err
		}
		if !touched {
			continue
		}
		if len(out) == len(args) {
			out = make(map[string]any, len(args)+1)
			for k, v := range args {
				out[k] = v
			}
			out[""] = nil // a name that no argument has, which shows that out is a copy
		}
		out[k] = now
	}
	if len(out) > len(args) {
		delete(out, "")
	}
	return out, nil
}

// formatSlot evaluates one value. depth is how many levels of lists and dicts may still contain slots; Salt looks
// two deep.
func (r *Run) formatSlot(ctx context.Context, v any, depth int) (now any, touched bool, err error) {
	switch v := v.(type) {
	case string:
		if !strings.HasPrefix(v, slotMark) {
			return v, false, nil
		}
		now, err = r.evaluateSlot(ctx, v)
		return now, true, err
	case *pyobj.Dict:
		if depth == 0 {
			return v, false, nil
		}
		var out *pyobj.Dict
		for k, x := range v.All() {
			s, ok := x.(string)
			if !ok || !strings.HasPrefix(s, slotMark) {
				continue
			}
			if now, err = r.evaluateSlot(ctx, s); err != nil {
				return nil, false, err
			}
			if out == nil {
				out = v.Copy()
			}
			_ = out.Set(k, now)
		}
		if out != nil {
			return out, true, nil
		}
	case *pyobj.List:
		if depth < 2 {
			return v, false, nil
		}
		var out *pyobj.List
		for i, x := range v.Items {
			now, touched, err := r.formatSlot(ctx, x, depth-1)
			if err != nil {
				return nil, false, err
			}
			if touched {
				if out == nil {
					out = pyobj.NewList(append([]any{}, v.Items...)...)
				}
				out.Items[i] = now
			}
		}
		if out != nil {
			return out, true, nil
		}
	}
	return v, false, nil
}

// evaluateSlot calls the function of a slot. A slot that cannot be parsed stays as it is, with a warning, as in
// Salt.
func (r *Run) evaluateSlot(ctx context.Context, slot string) (any, error) {
	log := r.env.Logger()
	parts := strings.SplitN(slot, ":", 3)
	if len(parts) != 3 || parts[1] != "salt" {
		log.Warn("Malformed slot: " + slot)
		return slot, nil
	}
	fun, args, kwargs, ok := parseFunction(parts[2])
	if !ok || !r.hasExec(fun) {
		log.Warn("Malformed slot: " + slot)
		return slot, nil
	}
	v, err := r.callExec(ctx, fun, args, kwargs)
	if err != nil {
		return nil, err
	}
	text, more, appends := strings.Cut(parts[2], "~")
	if end := strings.LastIndexByte(text, ')'); end >= 0 {
		if _, path, ok := strings.Cut(text[end+1:], "."); ok {
			v = traversePath(v, strings.TrimSpace(path), ".")
		}
	}
	if !appends {
		return pyobj.From(v), nil
	}
	s, isText := v.(string)
	if !isText {
		log.Error("Ignoring slot append, slot result is not a string")
		return pyobj.From(v), nil
	}
	more = strings.TrimSpace(more)
	if n := len(more); n >= 2 && more[0] == more[n-1] && (more[0] == '"' || more[0] == '\'') {
		more = more[1 : n-1]
	}
	return s + more, nil
}

// traversePath walks into a plain value along a path of keys and indexes (salt/utils/data.py:
// traverse_dict_and_list). It returns nil if the path leads nowhere.
func traversePath(v any, path, delimiter string) any {
	for _, key := range strings.Split(path, delimiter) {
		switch x := v.(type) {
		case map[string]any:
			next, ok := x[key]
			if !ok {
				return nil
			}
			v = next
		case map[any]any:
			next, ok := x[key]
			if !ok {
				n, err := strconv.ParseInt(key, 10, 64)
				if err != nil {
					return nil
				}
				if next, ok = x[n]; !ok {
					return nil
				}
			}
			v = next
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil {
				v = inList(x, key)
				if v == nil {
					return nil
				}
				continue
			}
			if n < 0 {
				n += len(x)
			}
			if n < 0 || n >= len(x) {
				return nil
			}
			v = x[n]
		default:
			return nil
		}
	}
	return v
}

// inList returns the value of a key in the first dict of a list that has it.
func inList(list []any, key string) any {
	for _, x := range list {
		if m, ok := x.(map[string]any); ok {
			if v, ok := m[key]; ok {
				return v
			}
		}
	}
	return nil
}

// parseFunction parses "mod.fun(arg, key=value)" (salt/utils/args.py: parse_function). All values are strings.
func parseFunction(s string) (fun string, args []any, kwargs map[string]any, ok bool) {
	words := &lexer{s: s}
	var name strings.Builder
	for {
		tok, more := words.next()
		if !more {
			return "", nil, nil, false
		}
		if tok == "(" {
			break
		}
		name.WriteString(tok)
	}
	if name.Len() == 0 {
		return "", nil, nil, false
	}
	kwargs = map[string]any{}
	var (
		word     []string
		brackets []byte
		key      string
		hasKey   bool
	)
	for {
		tok, more := words.next()
		if !more {
			return "", nil, nil, false
		}
		switch {
		case tok == "[" || tok == "{" || tok == "(":
			word, brackets = append(word, tok), append(brackets, tok[0])
		case (tok == "," || tok == ")") && len(brackets) == 0:
			if hasKey && key != "" {
				kwargs[key] = strings.Join(word, "")
			} else if len(word) > 0 {
				args = append(args, strings.Join(word, ""))
			}
			if tok == ")" {
				return name.String(), args, kwargs, true
			}
			key, hasKey, word = "", false, nil
		case tok == "]" || tok == "}" || tok == ")":
			if len(brackets) == 0 || tok[0] != closingBracket(brackets[len(brackets)-1]) {
				return "", nil, nil, false
			}
			brackets, word = brackets[:len(brackets)-1], append(word, tok)
		case tok == "=" && len(brackets) == 0:
			key, hasKey, word = strings.Join(word, ""), true, nil
		default:
			word = append(word, tok)
		}
	}
}

// closingBracket returns the bracket that closes an open one.
func closingBracket(open byte) byte {
	switch open {
	case '[':
		return ']'
	case '{':
		return '}'
	}
	return ')'
}

// A lexer splits a function call as Python's shlex.shlex(posix=True) does: into words of letters, digits and "_",
// quoted strings that join the words beside them, and single other characters.
type lexer struct {
	s  string
	at int
}

// wordByte reports whether shlex counts a byte as part of a word. Its list ends with the letters of Latin-1, hence
// 0xc0.
func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0xc0
}

// next returns the next token; false at the end or if a quote is not closed.
func (l *lexer) next() (tok string, ok bool) {
	for l.at < len(l.s) && strings.IndexByte(" \t\r\n", l.s[l.at]) >= 0 {
		l.at++
	}
	if l.at < len(l.s) && l.s[l.at] == '#' {
		return "", false // a comment to the end of the line; slots have one line
	}
	if l.at == len(l.s) {
		return "", false
	}
	if c := l.s[l.at]; !wordByte(c) && c != '\\' && c != '"' && c != '\'' {
		l.at++
		return l.s[l.at-1 : l.at], true
	}
	var b strings.Builder
	for l.at < len(l.s) {
		switch c := l.s[l.at]; {
		case c == '\\':
			if l.at++; l.at == len(l.s) {
				return "", false
			}
			b.WriteByte(l.s[l.at])
			l.at++
		case c == '"' || c == '\'':
			if !l.readQuoted(&b, c) {
				return "", false
			}
		case wordByte(c) || c >= 0x80:
			b.WriteByte(c)
			l.at++
		default:
			return b.String(), true
		}
	}
	return b.String(), true
}

// readQuoted reads a quoted string. In both kinds of quotes a backslash escapes itself and the quote.
func (l *lexer) readQuoted(b *strings.Builder, quote byte) bool {
	for l.at++; l.at < len(l.s); l.at++ {
		switch c := l.s[l.at]; {
		case c == quote:
			l.at++
			return true
		case c == '\\' && l.at+1 < len(l.s):
			l.at++
			if next := l.s[l.at]; next != '\\' && next != quote {
				b.WriteByte('\\')
			}
			b.WriteByte(l.s[l.at])
		default:
			b.WriteByte(c)
		}
	}
	return false
}
