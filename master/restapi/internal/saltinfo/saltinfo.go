// Package saltinfo turns events into the summaries of minions and jobs that stock's salt-api sends on
// WebSockets with format_events (salt/netapi/rest_cherrypy/event_processor.py).
package saltinfo

import (
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
)

// maxJobs limits the jobs per follower, dropping the oldest, because all of them are sent again after each
// change.
const maxJobs = 1000

// Info summarises the minions and jobs in the events it has received.
type Info struct {
	minions map[string]map[string]any
	jobs    map[string]map[string]any
}

// New returns an empty Info.
func New() *Info {
	return &Info{minions: map[string]map[string]any{}, jobs: map[string]map[string]any{}}
}

// Event handles an event and returns what to send because of it. wanted are minions whose grains should be
// requested.
func (i *Info) Event(e events.Event) (out []map[string]any, wanted []string) {
	parts := strings.Split(e.Tag, "/")
	if len(parts) < 2 {
		return nil, nil
	}
	fun, _ := payload.Text(e.Data["fun"])
	switch {
	case parts[1] == "job" && len(parts) >= 4 && parts[3] == "new":
		i.newJob(e.Data)
		if out = append(out, i.allJobs()); fun == "grains.items" {
			clear(i.minions)
		}
	case parts[1] == "job" && len(parts) == 5 && parts[3] == "ret":
		i.addReturn(parts[2], parts[4], e.Data)
		if out = append(out, i.allJobs()); fun == "grains.items" {
			i.minionEntry(parts[4])["grains"] = e.Data["return"]
			out = append(out, i.allMinions())
		}
	case parts[1] == "key":
		id, _ := payload.Text(e.Data["id"])
		switch act, _ := payload.Text(e.Data["act"]); act {
		case "delete":
			delete(i.minions, id)
		case "accept":
			i.minionEntry(id)
		}
		out = append(out, i.allMinions())
	case parts[1] == "presence":
		list, ok := payload.List(e.Data["present"])
		if !ok {
			break // salt/presence/change, which stock fails to parse
		}
		present := map[string]bool{}
		for _, x := range list {
			if id, ok := payload.Text(x); ok {
				present[id] = true
			}
		}
		before := len(i.minions)
		maps.DeleteFunc(i.minions, func(id string, _ map[string]any) bool { return !present[id] })
		for _, id := range slices.Sorted(maps.Keys(present)) {
			if i.minions[id] == nil {
				wanted = append(wanted, id)
			}
		}
		if len(i.minions) != before || len(wanted) > 0 {
			out = append(out, i.allMinions())
		}
	}
	return out, wanted
}

func (i *Info) minionEntry(id string) map[string]any {
	if i.minions[id] == nil {
		i.minions[id] = map[string]any{}
	}
	return i.minions[id]
}

// jobEntry returns the summary of a job.
func (i *Info) jobEntry(jid string) map[string]any {
	if i.jobs[jid] == nil {
		if len(i.jobs) >= maxJobs {
			delete(i.jobs, slices.Min(slices.Collect(maps.Keys(i.jobs))))
		}
		i.jobs[jid] = map[string]any{"minions": map[string]any{}}
	}
	return i.jobs[jid]
}

func (i *Info) newJob(data map[string]any) {
	jid, _ := payload.Text(data["jid"])
	minions := map[string]any{}
	list, _ := payload.List(data["minions"])
	for _, x := range list {
		if id, ok := payload.Text(x); ok {
			minions[id] = map[string]any{"success": false}
		}
	}
	job := i.jobEntry(jid)
	clear(job)
	maps.Copy(job, map[string]any{"jid": jid, "start_time": data["_stamp"], "minions": minions,
		"fun": data["fun"], "tgt": data["tgt"], "tgt_type": data["tgt_type"], "state": "running"})
}

func (i *Info) addReturn(jid, id string, data map[string]any) {
	job := i.jobEntry(jid)
	minions := job["minions"].(map[string]any)
	minions[id] = map[string]any{"return": data["return"], "retcode": data["retcode"],
		"success": data["success"]}
	for _, m := range minions {
		if m.(map[string]any)["success"] != true {
			return
		}
	}
	job["state"] = "complete"
}

func (i *Info) allJobs() map[string]any {
	jobs := make(map[string]any, len(i.jobs))
	for jid, job := range i.jobs {
		jobs[jid] = job
	}
	return map[string]any{"jobs": jobs}
}

func (i *Info) allMinions() map[string]any {
	list := make([]map[string]any, 0, len(i.minions))
	for _, id := range slices.Sorted(maps.Keys(i.minions)) {
		m := maps.Clone(i.minions[id])
		m["id"] = id
		list = append(list, m)
	}
	return map[string]any{"minions": nested.Anys(list)}
}
