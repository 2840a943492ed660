package pillar

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/target"
)

// entry is one target of the top file.
type entry struct {
	tgt   any
	kind  string
	order int64
	sls   []string
	match []any // the dicts with options of the match, as written
}

// tops are the merged top files: the targets of each environment, in order.
type tops struct {
	envs    []string
	entries map[string][]entry
	index   map[string]*pyobj.Dict // the entries by target, until they are sorted
}

// errTop stands for the TypeError that Salt catches while it merges top files.
var errTop = errors.New("malformed top file")

// mergeTops reads and merges the top files (Pillar.get_top). The second result lists the errors in them.
func (c *compilation) mergeTops() (*tops, []string, error) {
	docs, errs, err := c.topFiles()
	if err != nil {
		return nil, nil, err
	}
	t := &tops{entries: map[string][]entry{}, index: map[string]*pyobj.Dict{}}
	for _, doc := range docs {
		if err := c.addDoc(t, doc); err != nil {
			return &tops{}, append(errs, "Error encountered while rendering pillar top file."), nil
		}
	}
	for _, env := range t.envs {
		sorting.Stable(t.entries[env], func(a, b entry) int { return cmp.Compare(a.order, b.order) })
	}
	return t, errs, nil
}

// topFiles renders the top files of the environments, each with the files that it includes (Pillar.get_tops).
func (c *compilation) topFiles() (docs []*pyobj.Dict, errs []string, err error) {
	envs := c.envs()
	if env := c.optionText("pillarenv"); env != "" {
		if _, ok := c.roots[env]; !ok {
			return nil, nil, nil
		}
		envs = []string{env}
	} else if c.optionText("pillar_source_merging_strategy") == "none" {
		own := c.req.Saltenv
		if own == "" {
			own = "base"
		}
		envs = slices.DeleteFunc(envs, func(env string) bool { return env != own })
	}
	name := strings.TrimPrefix(strings.TrimPrefix(c.optionText("state_top"), "salt://"), "/")
	if name == "" {
		name = "top.sls"
	}
	type primary struct {
		env string
		doc any
	}
	var first []primary
	for _, env := range envs {
		path, err := c.findFile(name, env)
		if err != nil {
			continue
		}
		doc, err := c.renderFile(found{path: path}, "", env, nil)
		if err != nil {
			if ctxErr := c.ctx.Err(); ctxErr != nil {
				return nil, nil, ctxErr
			}
			c.o.Log.Error("Pillar rendering failed for minion "+c.req.ID, "err", err)
			errs = append(errs, fmt.Sprintf("Rendering Primary Top file failed, render error:\n%v", err))
			break // stock stops at the first error
		}
		first = append(first, primary{env, doc})
	}
	for _, p := range first {
		d, ok := p.doc.(*pyobj.Dict)
		if !ok {
			return nil, nil, fmt.Errorf("'%s' object has no attribute 'items'", pyobj.TypeName(p.doc))
		}
		docs = append(docs, d)
		v, ok := d.Delete("include")
		if !ok {
			continue
		}
		names, err := eachItem(v)
		if err != nil {
			return nil, nil, err
		}
		done := map[string]bool{}
		for _, x := range names {
			sls, ok := x.(string)
			if !ok {
				return nil, nil, fmt.Errorf("argument of type '%s' is not iterable", pyobj.TypeName(x))
			}
			if done[sls] {
				continue
			}
			done[sls] = true
			f, err := c.findSLS(sls, p.env)
			if err != nil {
				continue // a missing file counts as empty
			}
			doc, err := c.renderFile(f, "", p.env, nil)
			if err != nil {
				errs = append(errs, fmt.Sprintf("Rendering Top file %s failed, render error:\n%v", sls, err))
				continue
			}
			d, ok := doc.(*pyobj.Dict)
			if !ok {
				return nil, nil, fmt.Errorf("'%s' object has no attribute 'items'", pyobj.TypeName(doc))
			}
			docs = append(docs, d)
		}
	}
	return docs, errs, nil
}

// eachItem implements Python's iteration over a value.
func eachItem(v any) ([]any, error) {
	switch v := v.(type) {
	case *pyobj.List:
		return v.Items, nil
	case *pyobj.Dict:
		return v.Keys(), nil
	case string:
		out := make([]any, 0, len(v))
		for _, r := range v {
			out = append(out, string(r))
		}
		return out, nil
	}
	return nil, fmt.Errorf("'%s' object is not iterable", pyobj.TypeName(v))
}

// addDoc merges a top file into t (Pillar.merge_tops).
func (c *compilation) addDoc(t *tops, doc *pyobj.Dict) error {
	for k, v := range doc.All() {
		env := pyobj.Str(k)
		if env == "include" {
			continue
		}
		targets, ok := v.(*pyobj.Dict)
		if !ok {
			if list, err := eachItem(v); err != nil || len(list) > 0 {
				return errTop
			}
			continue
		}
		for tgt, v := range targets.All() {
			if !slices.Contains(t.envs, env) {
				t.envs = append(t.envs, env)
			}
			e := entry{tgt: tgt, kind: "compound"}
			if err := c.readTarget(&e, env, v); err != nil {
				return err
			}
			t.putEntry(env, e)
		}
	}
	return nil
}

// putEntry adds an entry. It replaces an entry for the same target, because a later top file takes precedence.
func (t *tops) putEntry(env string, e entry) {
	of := t.index[env]
	if of == nil {
		of = pyobj.NewDict()
		t.index[env] = of
	}
	if i, ok := of.Value(e.tgt).(int); ok {
		t.entries[env][i] = e
		return
	}
	_ = of.Set(e.tgt, len(t.entries[env])) // it is a key already
	t.entries[env] = append(t.entries[env], e)
}

// readTarget reads the list of a target: SLS names, and dicts with match, order and ignore_missing.
func (c *compilation) readTarget(e *entry, env string, v any) error {
	list, err := eachItem(v)
	if err != nil {
		return errTop
	}
	ignore := false
	for _, x := range list {
		switch x := x.(type) {
		case string:
			if !slices.Contains(e.sls, x) {
				e.sls = append(e.sls, x)
			}
		case *pyobj.Dict:
			if m, ok := x.Get("match"); ok {
				e.kind = pyobj.Str(m)
				e.match = append(e.match, x)
			}
			if o, ok := x.Get("order"); ok {
				if e.order, err = parseOrder(o); err != nil {
					return err
				}
			}
			if pyobj.Truth(x.Value("ignore_missing")) {
				ignore = true
			}
		}
	}
	if ignore {
		c.ignored[env] = append(c.ignored[env], e.sls...)
	}
	return nil
}

// parseOrder implements Python's int() for an order. A text that is not a number counts as 0.
func parseOrder(v any) (int64, error) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, nil
		}
		return 0, nil
	case int64:
		return v, nil
	case float64:
		return int64(v), nil
	case *big.Int:
		return int64(v.Sign()) << 62, nil
	case string:
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		if err != nil {
			return 0, nil
		}
		return n, nil
	}
	return 0, errTop
}

// assigned are the SLS names that the top file assigns to the minion, by environment.
type assigned struct {
	envs []string
	sls  map[string][]string
}

// topMatches returns the SLS names of the targets that match the minion (Pillar.top_matches).
func (c *compilation) topMatches(t *tops) (*assigned, error) {
	out := &assigned{sls: map[string][]string{}}
	only := c.optionText("pillarenv")
	for _, env := range t.envs {
		if only != "" && env != only {
			continue
		}
		for _, e := range t.entries[env] {
			ok, err := c.isMatch(e)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			if !slices.Contains(out.envs, env) {
				out.envs = append(out.envs, env)
			}
			for _, sls := range e.sls {
				if !slices.Contains(out.sls[env], sls) {
					out.sls[env] = append(out.sls[env], sls)
				}
			}
		}
	}
	return out, nil
}

// isMatch reports whether a target matches the minion (salt/matchers/confirm_top.py). An unknown kind is an error,
// as in Salt; a malformed target is logged and does not match.
func (c *compilation) isMatch(e entry) (bool, error) {
	switch e.kind {
	case "glob", "pcre", "list", "grain", "grain_pcre", "pillar", "pillar_pcre", "pillar_exact", "compound", "ipcidr", "nodegroup", "range", "data":
	default:
		return false, fmt.Errorf("'%s_match.match'", e.kind)
	}
	ok, err := target.Match(e.kind, pyobj.Str(e.tgt), "", c.subject())
	if err != nil {
		c.o.Log.Error("A target of the pillar's top file does not apply", "tgt", pyobj.Str(e.tgt), "type", e.kind, "err", err)
	}
	return ok && err == nil, nil
}
