package heat

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
)

// outputsKey is the key under which heat.output stores outputs for the current run.
const outputsKey = "heat.outputs"

var saltDef = &modules.Def{Name: "salt"}

// runSalt applies the configuration as a state file. The inputs are in the pillar heat. For templates written for
// heat-config-salt they are also in the options, but do not replace the minion's own. Declared outputs come from
// heat.output, from changes["outputs"] of a state, and from files.
func runSalt(ctx context.Context, g *groupRun) (Result, error) {
	work, outputs, err := g.prepare()
	if err != nil {
		return nil, err
	}
	text := g.d.ConfigText()
	if m, ok := g.d.Config.(map[string]any); ok {
		if text, err = yaml.Marshal(m); err != nil {
			return nil, err
		}
	}
	name := "heat_" + strings.Map(func(r rune) rune { // a dot would mean a directory
		if r == '.' {
			return '_'
		}
		return r
	}, g.d.ID)
	if err := writePrivate(filepath.Join(work, name+".sls"), []byte(text)); err != nil {
		return nil, err
	}
	sub, err := g.localCall(work)
	if err != nil {
		return nil, err
	}
	g.Context().Set(outputsKey, map[string]any{})
	g.Context().Setenv("heat_outputs_path", outputs)
	v, err := sub.ExecKw(ctx, "state.sls", []any{name}, map[string]any{"pillar": map[string]any{"heat": g.pillar()}})
	if cause := context.Cause(ctx); cause != nil {
		return failed("%s", stopText(cause)), nil
	}
	if err != nil {
		return nil, err
	}
	r := g.stateResult(v)
	g.readOutputs(r, outputs)
	return r, nil
}

// pillar returns the inputs without the signal's credentials.
func (g *groupRun) pillar() map[string]any {
	all := g.inputs()
	for _, name := range [...]string{"deploy_signal_id", "deploy_signal_verb", "deploy_password", "deploy_username", "deploy_user_id",
		"deploy_auth_url", "deploy_queue_id"} {
		delete(all, name)
	}
	return all
}

// localCall returns a call with the files of a directory before those in the host's file_roots, and without a master.
func (g *groupRun) localCall(dir string) (*modules.Call, error) {
	env := *g.Env
	opts := maps.Clone(g.Config())
	roots := map[string][]string{"base": {dir}}
	if have, ok := opts["file_roots"].(map[string]any); ok {
		for name, v := range have {
			list, _ := v.([]any)
			for _, x := range list {
				roots[name] = append(roots[name], pytext.Str(x))
			}
		}
	}
	all := map[string]any{}
	for name, list := range roots {
		dirs := make([]any, len(list))
		for i, d := range list {
			dirs[i] = d
		}
		all[name] = dirs
	}
	opts["file_roots"], opts["file_client"] = all, "local"
	for name, v := range g.pillar() {
		if _, own := opts[name]; !own && !conf.IsMinionOption(name) {
			opts[name] = v
		}
	}
	env.Opts = func() map[string]any { return opts }
	if env.Files != nil {
		env.Files = env.Files.Local(roots)
	}
	return g.Foreign(&env, nil, saltDef, "heat.salt", nil, nil)
}

// stateResult converts the return of state.sls to a result: the states as YAML, on standard error if one has failed.
func (g *groupRun) stateResult(v any) Result {
	r := done()
	chunks, ok := v.(map[string]any)
	if !ok { // the compiler's errors are a list of texts
		r[keyStderr], r[keyStatus] = problems(v), int64(1)
		return r
	}
	var bad []string
	outputs := map[string]any{}
	if left, ok := g.Context().Get(outputsKey); ok {
		maps.Copy(outputs, left.(map[string]any))
	}
	for _, tag := range slices.Sorted(maps.Keys(chunks)) {
		chunk, _ := chunks[tag].(map[string]any)
		if chunk["result"] == false {
			bad = append(bad, fmt.Sprintf("%v: %v", chunk["__id__"], chunk["comment"]))
		}
		if changes, ok := chunk["changes"].(map[string]any); ok {
			if more, ok := changes["outputs"].(map[string]any); ok {
				maps.Copy(outputs, more)
			}
		}
	}
	text, err := yaml.Marshal(v)
	if err != nil {
		text = pytext.Str(v)
	}
	if len(bad) == 0 {
		r[keyStdout] = text
	} else {
		r[keyStatus] = int64(2)
		r[keyStderr] = fmt.Sprintf("%d of %d states failed\n%s\n\n%s", len(bad), len(chunks), strings.Join(bad, "\n"), text)
	}
	for _, name := range g.d.Outputs {
		if v, ok := outputs[name]; ok && v != nil {
			r[name] = v
		}
	}
	return r
}

func problems(v any) string {
	list, ok := v.([]any)
	if !ok {
		return pytext.Str(v)
	}
	texts := make([]string, len(list))
	for i, x := range list {
		texts[i] = pytext.Str(x)
	}
	return strings.Join(texts, "\n")
}
