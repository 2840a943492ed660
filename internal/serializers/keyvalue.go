package serializers

import (
	"errors"
	"fmt"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules/pyobj"
)

// separator returns the option separator, "=" by default.
func separator(opts *pyobj.Dict) string {
	if s, ok := opts.Value("separator").(string); ok {
		return s
	}
	return "="
}

// writeKeyValue formats keys and values, one pair per line.
func writeKeyValue(v any, opts *pyobj.Dict) (any, error) {
	if err := refuse("keyvalue", opts, "line_ending", "quoting", "separator"); err != nil {
		return nil, err
	}
	end := "\n"
	if s, ok := opts.Value("line_ending").(string); ok && s != "" {
		end = s
	}
	var lines []string
	add := func(k, v any) error {
		if pyobj.Truth(opts.Value("quoting")) {
			s, ok := v.(string)
			if !ok && pyobj.Truth(v) {
				return fmt.Errorf("expected string or bytes-like object, got '%s'", pyobj.TypeName(v))
			}
			v = shlex.Quote(s)
		}
		lines = append(lines, pyobj.Str(k)+separator(opts)+pyobj.Str(v))
		return nil
	}
	switch v := v.(type) {
	case *pyobj.Dict:
		for k, x := range v.All() {
			if err := add(k, x); err != nil {
				return nil, err
			}
		}
	case *pyobj.List, pyobj.Tuple:
		items, _ := iterate(v)
		for _, x := range items {
			pair, err := iterate(x)
			switch {
			case err != nil:
				return nil, err
			case len(pair) < 2:
				return nil, fmt.Errorf("not enough values to unpack (expected 2, got %d)", len(pair))
			case len(pair) > 2:
				return nil, errors.New("too many values to unpack (expected 2)")
			}
			if err := add(pair[0], pair[1]); err != nil {
				return nil, err
			}
		}
	default:
		return nil, errors.New("Input validation failed. Iterable required.")
	}
	return strings.Join(lines, end), nil
}

func readKeyValue(text string, opts *pyobj.Dict) (any, error) {
	if err := refuse("keyvalue", opts, "quoting", "separator"); err != nil {
		return nil, err
	}
	sep := separator(opts)
	if sep == "" {
		return nil, errors.New("empty separator")
	}
	ret := &pyobj.Dict{}
	for _, line := range pytext.SplitLines(text, false) {
		key, val, ok := strings.Cut(line, sep)
		if !ok {
			return nil, errors.New("not enough values to unpack (expected 2, got 1)")
		}
		if opts.Value("quoting") == any(false) && len(val) > 1 && val[0] == val[len(val)-1] && (val[0] == '"' || val[0] == '\'') {
			val = val[1 : len(val)-1]
		}
		_ = ret.Set(key, val)
	}
	return ret, nil
}
