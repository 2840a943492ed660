package states

import (
	"cmp"
	"slices"

	"github.com/brine-salt/brine/modules/pyobj"
)

// compileHigh turns high data into chunks, in the order in which they run (State.compile_high_data). It also notes
// the SLS files, since a requisite may name a file that has no state.
func (r *Run) compileHigh(high *pyobj.Dict, orchestration any) []*Low {
	var chunks []*Low
	for id, body := range high.All() {
		b, ok := body.(*pyobj.Dict)
		if !ok || isHidden(id) {
			continue
		}
		if b.Has("__sls__") {
			r.processed[bodyText(b, "__sls__")] = true
		}
		for state, run := range b.All() {
			if !isHidden(state) {
				chunks = append(chunks, compileState(id, pyobj.Str(state), b, listItems(run), orchestration)...)
			}
		}
	}
	return orderChunks(chunks)
}

// compileState returns the chunks of one state: one for each function, and with names one for each function and
// name. An entry of names may be a dict, whose arguments then replace those of the state.
func compileState(id any, state string, body *pyobj.Dict, run []any, orchestration any) []*Low {
	chunk := &pyobj.Dict{}
	chunk.Grow(len(run) + 8) // an argument each, and what is not from the SLS
	_ = chunk.Set("state", state)
	_ = chunk.Set("name", id)
	if orchestration != nil {
		_ = chunk.Set("__orchestration_jid__", orchestration)
	}
	for _, key := range [...]string{"__sls__", "__env__", "__sls_included_from__"} {
		if v, ok := body.Get(key); ok {
			_ = chunk.Set(key, v)
		}
	}
	_ = chunk.Set("__id__", id)
	var (
		funs  []string
		names []any
		seen  pyobj.Dict // see addUnique
	)
	for _, arg := range run {
		switch arg := arg.(type) {
		case string:
			if !slices.Contains(funs, arg) {
				funs = append(funs, arg)
			}
		case *pyobj.Dict:
			for k, v := range arg.All() {
				switch k {
				case "names":
					names = addUnique(names, listItems(v), &seen)
				case "state":
				case "name":
					if _, ok := v.(string); !ok {
						v = id
					}
					_ = chunk.Set(k, v)
				default:
					_ = chunk.Set(k, v)
				}
			}
		}
	}
	var chunks []*Low
	add := func(live *pyobj.Dict) {
		live.Grow(4) // the function, and what the run notes
		for _, fun := range funs {
			_ = live.Set("fun", fun)
			chunks = append(chunks, NewLow(live))
		}
	}
	if names == nil {
		add(pyobj.DeepCopy(chunk).(*pyobj.Dict))
	}
	for i, entry := range names {
		live := pyobj.DeepCopy(chunk).(*pyobj.Dict)
		if d, ok := entry.(*pyobj.Dict); ok {
			name := firstKey(d)
			_ = live.Set("name", name)
			for _, more := range listItems(d.Value(name)) {
				if m, ok := more.(*pyobj.Dict); ok {
					live.Update(m)
				}
			}
		} else {
			_ = live.Set("name", entry)
		}
		_ = live.Set("name_order", int64(i+1))
		add(live)
	}
	return chunks
}

// orderChunks sorts chunks by their order, then by state, name and function (State.order_chunks). "first" is 0 and
// "last" is above any number; negative orders count back from there. limit is 100 above the highest order that was
// given, which is where chunks without an order go. The members of names follow each other by a fraction: Salt
// divides name_order by 10000.
func orderChunks(chunks []*Low) []*Low {
	limit := int64(1)
	for _, c := range chunks {
		if n, ok := toInteger(c.d.Value("order")); ok && n > limit-1 && n > 0 {
			limit = n + 100
		}
	}
	type keyed struct {
		low   *Low
		order float64
		text  string
	}
	list := make([]keyed, len(chunks))
	for i, c := range chunks {
		k := keyed{low: c, text: c.state + c.name + c.fun}
		if v, ok := c.d.Get("order"); ok {
			n := orderOf(v, limit)
			if at, ok := c.d.Delete("name_order"); ok {
				f, _ := at.(int64)
				n = toFloat(n) + float64(f)/10000
			}
			if toFloat(n) < 0 {
				if i, ok := n.(int64); ok {
					n = limit + 1000000 + i
				} else {
					n = float64(limit+1000000) + toFloat(n)
				}
			}
			c.Set("order", n)
			k.order = toFloat(n)
		} else {
			c.Set("order", limit)
			k.order = float64(limit)
		}
		list[i] = k
	}
	slices.SortStableFunc(list, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.text, b.text))
	})
	for i := range list {
		chunks[i] = list[i].low
	}
	return chunks
}

// toInteger returns an int64, or a bool as Python counts it.
func toInteger(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// toFloat returns an order as a float64, since "order" may be either kind of number.
func toFloat(v any) float64 {
	if f, ok := v.(float64); ok {
		return f
	}
	n, _ := toInteger(v)
	return float64(n)
}

// orderOf returns the value of order as a number: int64, float64 or bool, which Python keeps apart when it shows
// them.
func orderOf(v any, limit int64) any {
	switch v := v.(type) {
	case int64, float64, bool:
		return v
	case string:
		switch v {
		case "last":
			return limit + 1000000
		case "first":
			return int64(0)
		}
	}
	return limit
}
