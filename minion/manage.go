package minion

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/backoff"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/events/ipc"
)

// manageWait is how long salt-call waits for the daemon's answer, as in Salt (salt/modules/schedule.py).
const manageWait = 30 * time.Second

// manageEvent handles an event that manages the schedule or the beacons. It returns the data of the answering
// event.
func (m *Minion) manageEvent(tag string, data map[string]any) map[string]any {
	switch {
	case strings.HasPrefix(tag, "manage_schedule"):
		return m.schedule.Manage(data)
	case strings.HasPrefix(tag, "manage_beacons"):
		return m.beacons.Manage(m.ctx, data)
	}
	return nil
}

var _ modules.Manager = agent{}

// Manage implements [modules.Manager]. Within the daemon it calls the handler; salt-call asks over the daemon's
// bus.
func (a agent) Manage(ctx context.Context, tag string, data map[string]any,
	answer string) (map[string]any, bool) {
	m := a.m
	if m.ctx != nil {
		m.bus.bus.Publish(tag, data)
		return m.manageEvent(tag, data), true
	}
	if answer == "" {
		return nil, m.fireLocal(tag, data)
	}
	s := m.settings()
	if !s.hasSockets() {
		return nil, false
	}
	sockets, err := s.busSockets()
	if err != nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, manageWait)
	defer cancel()
	c, err := ipc.Dial(ctx, sockets)
	if err != nil {
		m.log.Debug("Cannot reach the minion on this host", "err", err)
		return nil, false
	}
	defer c.Close()
	if !m.serveBus(ctx, c) || !m.fireLocal(tag, data) {
		return nil, false
	}
	for {
		e, err := c.Next(ctx)
		if err != nil {
			return nil, true
		}
		if strings.HasPrefix(e.Tag, answer) {
			return e.Data, true
		}
	}
}

// heardEvery is how often serveBus fires its probe event.
const heardEvery = 200 * time.Millisecond

// serveBus waits until the daemon serves connection c, and reports whether it does. Events fired before that,
// the answer included, would be missed.
func (m *Minion) serveBus(ctx context.Context, c *ipc.Client) bool {
	mark := "brine/" + rand.Text()
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	defer func() { cancel(); <-stopped }()
	go func() {
		defer close(stopped)
		for m.fireLocal(mark, map[string]any{}) && backoff.Sleep(ctx, heardEvery) {
		}
	}()
	for {
		e, err := c.Next(ctx)
		if err != nil || e.Tag == mark {
			return err == nil
		}
	}
}

// includeFile returns the path of a file in the directory of default_include.
func (s *settings) includeFile(name string) (string, error) {
	dir := s.optional("conf_dir")
	if dir == "" {
		conf := s.optional("conf_file")
		if conf == "" {
			return "", errors.New("cannot find the configuration directory: " +
				"neither conf_dir nor conf_file is set")
		}
		dir = filepath.Dir(conf)
	}
	return filepath.Join(dir, filepath.Dir(s.text("default_include")), name), nil
}

// persistSchedule writes _schedule.conf, which is part of the configuration at the next start.
func (m *Minion) persistSchedule(jobs map[string]any) error {
	path, err := m.settings().includeFile("_schedule.conf")
	if err != nil {
		return err
	}
	text, err := yaml.MarshalStyle(map[string]any{"schedule": jobs},
		yaml.Style{Flow: yaml.FlowLeafs})
	if err != nil {
		return fmt.Errorf("cannot write schedule: %w", err)
	}
	if err := makeDir(filepath.Dir(path)); err != nil {
		return err
	}
	return atomicfile.WriteFile(path, []byte(text), 0o644)
}

var _ modules.MasterChooser = agent{}

// Via implements modules.MasterChooser.
func (a agent) Via(name string) modules.Master {
	links := a.m.eachLink()
	if len(links) == 0 && a.link != nil && !a.link.local {
		links = []*link{a.link}
	}
	for _, l := range links {
		if s := l.session(); s != nil && (s.name == name || s.host == name) {
			return masterDoor{l}
		}
	}
	return nil
}
