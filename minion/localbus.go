package minion

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/backoff"
	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/minion/connections"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/payload"
)

// Events that notify programs on the host of a finished refresh (salt/defaults/events.py).
const (
	pillarRefreshed  = "/salt/minion/minion_pillar_refresh_complete"
	modulesRefreshed = "/salt/minion/minion_mod_refresh_complete"
)

// localFireTimeout is how long salt-call waits for the daemon to accept an event, as in Salt.
const localFireTimeout = time.Second

// localBus is the minion's event bus. Programs on this host read the minion's events from it and send their
// requests to it. Without a listener an event costs nothing.
type localBus struct {
	bus *events.Bus

	mu     sync.Mutex
	server *ipc.Server // guarded by mu; nil while the sockets are not open
}

// busRetry is the pause between attempts to open event sockets that another process holds.
const busRetry = 2 * time.Second

// busSockets returns where stock programs expect the minion's bus (salt/transport/base.py: ipc_publish_server).
func (s *settings) busSockets() (ipc.Sockets, error) {
	if s.text("ipc_mode") == "tcp" {
		return ipc.Ports(s.truth("ipv6"), s.integer("tcp_pub_port"),
			s.integer("tcp_pull_port")), nil
	}
	return ipc.Minion(s.optional("sock_dir"), s.id, s.text("hash_type"))
}

// hasSockets reports whether the bus has sockets. That of an embedded minion without a sock_dir has none.
func (s *settings) hasSockets() bool {
	return s.optional("sock_dir") != "" || s.text("ipc_mode") == "tcp"
}

// openBus opens the event sockets. The minion works without them. If another process holds them, as a stock
// minion that is still stopping does, openBus retries in the background.
func (m *Minion) openBus() {
	m.bus.bus = events.New(m.o.Clock)
	if !m.settings().hasSockets() {
		return
	}
	err := m.listenBus()
	if err == nil {
		return
	}
	m.log.Error("The minion has no event sockets: programs on this host can neither listen to it "+
		"nor fire events. It goes on trying to open them", "err", err)
	m.wg.Go(func() {
		for backoff.Sleep(m.ctx, busRetry) {
			if m.listenBus() == nil {
				m.log.Info("The minion has its event sockets now")
				return
			}
		}
	})
}

// listenBus makes one attempt to open the event sockets. It does nothing if the minion is stopping.
func (m *Minion) listenBus() error {
	s := m.settings()
	sockets, err := s.busSockets()
	if err != nil {
		return err
	}
	m.bus.mu.Lock()
	defer m.bus.mu.Unlock()
	if m.ctx.Err() != nil {
		return m.ctx.Err()
	}
	m.bus.server, err = ipc.Listen(m.bus.bus,
		ipc.Options{Sockets: sockets, DirMode: 0o755, PubMode: 0o600,
			Buffer: max(s.integer("ipc_write_buffer"), 0), Received: m.localEvent,
			Log: m.log})
	return err
}

// busServer returns the server of the event sockets, or nil if they are not open.
func (m *Minion) busServer() *ipc.Server {
	m.bus.mu.Lock()
	defer m.bus.mu.Unlock()
	return m.bus.server
}

func (m *Minion) closeBus() {
	if server := m.busServer(); server != nil {
		if err := server.Close(); err != nil {
			m.log.Warn("Cannot remove the event sockets", "err", err)
		}
	}
	m.bus.bus.Close()
}

// fireLocal fires an event on the minion's bus and reports whether it was accepted. salt-call fires on the bus
// of this host's daemon; without a daemon it returns false, as stock does.
func (m *Minion) fireLocal(tag string, data any) bool {
	d, ok := payload.Map(ordered.ToWire(data))
	if !ok || tag == "" {
		return false
	}
	s := m.settings()
	d = protocol.TrimEvent(d, s.integer("max_event_size"))
	if m.ctx != nil {
		m.localEvent(tag, d)
		return true
	}
	if !s.hasSockets() {
		return false
	}
	sockets, err := s.busSockets()
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), localFireTimeout)
		defer cancel()
		err = ipc.Fire(ctx, sockets, tag, d)
	}
	if err != nil {
		m.log.Debug("Cannot fire an event on the minion's bus", "tag", tag, "err", err)
	}
	return err == nil
}

// localEvent publishes an event that a function or a program on this host fired. Some events are requests to
// the minion (salt/minion.py: Minion.handle_event). Only root and the minion's user can write to the socket.
func (m *Minion) localEvent(tag string, data map[string]any) {
	m.bus.bus.Publish(tag, data)
	plain := payload.PlainMap(data)
	o := options(plain)
	switch {
	case strings.HasPrefix(tag, "module_refresh"):
		m.wg.Go(func() {
			m.logFailed("refresh grains", m.refreshGrains(m.ctx))
			m.beacons.Refresh()
			if o.truthOr("notify", false) {
				m.bus.bus.Publish(modulesRefreshed, map[string]any{"complete": true})
			}
		})
	case strings.HasPrefix(tag, "pillar_refresh"), strings.HasPrefix(tag, "grains_refresh"):
		m.wg.Go(func() { m.refreshForBus(o) })
	case strings.HasPrefix(tag, "manage_schedule"), strings.HasPrefix(tag, "manage_beacons"):
		m.manageEvent(tag, plain)
	case strings.HasPrefix(tag, "beacons_refresh"):
		m.beacons.Refresh()
	case strings.HasPrefix(tag, "fire_master"):
		if load := masterEvent(data); load != nil {
			m.toMasters(load)
		}
	case strings.HasPrefix(tag, "_salt_error"):
		m.toMasters(map[string]any{"cmd": "_minion_event", "tag": tag, "data": data, "pretag": nil})
	case strings.HasPrefix(tag, "__beacons_return"):
		m.toMasters(map[string]any{"cmd": "_minion_event", "events": data["beacons"],
			"pretag": nil})
	case strings.HasPrefix(tag, "_minion_mine"):
		load := map[string]any{"cmd": "_mine", "data": data["data"], "clear": data["clear"]}
		m.toMasters(load)
	case tag == connections.Tag:
		m.bus.bus.Publish(connections.AnswerTag, m.connections())
	case strings.HasPrefix(tag, "__master_req_channel_payload/"):
		m.wg.Go(func() { m.requestForBus(tag, data) })
	}
}

// masterEvent returns the request that forwards an event of the host to a master (salt/minion.py:
// Minion._fire_master_prepare), or nil if there is nothing to forward. Python's event.send and
// event.fire_master send every key, with None for absent values. Those are left out, because a master treats
// "events" as a list whenever the key is present.
func masterEvent(data map[string]any) map[string]any {
	load := map[string]any{"cmd": "_minion_event", "pretag": data["pretag"]}
	tag, _ := payload.Text(data["tag"])
	switch {
	case pytext.Truth(payload.Plain(data["events"])):
		load["events"] = data["events"]
	case tag == "":
		return nil
	case pytext.Truth(payload.Plain(data["data"])):
		load["tag"], load["data"] = tag, data["data"]
	default:
		load["tag"], load["data"] = tag, map[string]any{}
	}
	return load
}

// refreshForBus gathers the grains again and then fetches the pillar, which may depend on them. New grains also
// decide which modules are available.
func (m *Minion) refreshForBus(o options) {
	m.logFailed("refresh grains", m.refreshGrains(m.ctx))
	for _, l := range m.eachLink() {
		if l.session() != nil {
			m.logFailed("refresh pillar", l.refreshPillar(m.ctx, o.truthOr("clean_cache", false)))
		}
	}
	m.bus.bus.Publish(pillarRefreshed, map[string]any{"complete": true})
}

// toMasters sends a load to every connected master, in the background.
func (m *Minion) toMasters(load map[string]any) {
	for _, l := range m.eachLink() {
		if !l.connected() {
			m.log.Debug("A master is not connected, dropping an event", "master", l.masterName())
			continue
		}
		own := map[string]any{"id": m.ID()}
		for k, v := range load {
			own[k] = v
		}
		m.wg.Go(func() {
			_, err := l.requestReply(m.ctx, own, l.daemonCall())
			m.logFailed("forward an event to the master", err)
		})
	}
}

// requestForBus sends a request of a local program to the named master and fires the reply on the bus.
func (m *Minion) requestForBus(tag string, data map[string]any) {
	parts := strings.Split(tag, "/")
	if len(parts) < 3 {
		return
	}
	id, name := parts[len(parts)-2], parts[len(parts)-1]
	answer := map[string]any{"ret": nil}
	for _, l := range m.eachLink() {
		if s := l.session(); s == nil || s.name != name && s.host != name {
			continue
		}
		v, err := l.requestReply(m.ctx, data, l.daemonCall())
		if err != nil {
			m.logFailed("make a request for a program", err)
			answer["error"] = "timeout"
		} else {
			answer["ret"] = v
		}
		m.bus.bus.Publish("__master_req_channel_return/"+id, answer)
		return
	}
}

func (m *Minion) logFailed(what string, err error) {
	if err != nil && m.ctx.Err() == nil {
		m.log.Warn(fmt.Sprintf("Cannot %s", what), "err", err)
	}
}

// tellBus fires Salt's events for a lost or restored connection to a master.
func (m *Minion) tellBus(st Status, before State) {
	switch {
	case m.busServer() == nil:
	case st.State == Connected:
		m.bus.bus.Publish("__master_connected", map[string]any{"master": st.Master})
	case before == Connected:
		m.bus.bus.Publish("__master_disconnected", map[string]any{"master": st.Master})
	}
}
