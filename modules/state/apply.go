package state

import (
	"context"
	"maps"
	"path/filepath"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

// keywords returns the call's keyword arguments to pass on, with changes applied. They include the fields of the job.
func keywords(c *modules.Call, set map[string]any) map[string]any {
	kw := maps.Clone(c.Keywords)
	if v, ok := c.InOrder("pillar"); ok {
		kw["pillar"] = v // in the order of the caller
	}
	maps.Copy(kw, set)
	return kw
}

func apply(ctx context.Context, c *modules.Call) (any, error) {
	return applyMods(ctx, c, c.Value("mods"), keywords(c, nil))
}

// applyMods implements highstate and sls.
func applyMods(ctx context.Context, c *modules.Call, mods any, kwargs map[string]any) (any, error) {
	if pytext.Truth(mods) {
		return c.ExecAsGiven(ctx, "state.sls", []any{mods}, kwargs)
	}
	return c.ExecAsGiven(ctx, "state.highstate", nil, kwargs)
}

func test(ctx context.Context, c *modules.Call) (any, error) {
	return c.ExecAsGiven(ctx, "state.apply", c.Extra, keywords(c, map[string]any{"test": true}))
}

func highstate(ctx context.Context, c *modules.Call) (any, error) {
	if len(disabledTexts(ctx, c, []any{"highstate"})) > 0 {
		return map[string]any{"name": "Salt highstate run is disabled. To re-enable, run state.enable highstate", "result": "False", "comment": "Disabled"}, nil
	}
	if conflict, err := checkQueue(ctx, c); conflict != nil || err != nil {
		return conflict, err
	}
	opts, err := options(ctx, c)
	if err != nil {
		return nil, err
	}
	opts["test"] = testMode(ctx, c, c.Value("test"))
	for _, key := range [...]string{"saltenv", "pillarenv"} {
		if v, ok := c.Keywords[key]; ok {
			opts[key] = v
		}
	}
	if v := c.Value("state_events"); v != nil {
		opts["state_events"] = v
	}
	h, s, err := highstateRun(ctx, c, opts, pubJID(c))
	if err != nil {
		return nil, err
	}
	defer s.restore()
	if errs := pillarErrors(c); errs != nil {
		c.SetRetcode(codePillar)
		return failedPillar(errs), nil
	}
	ret, err := callHighstate(ctx, c, h)
	if err != nil {
		return nil, err
	}
	if _, ok := ret.(map[string]any); ok && terse(ctx, c) {
		ret = filterRunning(ret)
	}
	setRetcode(c, ret, h.High)
	return ret, nil
}

func terse(ctx context.Context, c *modules.Call) bool {
	if pytext.Truth(c.Keywords["terse"]) {
		return true
	}
	v, err := c.Exec(ctx, "config.option", "state_data", "")
	return err == nil && v == "terse"
}

// callHighstate compiles and runs what the top file assigns (BaseHighState.call_highstate).
func callHighstate(ctx context.Context, c *modules.Call, h *states.HighState) (any, error) {
	none := func(comment string) map[string]any {
		return map[string]any{"no_|-states_|-states_|-None": map[string]any{"result": false, "comment": comment, "name": "No States",
			"changes": map[string]any{}, "__run_num__": int64(0)}}
	}
	name := "highstate"
	if v, ok := c.Keywords["cache_name"]; ok {
		name = pytext.Str(v)
	}
	cached := filepath.Join(cacheDir(c), filepath.Base(name)+".cache.p")
	orchestration := c.Keywords["orchestration_jid"]
	if pytext.Truth(c.Keywords["cache"]) {
		if high := loadHigh(c.Path(cached)); high != nil {
			return h.CallHigh(ctx, high, orchestration)
		}
	}
	top, err := h.Top(ctx)
	if err != nil {
		if text, ok := renderText(err); ok {
			return none("Unable to render top file: " + text), nil
		}
		return nil, err
	}
	errs := states.VerifyTops(top)
	matches, err := h.Matches(ctx, top)
	if err != nil {
		return nil, err
	}
	if lacks := h.Lacks(); matches.Empty() && len(lacks) > 0 {
		return nested.Anys(lacks), nil
	}
	if matches.Empty() {
		return none("No Top file or master_tops data matches found. Please see master log for details."), nil
	}
	high, more, err := h.RenderHighstate(ctx, matches.Whitelisted(pyobj.Plain(c.Keywords["whitelist"])))
	if err != nil {
		return nil, err
	}
	exclude(high, c.Keywords["exclude"])
	if errs = append(errs, more...); len(errs) > 0 {
		return nested.Anys(errs), nil
	}
	if high.Len() == 0 {
		return none("No states found for this minion"), nil
	}
	saveHigh(c, cached, high)
	return h.CallHigh(ctx, high, orchestration)
}

// exclude adds what the caller wants to leave out.
func exclude(high *pyobj.Dict, v any) {
	if !pytext.Truth(pyobj.Plain(v)) {
		return
	}
	list, _ := high.Value("__exclude__").(*pyobj.List)
	if list == nil {
		list = pyobj.NewList()
		_ = high.Set("__exclude__", list)
	}
	for _, x := range splitInput(v) {
		list.Items = append(list.Items, pyobj.From(x))
	}
}

func sls(ctx context.Context, c *modules.Call) (any, error) {
	if conflict, err := checkQueue(ctx, c); conflict != nil || err != nil {
		return conflict, err
	}
	mods := c.Value("mods")
	list, ok := mods.([]any)
	if !ok {
		list = []any{mods}
	}
	if off := disabledTexts(ctx, c, list); len(off) > 0 {
		c.SetRetcode(codeCompiler)
		return off, nil
	}
	opts, err := options(ctx, c)
	if err != nil {
		return nil, err
	}
	opts["test"] = testMode(ctx, c, c.Value("test"))
	inBase(opts)
	if err := syncMods(ctx, c, opts); err != nil {
		return nil, err
	}
	if v := c.Value("state_events"); v != nil {
		opts["state_events"] = v
	}
	h, s, err := highstateRun(ctx, c, opts, pubJID(c))
	if err != nil {
		return nil, err
	}
	defer s.restore()
	if errs := pillarErrors(c); errs != nil {
		c.SetRetcode(codePillar)
		return failedPillar(errs), nil
	}
	name := "highstate"
	if v, ok := c.Keywords["cache_name"]; ok {
		name = pytext.Str(v)
	}
	cached := filepath.Join(cacheDir(c), filepath.Base(name)+".cache.p")
	orchestration := c.Keywords["orchestration_jid"]
	if pytext.Truth(c.Keywords["cache"]) {
		if high := loadHigh(c.Path(cached)); high != nil {
			return h.CallHigh(ctx, high, orchestration)
		}
	}
	high, errs, err := h.RenderHighstate(ctx, states.Section(saltenv(opts), textsOf(splitInput(mods))))
	if err != nil {
		return nil, err
	}
	if errs != nil {
		c.SetRetcode(codeCompiler)
		return nested.Anys(errs), nil
	}
	exclude(high, c.Value("exclude"))
	saveHigh(c, cached, high)
	ret, err := h.CallHigh(ctx, high, orchestration)
	if err != nil {
		return nil, err
	}
	if terse(ctx, c) {
		ret = filterRunning(ret)
	}
	setRetcode(c, ret, high)
	return ret, nil
}

func top(ctx context.Context, c *modules.Call) (any, error) {
	if conflict, err := checkQueue(ctx, c); conflict != nil || err != nil {
		return conflict, err
	}
	opts, err := options(ctx, c)
	if err != nil {
		return nil, err
	}
	opts["test"] = testMode(ctx, c, c.Value("test"))
	h, s, err := highstateRun(ctx, c, opts, "")
	if err != nil {
		return nil, err
	}
	defer s.restore()
	if errs := pillarErrors(c); errs != nil {
		c.SetRetcode(codePillar)
		return failedPillar(errs), nil
	}
	opts["state_top"] = "salt://" + c.Str("topfn")
	if v, ok := c.Keywords["saltenv"]; ok {
		opts["state_top_saltenv"] = v
	}
	ret, err := callHighstate(ctx, c, h)
	if err != nil {
		return nil, err
	}
	setRetcode(c, ret, h.High)
	return ret, nil
}

func slsID(ctx context.Context, c *modules.Call) (any, error) {
	if conflict, err := checkQueue(ctx, c); conflict != nil || err != nil {
		return conflict, err
	}
	opts, err := options(ctx, c)
	if err != nil {
		return nil, err
	}
	opts["test"] = testMode(ctx, c, c.Value("test"))
	inBase(opts)
	if v := c.Value("state_events"); v != nil {
		opts["state_events"] = v
	}
	h, s, err := highstateRun(ctx, c, opts, "")
	if err != nil {
		return nil, err
	}
	defer s.restore()
	if errs := pillarErrors(c); errs != nil {
		c.SetRetcode(codePillar)
		return failedPillar(errs), nil
	}
	high, errs, err := h.RenderHighstate(ctx, states.Section(saltenv(opts), textsOf(splitInput(c.Value("mods")))))
	if err != nil {
		return nil, err
	}
	errs = append(errs, h.VerifyHigh(high)...)
	in, err := h.RequisiteIn(high)
	if err != nil {
		return nil, err
	}
	errs = append(errs, in...)
	if errs != nil {
		c.SetRetcode(codeCompiler)
		return nested.Anys(errs), nil
	}
	ret := map[string]any{}
	chunks := h.CompileHigh(high)
	for _, chunk := range chunks {
		if chunk.ID() != c.Str("id_") {
			continue
		}
		more, err := h.CallOne(ctx, chunk, chunks)
		if err != nil {
			return nil, err
		}
		maps.Copy(ret, more)
	}
	setRetcode(c, ret, nil)
	if len(ret) == 0 {
		return nil, notFound(c.Str("id_"), pytext.Str(c.Value("mods")), saltenv(opts))
	}
	return ret, nil
}
