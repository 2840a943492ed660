package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"time"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules/pyobj"
)

// topsTime is the time limit for the program in ext_nodes.
const topsTime = time.Minute

// masterTops implements the option master_tops with ext_nodes, a program that prints a minion's states as YAML
// (salt/tops/ext_nodes.py). It returns nil if the option is not set.
func masterTops(c *conf.Config,
	log *slog.Logger) (func(ctx context.Context, id string, opts map[string]any) (map[string]any,
	error), error) {
	command := (&conf.Config{Opts: c.Map("master_tops")}).String("ext_nodes")
	if command == "" {
		return nil, nil
	}
	words, err := shlex.Split(command)
	if err == nil && len(words) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("master_tops: ext_nodes is not a command: %q: %w", command, err)
	}
	return func(ctx context.Context, id string, _ map[string]any) (map[string]any, error) {
		ctx, cancel := context.WithTimeout(ctx, topsTime)
		defer cancel()
		out, err := exec.CommandContext(ctx, words[0],
			append(words[1:len(words):len(words)], id)...).Output()
		if err != nil {
			return nil, fmt.Errorf("cannot run ext_nodes %q: %w", words[0], err)
		}
		v, err := yaml.ParseObject(out, "<ext_nodes>", false)
		if err != nil {
			return nil, fmt.Errorf("cannot read what ext_nodes printed for %s: %w", id, err)
		}
		return nodeTops(v, id, log), nil
	}, nil
}

// nodeTops returns a node's states for one environment. Its classes are a list or the keys of a dict.
func nodeTops(v any, id string, log *slog.Logger) map[string]any {
	node, _ := v.(*pyobj.Dict)
	if node == nil {
		node = pyobj.NewDict()
	}
	classes, ok := node.Get("classes")
	if !ok {
		log.Info("master_tops ext_nodes call did not have a dictionary with a \"classes\" key.",
			"minion", id)
		return map[string]any{}
	}
	env := any("base")
	if e, ok := node.Get("environment"); ok {
		env = e
	}
	name, ok := env.(string)
	if !ok {
		return map[string]any{}
	}
	switch x := classes.(type) {
	case *pyobj.Dict:
		keys := []any{}
		for k := range x.All() {
			keys = append(keys, pyobj.Plain(k))
		}
		return map[string]any{name: keys}
	case *pyobj.List:
		return map[string]any{name: pyobj.Plain(x)}
	}
	return map[string]any{}
}
