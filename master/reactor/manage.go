package reactor

import (
	"crypto/subtle"
	"strings"

	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
)

// manageRules answers a request of salt-run's functions reactor.*: an event with root's key, answered by an event.
func (r *Reactor) manageRules(e events.Event) {
	key, _ := payload.Text(e.Data["key"])
	ask := strings.TrimPrefix(e.Tag, manage)
	switch ask {
	case "list", "add", "delete", "is_leader", "set_leader":
	default:
		return // an answer
	}
	if r.o.Key == "" || subtle.ConstantTimeCompare([]byte(key), []byte(r.o.Key)) != 1 {
		r.log.Error("Received " + manage + ask + " without the master's key: discarding it")
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
		answer("list-results", map[string]any{"reactors": r.shownRules()})
	case "add":
		tag, _ := payload.Text(e.Data["event"])
		files, err := ParseFiles(e.Data["reactors"])
		if tag == "" || err != nil {
			answer("add-complete", map[string]any{"reactors": r.shownRules(), "result": statusOf(false, "A reactor is a tag and a list of files.")})
			return
		}
		result := statusOf(true, "Reactor added.")
		if !r.Add(Rule{Tag: tag, Files: files}) {
			result = statusOf(false, "Reactor already exists.")
		}
		answer("add-complete", map[string]any{"reactors": r.shownRules(), "result": result})
	case "delete":
		tag, _ := payload.Text(e.Data["event"])
		result := statusOf(true, "Reactor deleted.")
		if !r.Delete(tag) {
			result = statusOf(false, "Reactor does not exists.")
		}
		answer("delete-complete", map[string]any{"reactors": r.shownRules(), "result": result})
	}
}

func statusOf(ok bool, comment string) map[string]any {
	return map[string]any{"status": ok, "comment": comment}
}

// shownRules returns the rules in the form of the configuration.
func (r *Reactor) shownRules() []any {
	rules, err := r.List()
	if err != nil {
		r.log.Error("No reactions", "err", err)
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
