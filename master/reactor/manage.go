package reactor

import (
	"crypto/subtle"
	"strings"

	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
)

// manage answers a request of salt-run's functions reactor.*: an event with root's key, answered by an event.
func (r *Reactor) manage(e events.Event) {
	key, _ := payload.Text(e.Data["key"])
	ask := strings.TrimPrefix(e.Tag, manage)
	switch ask {
	case "list", "add", "delete", "is_leader", "set_leader":
	default:
		return // an answer
	}
	if r.o.Key == "" || subtle.ConstantTimeCompare([]byte(key), []byte(r.o.Key)) != 1 {
		r.log.Error("received " + manage + ask + " without the master's key: discarding it")
		return
	}
	answer := func(tag string, data map[string]any) { r.o.Master.Events().Publish(manage+tag, data) }
	switch ask {
	case "is_leader":
		answer("leader/value", map[string]any{"result": r.Leader()})
	case "set_leader":
		if id, _ := payload.Text(e.Data["id"]); id == r.o.ID {
			on, _ := e.Data["value"].(bool)
			r.SetLeader(on)
		}
		answer("leader/value", map[string]any{"result": r.Leader()})
	case "list":
		answer("list-results", map[string]any{"reactors": r.shown()})
	case "add":
		tag, _ := payload.Text(e.Data["event"])
		files, err := ParseFiles(e.Data["reactors"])
		if tag == "" || err != nil {
			answer("add-complete", map[string]any{"reactors": r.shown(), "result": status(false, "A reactor is a tag and a list of files.")})
			return
		}
		result := status(true, "Reactor added.")
		if !r.Add(Rule{Tag: tag, Files: files}) {
			result = status(false, "Reactor already exists.")
		}
		answer("add-complete", map[string]any{"reactors": r.shown(), "result": result})
	case "delete":
		tag, _ := payload.Text(e.Data["event"])
		result := status(true, "Reactor deleted.")
		if !r.Delete(tag) {
			result = status(false, "Reactor does not exists.")
		}
		answer("delete-complete", map[string]any{"reactors": r.shown(), "result": result})
	}
}

func status(ok bool, comment string) map[string]any {
	return map[string]any{"status": ok, "comment": comment}
}

// shown is the rules as the configuration has them.
func (r *Reactor) shown() []any {
	rules, err := r.List()
	if err != nil {
		r.log.Error("no reactions", "err", err)
	}
	out := []any{}
	for _, rule := range rules {
		files := make([]any, len(rule.Files))
		for i, f := range rule.Files {
			files[i] = f
		}
		out = append(out, map[string]any{rule.Tag: files})
	}
	return out
}
