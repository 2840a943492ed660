package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

// Return codes of state runs (salt/defaults/exitcodes.py).
const (
	codeCompiler = 1
	codeState    = 2
	codePillar   = 5
)

// isTrue implements is_true of salt/utils/data.py.
func isTrue(v any) bool {
	switch v := v.(type) {
	case int64:
		return v > 0
	case float64:
		return v > 0
	case string:
		return strings.EqualFold(v, "true") || v == "1"
	}
	return pytext.Truth(v)
}

// testMode decides whether a run is only a test (_get_test_value).
func testMode(ctx context.Context, c *modules.Call, test any) any {
	if test == nil {
		for k, v := range c.Keywords {
			if strings.EqualFold(k, "test") && isTrue(v) {
				return true
			}
		}
		if v, err := c.ExecKw(ctx, "config.get", []any{"test"}, map[string]any{"omit_opts": true}); err == nil && v == true {
			return true
		}
		return c.Opt("test")
	}
	return test != false
}

// options returns the options of a run (salt/utils/state.py: get_sls_opts).
func options(ctx context.Context, c *modules.Call) (map[string]any, error) {
	opts := maps.Clone(c.Config())
	if opts == nil {
		opts = map[string]any{}
	}
	if path, ok := c.Keywords["localconfig"]; ok {
		return opts, localConfig(c, opts, pytext.Str(path))
	}
	env, given := c.Keywords["saltenv"]
	if given && env != nil {
		if pytext.Truth(opts["lock_saltenv"]) && pytext.Str(env) != opts["saltenv"] {
			return nil, modules.Errorf("lock_saltenv is enabled, saltenv cannot be changed")
		}
		opts["saltenv"] = env
	}
	if penv, ok := c.Keywords["pillarenv"]; ok {
		opts["pillarenv"] = textOrNone(penv)
	} else if given && pytext.Truth(opts["pillarenv_from_saltenv"]) {
		opts["pillarenv"] = textOrNone(env)
	}
	return opts, nil
}

func textOrNone(v any) any {
	if v == nil {
		return nil
	}
	return pytext.Str(v)
}

// localConfig lays a file of options over those of the minion.
func localConfig(c *modules.Call, opts map[string]any, path string) error {
	b, err := readFile(c.Path(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // as in stock it is no more than a line of the log
	}
	if err != nil {
		return modules.OSError(err)
	}
	v, err := yaml.Parse(b, path)
	if err != nil {
		return modules.Errorf("cannot read %s: %v", path, err)
	}
	more, ok := v.(map[string]any)
	if !ok && v != nil {
		return modules.Errorf("cannot read %s: it is not a dictionary", path)
	}
	maps.Copy(opts, more)
	return nil
}

// override returns the caller's pillar, decrypted. As in Salt, a pillar that cannot be decrypted is used as it is if
// it is a dict, and ignored otherwise.
func override(ctx context.Context, c *modules.Call) (*pyobj.Dict, error) {
	v, _ := c.InOrder("pillar")
	enc := c.Keywords["pillar_enc"]
	if _, ok := v.(*pyobj.Dict); !ok && enc == nil && v != nil {
		return nil, modules.Usagef("Pillar data must be formatted as a dictionary, unless pillar_enc is specified.")
	}
	if !pyobj.Truth(v) {
		return nil, nil
	}
	if name := strings.ToLower(pytext.Str(enc)); enc != nil && name != "" {
		plain, err := c.Decrypt(ctx, pyobj.DeepCopy(v), name, true)
		if err != nil {
			c.Logger().Error("Failed to decrypt pillar override", "err", err)
		} else {
			v = pyobj.From(plain)
		}
	}
	if text, ok := v.(string); ok {
		loaded, err := yaml.ParseObject([]byte(text), "pillar", false)
		if err != nil {
			c.Logger().Error("Failed to load CLI pillar override", "err", err)
		}
		v = loaded
	}
	d, ok := v.(*pyobj.Dict)
	if !ok {
		c.Logger().Error("Pillar override was not passed as a dictionary")
	}
	return d, nil
}

// pillarErrors returns the errors of the pillar, or nil if the caller uses force to ignore them.
func pillarErrors(c *modules.Call) []any {
	if pytext.Truth(c.Keywords["force"]) {
		return nil
	}
	list, _ := c.PillarData()["_errors"].([]any)
	return list
}

// failedPillar returns the errors of the pillar in the form of a function's result.
func failedPillar(errs []any) []any {
	return append([]any{"Pillar failed to render with the following messages:"}, errs...)
}

// raisePillar returns the errors of the pillar as an error, for functions that raise one.
func raisePillar(errs []any) error { return saltcmd.Problem("Pillar failed to render", errs) }

// setup is the common preparation of the functions that run or show states.
type setup struct {
	opts    map[string]any
	restore func()
}

// prepare makes options and pillar of a run. The pillar counts for everything that the job does until restore.
func prepare(ctx context.Context, c *modules.Call, opts map[string]any) (*setup, error) {
	over, err := override(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &setup{opts: opts, restore: func() {}}
	pillar, err := states.Pillar(ctx, c, opts, over)
	if err != nil {
		return nil, err
	}
	if pillar != nil {
		s.restore = c.Context().SetPillar(pillar)
	}
	return s, nil
}

// stateOptions returns the options for package states.
func (s *setup) stateOptions(c *modules.Call, jid string) states.Options {
	return states.Options{Opts: s.opts, JID: jid, Mocked: pytext.Truth(c.Keywords["mock"])}
}

// pubJID returns the id of the published job, or "" if the run was not published.
func pubJID(c *modules.Call) string {
	if v, ok := c.Keywords["__pub_jid"]; ok && v != nil {
		return pytext.Str(v)
	}
	return ""
}

// highstateRun prepares a run of the file server's states.
func highstateRun(ctx context.Context, c *modules.Call, opts map[string]any, jid string) (*states.HighState, *setup, error) {
	s, err := prepare(ctx, c, opts)
	if err != nil {
		return nil, nil, err
	}
	h, err := states.NewHighState(ctx, c, s.stateOptions(c, jid))
	if err != nil {
		s.restore()
		return nil, nil, err
	}
	return h, s, nil
}

// inBase makes base the environment of functions that are about SLS files by name.
func inBase(opts map[string]any) {
	if opts["saltenv"] == nil {
		opts["saltenv"] = "base"
	}
}

func saltenv(opts map[string]any) string { return pytext.Str(opts["saltenv"]) }

// splitInput returns the elements of a list, or the parts of a text between commas (salt/utils/args.py: split_input).
func splitInput(v any) []any {
	if list, ok := pyobj.Plain(v).([]any); ok {
		return append([]any{}, list...)
	}
	var out []any
	for part := range strings.SplitSeq(pytext.Str(v), ",") {
		out = append(out, strings.TrimSpace(part))
	}
	return out
}

// syncMods calls saltutil's function for each kind of custom modules that is to be fetched before the states.
func syncMods(ctx context.Context, c *modules.Call, opts map[string]any) error {
	v := c.Value("sync_mods")
	if v == nil {
		return nil
	}
	kinds := []any{"all"}
	if v != true {
		if list := splitInput(v); !slices.Contains(list, any("all")) {
			kinds = list
		}
	}
	for _, kind := range kinds {
		fun := "saltutil.sync_" + pytext.Str(kind)
		if _, err := c.Registry().Lookup(fun, c.Env); err != nil {
			c.Logger().Warn("Invalid custom module type '" + pytext.Str(kind) + "', ignoring")
			continue
		}
		if _, err := c.ExecKw(ctx, fun, nil, map[string]any{"saltenv": opts["saltenv"]}); err != nil {
			return err
		}
	}
	return nil
}

func textsOf(list []any) []string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = pytext.Str(x)
	}
	return out
}

func cacheDir(c *modules.Call) string { return pytext.Str(c.Opt("cachedir")) }

func notFound(id, mods, env string) error {
	return modules.Usagef("%s", fmt.Sprintf("No matches for ID '%s' found in SLS '%s' within saltenv '%s'", id, mods, env))
}
