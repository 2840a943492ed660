package manage

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/master/runner/host"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/difflib"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// pool holds the minions with equal results.
type pool struct {
	ids    []string
	result string // like Python's str
}

// surveyModule declares the runner survey (salt/runners/survey.py).
func (f funcs) surveyModule() *modules.Module {
	return &modules.Module{Name: "survey",
		Doc: "Which minions return the same, and how the others differ.", Funcs: []modules.Def{
			{Name: "hash", Doc: `Run a function and put minions that return the same together, the largest group first.

args
    The target, the function and its arguments.
survey_sort
    "up" has the smallest group first.
tgt_type
    compound or pcre.

    salt-run survey.hash '*' file.get_hash /etc/salt/minion survey_sort=up`, Args: "args", Kwargs: "kwargs",
				Run: func(ctx context.Context, c *modules.Call) (any, error) {
					pools, err := f.groupResults(ctx, c)
					return poolValues(pools), err
				}},
			{Name: "diff", Doc: `As survey.hash, and show how the first group differs from each of the others.

    salt-run survey.diff '*' cp.get_file_str file:///etc/hosts`, Args: "args", Kwargs: "kwargs",
				Run: func(ctx context.Context, c *modules.Call) (any, error) {
					pools, err := f.groupResults(ctx, c)
					if err == nil && f.Print != nil {
						for _, line := range poolDiff(pools) {
							f.Print(line)
						}
					}
					return poolValues(pools), err
				}},
		}}
}

// groupResults runs the function of a call and groups the minions by result. Dictionaries keep their key order,
// so results that differ only in order are in different groups, as in stock.
func (f funcs) groupResults(ctx context.Context, c *modules.Call) ([]pool, error) {
	if len(c.Extra) < 2 {
		return nil, modules.Usagef("a target and a function are needed")
	}
	j := host.Job{Tgt: c.Extra[0], TgtType: "compound", Fun: pytext.Str(c.Extra[1]),
		Args: c.Extra[2:], Kwargs: map[string]any{}}
	up := false
	for k, v := range c.Keywords {
		switch {
		case k == "survey_sort":
			up = v == "up"
		case k == "tgt_type":
			if v == "pcre" {
				j.TgtType = "pcre"
			}
		case !strings.HasPrefix(k, "_"):
			j.Kwargs[k] = v
		}
	}
	answers, err := f.Command(ctx, j)
	if err != nil {
		return nil, err
	}
	byResult := map[string][]string{}
	for id, a := range answers {
		text := pytext.Str(a.Value)
		if a.Ordered != nil {
			text = pyobj.Str(pyobj.From(a.Ordered))
		}
		byResult[text] = append(byResult[text], id)
	}
	pools := make([]pool, 0, len(byResult))
	for result, ids := range byResult {
		slices.Sort(ids)
		pools = append(pools, pool{ids, result})
	}
	slices.SortFunc(pools, func(a, b pool) int { // groups of equal size by their first minion
		d := len(b.ids) - len(a.ids)
		if up {
			d = -d
		}
		if d == 0 {
			d = strings.Compare(a.ids[0], b.ids[0])
		}
		return d
	})
	return pools, nil
}

func poolValues(pools []pool) any {
	out := make([]any, len(pools))
	for i, p := range pools {
		out[i] = map[string]any{"pool": nested.Anys(p.ids), "result": p.result}
	}
	return out
}

// poolDiff returns the lines that survey.diff prints.
func poolDiff(pools []pool) (out []string) {
	lines := func(text string) []string {
		list := pytext.SplitLines(text, false)
		for i := range list {
			list[i] += "\n"
		}
		return list
	}
	for i, p := range pools {
		out = append(out, "minion pool :\n------------", pytext.Str(nested.Anys(p.ids)),
			"pool size :\n----------", "    "+strconv.Itoa(len(p.ids)))
		if i == 0 {
			out = append(out, "pool result :\n------------", "    "+p.result, "")
			continue
		}
		head := "differences from \"" + pools[0].ids[0] + "\" results :"
		diff := difflib.UnifiedContext(lines(pools[0].result), lines(p.result), pools[0].ids[0],
			p.ids[0], 0)
		out = append(out, head, strings.Repeat("-", len(head)-1), strings.Join(diff, ""), "")
	}
	return out
}
