package render

import (
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/jinja"
)

// saltFilter returns one of Salt's filters, or nil. Compiled templates are kept for other renders, so filters that
// look at the host find their session when they run.
// Each group returns nil for names that it does not have.
func saltFilter(name string) jinja.Filter {
	if f := serialFilter(name); f != nil {
		return f
	}
	if f := listFilter(name); f != nil {
		return f
	}
	for _, find := range [...]func(string) jinja.Filter{regexFilter, textFilter, dataFilter} {
		if f := find(name); f != nil {
			return f
		}
	}
	// The session is used here only to see which names exist.
	if (&session{}).hostFilter(name) == nil {
		return addressFilter(name)
	}
	return func(r *jinja.Run, v any, a jinja.Args) (any, error) {
		// A filter in a compiled template may belong to an earlier render, so the session comes from this one.
		s, ok := r.Env().Data.(*session)
		if !ok {
			return nil, raiseAs("RuntimeError", "the filter "+name+" needs a host")
		}
		return s.hostFilter(name)(r, v, a)
	}
}

// saltTest returns one of the tests that Salt adds, or nil.
func saltTest(name string) jinja.Test {
	switch name {
	case "match":
		// match begins at the start of the text, unlike regex_search.
		return func(_ *jinja.Run, v any, a jinja.Args) (bool, error) {
			re, text, err := patternArgs("test_match", v, a)
			if err != nil {
				return false, err
			}
			loc, err := re.Match(text)
			return loc != nil, exceptionOf(err)
		}
	case "list":
		return func(_ *jinja.Run, v any, _ jinja.Args) (bool, error) {
			_, ok := v.(*pyobj.List)
			return ok, nil
		}
	}
	return nil
}

// raiseAs returns a Python exception of the class kind.
func raiseAs(kind, msg string) error { return &jinja.Error{Kind: kind, Msg: msg} }

// exceptionOf returns an error of the regular expressions as Python's re.error.
func exceptionOf(err error) error {
	if err == nil {
		return nil
	}
	return raiseAs("error", err.Error())
}

// textArg returns an argument that must be text. An undefined one fails as it fails when printed.
func textArg(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case pyobj.Markup:
		return string(v), nil
	case *jinja.Undefined:
		return jinja.Str(v)
	}
	return "", raiseAs("TypeError", "expected string or bytes-like object, got '"+pyobj.TypeName(v)+"'")
}

// patternArgs binds the arguments rgx, ignorecase and multiline, and returns the pattern and the filter's text.
func patternArgs(fn string, v any, a jinja.Args) (*pyre.Regexp, string, error) {
	args, err := a.Bind(fn, []string{"rgx", "ignorecase", "multiline"}, false, false)
	if err != nil {
		return nil, "", err
	}
	re, err := compilePattern(args[0], args[1], args[2])
	if err != nil {
		return nil, "", err
	}
	text, err := textArg(v)
	return re, text, err
}

// compilePattern compiles a Python regular expression.
func compilePattern(rgx, ignoreCase, multiline any) (*pyre.Regexp, error) {
	p, err := textArg(rgx)
	if err != nil {
		return nil, raiseAs("TypeError", "first argument must be string or compiled pattern")
	}
	// The flags are Python's re.IGNORECASE and re.MULTILINE.
	var flags pyre.Flags
	if yes, err := jinja.Truth(ignoreCase); err != nil {
		return nil, err
	} else if yes {
		flags |= pyre.IgnoreCase
	}
	if yes, err := jinja.Truth(multiline); err != nil {
		return nil, err
	} else if yes {
		flags |= pyre.Multiline
	}
	re, err := pyre.Compile(p, flags)
	return re, exceptionOf(err)
}

// matchGroups returns a match as templates see it: a tuple of its groups, or of the whole match if the pattern
// has no groups.
func matchGroups(text string, loc []int) any {
	if loc == nil {
		return nil
	}
	if len(loc) == 2 {
		return pyobj.Tuple{text[loc[0]:loc[1]]}
	}
	t := pyobj.Tuple{}
	// A group that took no part in the match is None.
	for i := 2; i+1 < len(loc); i += 2 {
		if loc[i] < 0 {
			t = append(t, nil)
		} else {
			t = append(t, text[loc[i]:loc[i+1]])
		}
	}
	return t
}

// regexFilter returns one of the filters on regular expressions, or nil.
func regexFilter(name string) jinja.Filter {
	switch name {
	case "regex_search", "regex_match":
		return func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
			re, text, err := patternArgs(name, v, a)
			if err != nil {
				return nil, err
			}
			find := re.Search
			if name == "regex_match" {
				find = re.Match
			}
			loc, err := find(text)
			if err != nil {
				return nil, exceptionOf(err)
			}
			return matchGroups(text, loc), nil
		}
	case "regex_replace":
		return func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
			args, err := a.Bind("regex_replace", []string{"rgx", "val", "ignorecase", "multiline"}, false, false)
			if err != nil {
				return nil, err
			}
			re, err := compilePattern(args[0], args[2], args[3])
			if err != nil {
				return nil, err
			}
			text, err := textArg(v)
			if err != nil {
				return nil, err
			}
			repl, err := textArg(args[1])
			if err != nil {
				return nil, err
			}
			// All matches are replaced, with Python's syntax for groups.
			out, _, err := re.Subn(repl, text, 0)
			return out, exceptionOf(err)
		}
	case "regex_escape":
		return plainFilter(name, func(v any) (any, error) {
			switch x := v.(type) {
			case string, pyobj.Markup, *jinja.Undefined:
			case []byte:
				return nil, raiseAs("TypeError", "cannot use a string pattern on a bytes-like object")
			default:
				return nil, raiseAs("TypeError", "decoding to str: need a bytes-like object, "+pyobj.TypeName(x)+" found")
			}
			text, err := textArg(v)
			return pyre.Escape(text), err
		})
	}
	return nil
}
