package state

import (
	"context"
	"maps"
	"slices"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// show prepares a look at the states. A conflict is the answer of the function.
func show(ctx context.Context, c *modules.Call, base bool) (h *states.HighState, s *setup, conflict any, err error) {
	if conflict, err = checkQueue(ctx, c); conflict != nil || err != nil {
		return nil, nil, conflict, err
	}
	opts, err := options(ctx, c)
	if err != nil {
		return nil, nil, nil, err
	}
	if base {
		opts["test"] = testMode(ctx, c, c.Value("test"))
		inBase(opts)
	}
	if h, s, err = highstateRun(ctx, c, opts, ""); err != nil {
		return nil, nil, nil, err
	}
	if errs := pillarErrors(c); errs != nil {
		s.restore()
		c.SetRetcode(codePillar)
		return nil, nil, nil, raisePillar(errs)
	}
	return h, s, nil, nil
}

func showHighstate(ctx context.Context, c *modules.Call) (any, error) {
	h, s, conflict, err := show(ctx, c, false)
	if conflict != nil || err != nil {
		return conflict, err
	}
	defer s.restore()
	ret, err := h.Compile(ctx)
	if err != nil {
		return nil, err
	}
	setRetcode(c, pyobj.Plain(ret), nil)
	return ret, nil
}

func lowData(chunks []*states.Low) *pyobj.List {
	out := make([]any, len(chunks))
	for i, chunk := range chunks {
		out[i] = chunk.Dict()
	}
	return pyobj.NewList(out...)
}

func showLowstate(ctx context.Context, c *modules.Call) (any, error) {
	h, s, conflict, err := show(ctx, c, false)
	if conflict != nil || err != nil {
		return conflict, err
	}
	defer s.restore()
	chunks, errs, err := h.CompileLow(ctx)
	if err != nil {
		return nil, err
	}
	if errs != nil {
		return nested.Anys(errs), nil
	}
	return lowData(chunks), nil
}

func showStates(ctx context.Context, c *modules.Call) (any, error) {
	h, s, conflict, err := show(ctx, c, false)
	if conflict != nil || err != nil {
		return conflict, err
	}
	defer s.restore()
	chunks, errs, err := h.CompileLow(ctx)
	if err != nil {
		return nil, err
	}
	if errs != nil {
		c.SetRetcode(codeCompiler)
		return nested.Anys(errs), nil
	}
	list := []any{}
	for _, chunk := range chunks {
		if sls := any(chunk.SLS()); !slices.Contains(list, sls) {
			list = append(list, sls)
		}
	}
	return list, nil
}

func showUsage(ctx context.Context, c *modules.Call) (any, error) {
	if conflict, err := checkQueue(ctx, c); conflict != nil || err != nil {
		return conflict, err
	}
	h, s, err := highstateRun(ctx, c, maps.Clone(c.Config()), "")
	if err != nil {
		return nil, err
	}
	defer s.restore()
	ret, err := h.Usage(ctx)
	if err != nil {
		return nil, err
	}
	setRetcode(c, ret, nil)
	return ret, nil
}

func showTop(ctx context.Context, c *modules.Call) (any, error) {
	h, s, conflict, err := show(ctx, c, false)
	if conflict != nil || err != nil {
		return conflict, err
	}
	defer s.restore()
	t, err := h.Top(ctx)
	if err != nil {
		return nil, err
	}
	if errs := states.VerifyTops(t); errs != nil {
		c.SetRetcode(codeCompiler)
		return nested.Anys(errs), nil
	}
	matches, err := h.Matches(ctx, t)
	if err != nil {
		return nil, err
	}
	return matches.Plain(), nil
}

// rendered returns the high data of the SLS files. Errors are returned as texts.
func rendered(ctx context.Context, c *modules.Call) (h *states.HighState, high *pyobj.Dict, answer any, err error) {
	h, s, conflict, err := show(ctx, c, true)
	if conflict != nil || err != nil {
		return nil, nil, conflict, err
	}
	defer s.restore()
	high, errs, err := h.RenderHighstate(ctx, states.Section(h.Saltenv(), textsOf(splitInput(c.Value("mods")))))
	if err != nil {
		return nil, nil, nil, err
	}
	if errs = append(errs, h.VerifyHigh(high)...); errs != nil {
		c.SetRetcode(codeCompiler)
		return nil, nil, nested.Anys(errs), nil
	}
	return h, high, nil, nil
}

func showSLS(ctx context.Context, c *modules.Call) (any, error) {
	_, high, answer, err := rendered(ctx, c)
	if answer != nil || err != nil {
		return answer, err
	}
	return high, nil
}

func showLowSLS(ctx context.Context, c *modules.Call) (any, error) {
	h, high, answer, err := rendered(ctx, c)
	if answer != nil || err != nil {
		return answer, err
	}
	return lowData(h.CompileHigh(high)), nil
}

func slsExists(ctx context.Context, c *modules.Call) (any, error) {
	_, _, answer, err := rendered(ctx, c)
	if err != nil {
		return nil, err
	}
	return answer == nil, nil
}

func idExists(ctx context.Context, c *modules.Call) (any, error) {
	h, high, answer, err := rendered(ctx, c)
	if err != nil {
		return nil, err
	}
	if answer != nil {
		return nil, &modules.TypeError{Msg: "string indices must be integers, not 'str'"}
	}
	have := map[string]bool{}
	for _, chunk := range h.CompileHigh(high) {
		have[chunk.ID()] = true
	}
	for _, id := range textsOf(splitInput(c.Value("ids"))) {
		if !have[id] {
			return false, nil
		}
	}
	return true, nil
}
