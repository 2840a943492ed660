package oracle

import (
	"encoding/hex"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

func unwrapMap(m map[string]any) map[string]any { return unwrap(m).(map[string]any) }

// unwrap undoes the wrapping of wire.py.
func unwrap(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = unwrap(v[i])
		}
		return v
	case map[string]any:
		kind, ok := v["__py__"].(string)
		if !ok {
			for k := range v {
				v[k] = unwrap(v[k])
			}
			return v
		}
		text, _ := v["text"].(string)
		switch kind {
		case "int":
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				return n
			}
			return text
		case "float":
			f, _ := strconv.ParseFloat(text, 64)
			return f
		case "bytes":
			b, _ := hex.DecodeString(v["hex"].(string))
			return b
		case "map":
			m := map[any]any{}
			for _, item := range v["items"].([]any) {
				pair := item.([]any)
				m[unwrap(pair[0])] = unwrap(pair[1])
			}
			return m
		}
		return "<" + kind + "> " + text
	}
	return v
}

// Plain gives one of our values the types that unwrapping gives stock's.
func Plain(v any) any {
	switch v := v.(type) {
	case *pyobj.Dict, *pyobj.List:
		return Plain(pyobj.Plain(v))
	case uint64:
		return strconv.FormatUint(v, 10)
	case *big.Int:
		return v.String()
	case time.Time:
		return "<" + strings.TrimPrefix(pyobj.TypeName(v), "datetime.") + "> " + pytext.Str(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = Plain(v[i])
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for k := range v {
			m[k] = Plain(v[k])
		}
		return m
	case map[any]any:
		m := make(map[any]any, len(v))
		for k := range v {
			m[Plain(k)] = Plain(v[k])
		}
		return m
	}
	return v
}

// Exception is the Python exception that stands for one of our errors, and its message.
func Exception(err error) (name, text string) {
	if name, text = modules.Exception(err); name == "" {
		return "<go>", text
	}
	return name[strings.LastIndexByte(name, '.')+1:], text
}

// Without takes the part at a path out of a value; * stands for every key or index.
func Without(v any, path []string) any {
	drop := path[0]
	switch m := v.(type) {
	case map[string]any:
		for k := range m {
			switch {
			case drop != k && drop != "*":
			case len(path) == 1:
				delete(m, k)
			default:
				m[k] = Without(m[k], path[1:])
			}
		}
	case []any:
		for i := range m {
			switch {
			case drop != strconv.Itoa(i) && drop != "*":
			case len(path) == 1:
				m[i] = nil
			default:
				m[i] = Without(m[i], path[1:])
			}
		}
	}
	return v
}
