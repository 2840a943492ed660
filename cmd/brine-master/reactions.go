package main

import (
	"context"

	"github.com/brine-salt/brine/cmd/internal/localmaster"
	"github.com/brine-salt/brine/master/reactor"
)

// startReactor runs the reactions in the option reactor to the master's events until ctx ends. Templates may call
// execution modules, which run on this host as this program's user.
func (s *services) startReactor(ctx context.Context) error {
	c, log := s.p.Conf, s.p.Log
	o := reactor.Options{Master: s.master, ID: c.String("id"),
		Key: s.master.LocalKey(localmaster.User(c)), Renderer: c.String("renderer"),
		Runner: s.runner, Wheel: s.wheel, Workers: c.Int("reactor_worker_threads"),
		Queue: c.Int("reactor_worker_hwm"), Log: log}
	if path, ok := c.Opts["reactor"].(string); ok {
		if path == "" {
			return nil
		}
		o.RuleFile = path
	} else {
		var err error
		if o.Rules, err = reactor.ParseRules(c.Opts["reactor"]); err != nil {
			log.Error("A part of the option reactor has no effect", "err", err)
		}
		if len(o.Rules) == 0 {
			return nil
		}
	}
	o.Template, o.Caller = s.minion.renderTemplate, s.minion.exec
	r, err := reactor.New(o)
	if err != nil {
		return err
	}
	s.wg.Go(func() { r.Run(ctx) })
	return nil
}
