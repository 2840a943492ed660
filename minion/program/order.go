package program

import (
	"cmp"
	"maps"
	"slices"

	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/internal/yaml"
	"github.com/brine-salt/brine/modules"
)

// inOrder is a result for an outputter. json, raw and txt keep the order of dictionaries: that which the function gave it, and states
// in the order in which they ran. raw and txt show tuples, too. nested and yaml keep it where stock has an OrderedDict, as for high data and other YAML, and sort what
// stock has as lists of dictionaries, as low data.
func inOrder(res modules.Result, outputter string) any {
	switch outputter {
	case "json":
	case "raw", "txt":
		if res.Ordered != nil {
			return res.Ordered
		}
	case "nested", "yaml":
		if _, dict := res.Ordered.(*pyobj.Dict); !dict {
			return res.Return
		}
	default:
		return res.Return
	}
	if res.Ordered != nil {
		return ordered(res.Ordered)
	}
	chunks, ok := res.Return.(map[string]any)
	if !ok || res.Out != "highstate" || outputter == "nested" || outputter == "yaml" {
		return res.Return
	}
	out := make(yaml.Map, 0, len(chunks))
	for _, tag := range slices.Sorted(maps.Keys(chunks)) {
		chunk, _ := chunks[tag].(map[string]any)
		if _, ran := chunk["__run_num__"].(int64); !ran {
			return res.Return
		}
		out = append(out, yaml.Item{Key: tag, Value: chunk})
	}
	number := func(it yaml.Item) int64 { return it.Value.(map[string]any)["__run_num__"].(int64) }
	sorting.Stable(out, func(a, b yaml.Item) int { return cmp.Compare(number(a), number(b)) })
	return out
}

func ordered(v any) any {
	switch v := v.(type) {
	case *pyobj.Dict:
		out := make(yaml.Map, 0, v.Len())
		for k, x := range v.All() {
			out = append(out, yaml.Item{Key: pyobj.Plain(k), Value: ordered(x)})
		}
		return out
	case pyobj.Tuple:
		return ordered(&pyobj.List{Items: v})
	case *pyobj.List:
		out := make([]any, len(v.Items))
		for i, x := range v.Items {
			out[i] = ordered(x)
		}
		return out
	}
	return pyobj.Plain(v)
}
