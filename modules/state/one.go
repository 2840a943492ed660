package state

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/stateresult"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

func low(ctx context.Context, c *modules.Call) (any, error) {
	if conflict, err := checkQueue(ctx, c); conflict != nil || err != nil {
		return conflict, err
	}
	data, ok := c.Value("data").(*pyobj.Dict)
	if !ok {
		return nil, &modules.TypeError{Msg: notAChunk(c.Value("data"))}
	}
	run := states.New(c, states.Options{})
	chunk := states.NewLow(data)
	if errs := run.Verify(chunk); errs != nil {
		c.SetRetcode(codeCompiler)
		return nested.Anys(errs), nil
	}
	rec, err := run.Call(ctx, chunk)
	if err != nil {
		return nil, err
	}
	c.SetRetcode(0)
	// Salt looks at the one result as if it were many, and so finds fault with none.
	if stateresult.Succeeded(map[string]any(rec), nil, true) {
		c.SetRetcode(codeState)
	}
	return rec, nil
}

// notAChunk returns the text of Python's error for a chunk that is not a dictionary: stock checks it for keys, then
// takes one.
func notAChunk(v any) string {
	switch v.(type) {
	case string:
		return "string indices must be integers, not 'str'"
	case *pyobj.List:
		return "list indices must be integers or slices, not str"
	}
	return "argument of type '" + pyobj.TypeName(v) + "' is not iterable"
}

func high(ctx context.Context, c *modules.Call) (any, error) {
	if conflict, err := checkQueue(ctx, c); conflict != nil || err != nil {
		return conflict, err
	}
	opts, err := options(ctx, c)
	if err != nil {
		return nil, err
	}
	opts["test"] = testMode(ctx, c, c.Value("test"))
	s, err := prepare(ctx, c, opts)
	if err != nil {
		return nil, err
	}
	defer s.restore()
	data, ok := c.Value("data").(*pyobj.Dict)
	if !ok {
		return nil, &modules.PythonError{Type: "AttributeError", Msg: "'" + pyobj.TypeName(c.Value("data")) + "' object has no attribute 'items'"}
	}
	ret, err := states.New(c, s.stateOptions(c, "")).CallHigh(ctx, data, nil)
	if err != nil {
		return nil, err
	}
	setRetcode(c, ret, data)
	return ret, nil
}

func single(ctx context.Context, c *modules.Call) (any, error) {
	if conflict, err := checkQueue(ctx, c); conflict != nil || err != nil {
		return conflict, err
	}
	comps := strings.Split(c.Str("fun"), ".")
	if len(comps) < 2 {
		c.SetRetcode(codeCompiler)
		return "Invalid function passed", nil
	}
	chunk := &pyobj.Dict{}
	for _, k := range sortedKeys(c.Keywords) {
		_ = chunk.Set(k, c.Keywords[k])
	}
	for _, kv := range [...][2]any{{"state", comps[0]}, {"fun", comps[1]}, {"__id__", c.Value("name")}, {"name", c.Value("name")}} {
		_ = chunk.Set(kv[0], kv[1])
	}
	opts, err := options(ctx, c)
	if err != nil {
		return nil, err
	}
	opts["test"] = testMode(ctx, c, c.Value("test"))
	s, err := prepare(ctx, c, opts)
	if err != nil {
		return nil, err
	}
	defer s.restore()
	run := states.New(c, states.Options{Opts: opts})
	lowChunk := states.NewLow(chunk)
	if errs := run.Verify(lowChunk); errs != nil {
		c.SetRetcode(codeCompiler)
		return nested.Anys(errs), nil
	}
	tag := lowChunk.Tag()
	rec, err := run.Single(ctx, lowChunk)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{tag: map[string]any(rec)}
	setRetcode(c, ret, nil)
	return ret, nil
}

func template(ctx context.Context, c *modules.Call) (any, error) {
	if conflict, err := checkQueue(ctx, c); conflict != nil || err != nil {
		return conflict, err
	}
	opts, err := options(ctx, c)
	if err != nil {
		return nil, err
	}
	h, s, err := highstateRun(ctx, c, opts, "")
	if err != nil {
		return nil, err
	}
	defer s.restore()
	if errs := pillarErrors(c); errs != nil {
		c.SetRetcode(codePillar)
		return nil, raisePillar(errs)
	}
	path := c.Str("tem")
	if !strings.HasSuffix(path, ".sls") {
		path += ".sls"
	}
	env := ""
	if v, ok := c.Keywords["saltenv"]; ok {
		env = pytext.Str(v)
	}
	high, errs, err := h.RenderFile(ctx, path, c.Path(path), env)
	if err != nil {
		return nil, err
	}
	if errs != nil {
		c.SetRetcode(codeCompiler)
		return nested.Anys(errs), nil
	}
	ret, err := h.CallHigh(ctx, high, nil)
	if err != nil {
		return nil, err
	}
	setRetcode(c, ret, high)
	return ret, nil
}

func templateStr(ctx context.Context, c *modules.Call) (any, error) {
	if conflict, err := checkQueue(ctx, c); conflict != nil || err != nil {
		return conflict, err
	}
	opts, err := options(ctx, c)
	if err != nil {
		return nil, err
	}
	s, err := prepare(ctx, c, opts)
	if err != nil {
		return nil, err
	}
	defer s.restore()
	ret, err := states.New(c, states.Options{Opts: opts}).CallText(ctx, c.Str("tem"))
	if err != nil {
		return nil, err
	}
	setRetcode(c, pyobj.Plain(ret), nil)
	return ret, nil
}
