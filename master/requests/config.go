package requests

import (
	"context"
	"fmt"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/master/fileserver"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// TopsProgram provides the embedding program's top files.
type TopsProgram interface {
	// MakeTops returns lists of states by environment for a minion. opts are the minion's options, which are
	// its own claim.
	MakeTops(ctx context.Context, id string, opts map[string]any) (map[string]any, error)
}

// Config answers minions' requests for the master's configuration, which they need to compile states.
type Config struct {
	// Server provides the environments.
	Server     *fileserver.Server
	Nodegroups map[string]any
	// Set overrides Salt's defaults.
	Set map[string]any
	// Tops provides top files; it may be nil.
	Tops TopsProgram
}

// Options answers _master_opts, the options that a minion needs to compile states.
func (c *Config) Options(_ context.Context, v protocol.Verified) (any, error) {
	roots := map[string]any{}
	for _, env := range c.Server.Envs() {
		roots[env] = []any{}
	}
	out := map[string]any{"file_roots": roots, "top_file_merging_strategy": "merge",
		"env_order":   []any{},
		"default_top": "base"}
	if !pytext.Truth(v.Load()["env_only"]) {
		for _, o := range masterOpts() {
			out[o.name] = o.value
		}
		groups := make(map[string]any, len(c.Nodegroups))
		for k, g := range c.Nodegroups {
			groups[k] = g
		}
		out["nodegroups"] = groups
	}
	for k := range out {
		if set, ok := c.Set[k]; ok && k != "file_roots" {
			out[k] = set
		}
	}
	return out, nil
}

type masterOpt struct {
	name  string
	value any
}

// masterOpts returns Salt's defaults (salt/config/__init__.py, DEFAULT_MASTER_OPTS).
func masterOpts() []masterOpt {
	return []masterOpt{
		{"renderer", "jinja|yaml"}, {"failhard", false}, {"state_top", "top.sls"},
		{"state_top_saltenv", nil}, {"state_auto_order", true}, {"state_events", false},
		{"state_aggregate", false}, {"jinja_env", map[string]any{}},
		{"jinja_sls_env", map[string]any{}}, {"jinja_lstrip_blocks", false},
		{"jinja_trim_blocks", false},
	}
}

// TopFiles answers _master_tops, the embedding program's top file for the minion.
func (c *Config) TopFiles(ctx context.Context, v protocol.Verified) (any, error) {
	if c.Tops == nil {
		return map[string]any{}, nil
	}
	opts, _ := payload.Map(v.Load()["opts"])
	out, err := c.Tops.MakeTops(ctx, v.ID(), opts)
	if err != nil {
		return nil, fmt.Errorf("cannot make master tops: %w", err)
	}
	if out == nil {
		out = map[string]any{}
	}
	return out, nil
}
