package output

import (
	"math"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/payload"
)

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func decodeText(b []byte) (string, bool) {
	return string(b), utf8.Valid(b)
}

// plain converts ordered mappings, and lists of other types, to types that pyrepr supports.
func plain(v any) any {
	switch v := v.(type) {
	case payload.OrderedMap:
		m := make(map[any]any, len(v))
		for _, it := range v {
			m[it.Key] = plain(it.Value)
		}
		return m
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = plain(e)
		}
		return out
	case map[any]any:
		out := make(map[any]any, len(v))
		for k, e := range v {
			out[k] = plain(e)
		}
		return out
	case []string, []map[string]any:
		r := reflect.ValueOf(v)
		out := make([]any, r.Len())
		for i := range out {
			out[i] = plain(r.Index(i).Interface())
		}
		return out
	}
	return v
}

func isNumber(v any) bool {
	switch v.(type) {
	case int64, uint64, float64, int, int32, uint32, float32:
		return true
	}
	return false
}

func isInt(v any) bool {
	switch v.(type) {
	case bool, int64, uint64, int, int32, uint32:
		return true
	}
	return false
}

// truth implements Python's bool(), also for ordered mappings.
func truth(v any) bool {
	if m, ok := v.(payload.OrderedMap); ok {
		return len(m) > 0
	}
	return pytext.Truth(v)
}

// words returns the elements of a list, or the parts of a text between commas.
func words(v any) []string {
	switch v := v.(type) {
	case string:
		return strings.Split(v, ",")
	case []any:
		out := make([]string, len(v))
		for i, e := range v {
			out[i] = pytext.Str(e)
		}
		return out
	}
	return nil
}

// float implements Python's float() for the durations of states.
func float(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return f, err == nil && !math.IsNaN(f)
	}
	return 0, false
}

// stripEscapes replaces escape characters by question marks, unless the options keep them: results must not control
// the terminal.
func (r *renderer) stripEscapes(s string) string {
	if r.KeepEscapes {
		return s
	}
	return strings.ReplaceAll(s, "\x1b", "?")
}

// pythonic converts ordered mappings at every depth to pyobj's dicts, so that Python's text of a dict keeps their
// order.
func pythonic(v any) any {
	switch v := v.(type) {
	case payload.OrderedMap:
		d := pyobj.NewDict()
		for _, it := range v {
			_ = d.Set(it.Key, pythonic(it.Value))
		}
		return d
	case map[string]any:
		d := pyobj.NewDict()
		for _, k := range sortedKeys(v) {
			_ = d.Set(k, pythonic(v[k]))
		}
		return d
	case map[any]any:
		d := pyobj.NewDict()
		for _, k := range pytext.SortKeys(v) {
			_ = d.Set(k, pythonic(v[k]))
		}
		return d
	case []any:
		out := &pyobj.List{Items: make([]any, len(v))}
		for i, x := range v {
			out.Items[i] = pythonic(x)
		}
		return out
	case []string, []map[string]any:
		return pythonic(plain(v))
	}
	return v
}
