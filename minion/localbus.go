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

// Events that tell programs on the host that something asked for is done (salt/defaults/events.py).
const (
	pillarRefreshed  = "/salt/minion/minion_pillar_refresh_complete"
	modulesRefreshed = "/salt/minion/minion_mod_refresh_complete"
)

// localFireTimeout is how long a salt-call waits for the daemon to take an event, as in Salt.
const localFireTimeout = time.Second

// localBus is the minion's own event bus: what happens here, for programs on this host, and what they ask of the
// minion. Without a program that listens an event costs nothing.
type localBus struct {
	bus *events.Bus

	mu     sync.Mutex
	server *ipc.Server // guarded by mu; nil while the sockets cannot be opened
}

// busRetry is how often a minion whose event sockets are another process's looks whether they are free.
const busRetry = 2 * time.Second

// busSockets are where stock programs look for the minion's bus (salt/transport/base.py: ipc_publish_server).
func (s *settings) busSockets() (ipc.Sockets, error) {
	if s.text("ipc_mode") == "tcp" {
		return ipc.Ports(s.truth("ipv6"), s.integer("tcp_pub_port"),
			s.integer("tcp_pull_port")), nil
	}
	return ipc.Minion(s.optional("sock_dir"), s.id, s.text("hash_type"))
}

// hasSockets reports whether programs on the host can reach the bus: not that of a minion embedded without a sock_dir.
func (s *settings) hasSockets() bool {
	return s.optional("sock_dir") != "" || s.text("ipc_mode") == "tcp"
}

// openBus opens the event sockets. A minion without them works all the same. While another process has them, as a stock
// minion does that is still ending, they are tried again until they are free.
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

// listenBus opens the event sockets once. It leaves them closed if the minion is ending.
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

// busServer returns what serves the event sockets, nil while no one does.
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

// fireLocal puts an event on the bus: the daemon on its own, a salt-call on that of the daemon of this host. Like
// stock, a salt-call finds no daemon when there is none.
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

// localEvent takes an event that a function or a program on this host fired: everybody who listens gets it, and some
// are requests to the minion (salt/minion.py: Minion.handle_event). Who may write to the socket is root or the minion's
// user.
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

// masterEvent is the request that hands on an event of the host (salt/minion.py: Minion._fire_master_prepare). Python's
// event.send and event.fire_master name every key, with None where there is nothing. A master takes "events" for a list
// as soon as the key is there, so what is None is left out.
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

// refreshForBus gathers the grains anew, which also decides which modules suit the host, and then the pillar, which may
// depend on them.
func (m *Minion) refreshForBus(o options) {
	m.logFailed("refresh grains", m.refreshGrains(m.ctx))
	for _, l := range m.eachLink() {
		if l.session() != nil {
			m.logFailed("refresh pillar", l.refreshPillar(m.ctx, o.truthOr("clean_cache", false)))
		}
	}
	m.bus.bus.Publish(pillarRefreshed, map[string]any{"complete": true})
}

// toMasters sends a load to every master that the minion is connected to, in the background.
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

// requestForBus makes a request to the named master in the name of a program on this host and fires the answer.
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

// tellBus fires the events with which Salt says that a master was lost or found again.
func (m *Minion) tellBus(st Status, before State) {
	switch {
	case m.busServer() == nil:
	case st.State == Connected:
		m.bus.bus.Publish("__master_connected", map[string]any{"master": st.Master})
	case before == Connected:
		m.bus.bus.Publish("__master_disconnected", map[string]any{"master": st.Master})
	}
}
